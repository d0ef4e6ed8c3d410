"""What is to be said on channels until it was, what was given up, and where agents were spoken to last."""

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush

import msgspec

from headway.model.places import Delivery
from headway.model.run import AgentName, Route
from headway.model.time import Instant
from headway.ports import LetterPage, LetterQuery
from headway.store.codec import letter_cursor, read_letter_cursor


class _Letter(msgspec.Struct, eq=False):
    """A delivery, and when it is due."""

    due_at: Instant
    delivery: Delivery
    error: str = ""
    dead: bool = False

    def shown(self) -> Delivery:
        due_at = None if self.dead else self.due_at
        return msgspec.structs.replace(self.delivery, error=self.error, due_at=due_at)


class MemoryOutbox:
    """Keeps deliveries by their ids."""

    def __init__(self) -> None:
        self._letters: dict[str, _Letter] = {}
        self._said: dict[str, Instant] = {}
        """Keys of what is to be said once, and until when each is remembered (H-2)."""
        self._said_ends: list[tuple[Instant, str]] = []
        self._routes: dict[AgentName, tuple[Instant, Route]] = {}

    def put(self, delivery: Delivery) -> None:
        """Keep it, unless it is there already or the same was said not long ago."""
        if delivery.id in self._letters or (delivery.once and not self._is_new(delivery)):
            return
        self._letters[delivery.id] = _Letter(delivery.first_at, delivery)

    def _is_new(self, delivery: Delivery) -> bool:
        self._forget_said(delivery.first_at)
        if delivery.once in self._said:
            return False
        self._said[delivery.once] = delivery.once_until
        heappush(self._said_ends, (delivery.once_until, delivery.once))
        return True

    def take(
        self, channels: Sequence[str], most: int, now: Instant, until: Instant
    ) -> Sequence[Delivery]:
        due = [
            letter
            for letter in self._letters.values()
            if letter.due_at <= now
            and not letter.dead
            and letter.delivery.route.channel in channels
        ]
        due.sort(key=_place)
        del due[most:]
        for letter in due:
            letter.due_at = until
        return [letter.delivery for letter in due]

    def settle(self, delivery: Delivery, again_at: Instant | None, error: str) -> None:
        letter = self._letters.get(delivery.id)
        if letter is None:
            return
        if again_at is None and not error:
            del self._letters[delivery.id]
            return
        letter.delivery = msgspec.structs.replace(letter.delivery, tries=delivery.tries + 1)
        letter.error = error
        if again_at is None:
            letter.dead = True
        else:
            letter.due_at = again_at

    def page(self, query: LetterQuery) -> LetterPage:
        after = None if query.cursor is None else read_letter_cursor(query.cursor)
        found = [
            letter
            for letter in self._letters.values()
            if query.dead in {None, letter.dead}
            and query.channel in {None, letter.delivery.route.channel}
            and (after is None or _place(letter) > after)
        ]
        found.sort(key=_place)
        shown = found[: query.limit]
        cursor = letter_cursor(*_place(shown[-1])) if len(found) > len(shown) else None
        return LetterPage(tuple(letter.shown() for letter in shown), cursor)

    def count(self) -> tuple[int, int]:
        dead = sum(letter.dead for letter in self._letters.values())
        return len(self._letters) - dead, dead

    def retry(self, delivery_id: str, now: Instant) -> bool:
        letter = self._letters.get(delivery_id)
        if letter is None or not letter.dead:
            return False
        fresh = msgspec.structs.replace(letter.delivery, tries=0, first_at=now)
        self._letters[delivery_id] = _Letter(now, fresh)
        return True

    def note_routes(self, routes: Mapping[AgentName, Route], at: Instant) -> None:
        for agent, route in routes.items():
            known = self._routes.get(agent)
            if known is None or known[0] <= at:
                self._routes[agent] = (at, route)

    def last_route(self, agent: AgentName) -> Route | None:
        known = self._routes.get(agent)
        return None if known is None else known[1]

    def prune(self, now: Instant, before: Instant) -> None:
        """Forget dead letters from before then, and what may be said again."""
        self._forget_said(now)
        past = [
            letter.delivery.id
            for letter in self._letters.values()
            if letter.dead and letter.delivery.first_at <= before
        ]
        for delivery_id in past:
            del self._letters[delivery_id]

    def _forget_said(self, now: Instant) -> None:
        while self._said_ends and self._said_ends[0][0] <= now:
            _, key = heappop(self._said_ends)
            del self._said[key]


def _place(letter: _Letter) -> tuple[Instant, str]:
    """The oldest first, and those of one instant by their ids."""
    return letter.delivery.first_at, letter.delivery.id
