"""A round: the letters of one channel that are at hand, and when each goes out.

What belongs to one conversation arrives in its order. A channel with many receivers, such as that of callbacks,
has no conversations but receivers, and one that is slow or dead must not hold up the others: it gets few letters
at once, and what else there is for it goes back into the outbox for a moment. So a round never holds but dozens.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

import msgspec

from headway.core.retry import HELD_FOR, LONGEST_DELAY, delay
from headway.model.errors import Permanent, Unavailable
from headway.model.places import Delivery
from headway.model.run import Route
from headway.model.time import DAY, MILLISECOND, MINUTE, SECOND, Instant, Span
from headway.ports import Clock, Store
from headway.runtime.herald import Herald
from headway.runtime.replies import describe, is_own_cancel

SEND_WITHIN: Span = HELD_FOR // 3

_AT_HAND = 20
_AT_HAND_OF_MANY = 48
_AT_ONCE_TO_ONE = 4
_REFILL = 8
"""The store is asked for more at once when there is room for so many."""
_MOMENT = 50 * MILLISECOND
_PATIENCE = SECOND // 2
"""A receiver that has not answered after this is slow, as far as others are concerned."""
_GRID = 250 * MILLISECOND
_LONGEST_LAP: Span = 5 * MINUTE
_REMEMBERED = 500
"""So many slow receivers are remembered while nothing goes to them."""
_GIVES_UP_AFTER = DAY
_MOST_DOUBLINGS = 10
_IN_TURN = "what came before it was not delivered"


@runtime_checkable
class ManyReceivers(Protocol):
    """A channel whose deliveries go to many that know nothing of each other, in no particular order."""

    def receiver(self, route: Route) -> str:
        """Who takes it."""
        ...


class _Taken(msgspec.Struct, eq=False):
    """A delivery at hand."""

    delivery: Delivery
    begin_by: Instant
    """Later than this others may take it before it has arrived."""


class _Door(msgspec.Struct, eq=False):
    """Where letters go in: a conversation, one after the other, or a receiver, a few at once."""

    key: str
    waiting: deque[_Taken]
    running: int = 0
    began_at: Instant = 0
    """When the latest of those began that are on their way."""
    well: bool = False
    """Whether the latest was answered, and taken or refused for good."""
    error: str = ""
    """Why it was not."""
    took: Span = 0
    turn_at: Instant = 0
    """When the latest of those that went back will be due."""
    lap: Span = LONGEST_DELAY
    """Within this their turns come: the more there are, the longer it is."""

    @property
    def slow(self) -> bool:
        return bool(self.error) or self.took > _PATIENCE

    @property
    def kept(self) -> int:
        """How many may wait at hand for a receiver that is slow."""
        return _AT_ONCE_TO_ONE if self.well else 0

    @property
    def room(self) -> int:
        """How many may be on their way to a receiver at once: until it is known to answer, one that tries."""
        return _AT_ONCE_TO_ONE if self.well else 1


class Round:
    """Delivers what is due on one channel."""

    def __init__(
        self,
        name: str,
        store: Store,
        clock: Clock,
        herald: Herald,
        *,
        send: Callable[[Delivery], Awaitable[None]],
        receiver: Callable[[Route], str] | None,
        look_at: Callable[[Instant], None],
        rested: Callable[[], None],
    ) -> None:
        self._name = name
        self._store = store
        self._clock = clock
        self._herald = herald
        self._send = send
        self._receiver = receiver
        self._look_at = look_at
        self._rested = rested
        self._most = _AT_HAND if receiver is None else _AT_HAND_OF_MANY
        self._doors: dict[str, _Door] = {}
        self._woken = asyncio.Event()
        self._more = False
        """Whether the store had more than there was room for."""
        self.at_hand = 0
        """How many deliveries this holds."""
        self._asleep = False
        self._closed = False

    @property
    def at_rest(self) -> bool:
        """Whether nothing is on its way, and nothing more is due."""
        return self._asleep and not self.at_hand

    def wake(self) -> None:
        self._asleep = False
        self._woken.set()

    async def close(self) -> None:
        """Begin nothing more: what is at hand and not on its way goes back, for whoever comes next."""
        self._closed = True
        now = self._clock.now()
        for door in self._doors.values():
            if door.running and self._receiver is None:
                # It must not overtake what is on its way: both are due again when their time is over.
                door.waiting.clear()
                continue
            rest, door.waiting = door.waiting, deque()
            for taken in rest:
                await self._settle(_untried(taken.delivery), now, taken.delivery.error)
                self.at_hand -= 1

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                await self._waken()
                try:
                    await self._fill(group)
                except Unavailable:
                    self._look_at(self._clock.now() + SECOND)

    async def _waken(self) -> None:
        """Until there is something to do: at the latest when a receiver would try the patience of others."""
        crowded = self._receiver is not None and any(door.waiting for door in self._doors.values())
        self._asleep = not self._woken.is_set()
        self._rested()
        try:
            async with asyncio.timeout(_PATIENCE / SECOND if crowded else None):
                await self._woken.wait()
        except TimeoutError:
            pass
        self._asleep = False
        self._woken.clear()

    async def _fill(self, group: asyncio.TaskGroup) -> None:
        while not self._closed:
            await self._make_room()
            room = self._most - self.at_hand
            if room <= 0:
                self._more = True
                return
            now = self._clock.now()
            due = await self._store.take_deliveries([self._name], room, now, now + HELD_FOR)
            for delivery in due:
                self._hand(_Taken(delivery, now + HELD_FOR // 2), group)
            self._more = len(due) == room
            if not self._more:
                await self._make_room()
                return
            await asyncio.sleep(0)

    def _hand(self, taken: _Taken, group: asyncio.TaskGroup) -> None:
        delivery = taken.delivery
        receiver = self._receiver
        key = delivery.session if receiver is None else receiver(delivery.route)
        door = self._doors.get(key)
        if door is None:
            door = self._doors[key] = _Door(key, deque())
        door.waiting.append(taken)
        self.at_hand += 1
        self._begin(door, group)

    def _begin(self, door: _Door, group: asyncio.TaskGroup) -> None:
        now = self._clock.now()
        room = 1 if self._receiver is None else door.room
        while door.waiting and door.running < room:
            taken = door.waiting.popleft()
            if now >= taken.begin_by:
                # Others may take it soon: it comes again when its time is over.
                self.at_hand -= 1
                self._look_at(now + HELD_FOR)
                continue
            door.running += 1
            door.began_at = now
            group.create_task(self._deliver(door, taken.delivery, group))

    async def _deliver(self, door: _Door, delivery: Delivery, group: asyncio.TaskGroup) -> None:
        began_at = door.began_at
        again_at, error = await self._try(delivery)
        door.took = self._clock.now() - began_at
        # What can never be taken says nothing of the next one.
        door.error = error if again_at is not None else ""
        door.well = not door.error
        if not door.slow:
            door.lap = LONGEST_DELAY
        await self._settle(delivery, again_at, error)
        self.at_hand -= 1
        if again_at is not None and self._receiver is None:
            await self._hold_back(door, again_at)
        door.running -= 1
        self._begin(door, group)
        self._forget(door)
        if self._more:
            self._refill()
        elif not self.at_hand:
            self._rested()

    def _refill(self) -> None:
        """There is more in the store. It is asked for many at once, or for few a moment later."""
        if self._most - self.at_hand >= _REFILL:
            self.wake()
        else:
            self._look_at(_on_grid(self._clock.now() + 1, _MOMENT))

    async def _try(self, delivery: Delivery) -> tuple[Instant | None, str]:
        """Send it; answers why it was not taken, and when it is tried again, if it is."""
        try:
            async with asyncio.timeout(SEND_WITHIN / SECOND):
                await self._send(delivery)
        except BaseException as error:
            if is_own_cancel(error, asyncio.current_task()):
                raise
            again_at = self._try_again_at(delivery, error)
            self._herald.delivery_failed(delivery, describe(error), again_at)
            return again_at, describe(error)
        return None, ""

    def _try_again_at(self, delivery: Delivery, error: BaseException) -> Instant | None:
        now = self._clock.now()
        if isinstance(error, Permanent) or now - delivery.first_at >= _GIVES_UP_AFTER:
            return None
        again_at = now + delay(min(delivery.tries, _MOST_DOUBLINGS), 0.5)
        self._look_at(again_at)
        return again_at

    async def _hold_back(self, door: _Door, until: Instant) -> None:
        """After a failure the rest of a conversation waits with it."""
        rest, door.waiting = door.waiting, deque()
        for taken in rest:
            await self._settle(taken.delivery, until, _IN_TURN)
            self.at_hand -= 1

    async def _make_room(self) -> None:
        """What a slow receiver cannot take now goes back, to be due about when it can."""
        if self._receiver is None:
            return
        now = self._clock.now()
        for door in tuple(self._doors.values()):
            stuck = door.running > 0 and now - door.began_at >= _PATIENCE
            if not door.waiting or not (door.slow or stuck):
                continue
            at_hand = tuple(door.waiting)
            door.waiting = deque(at_hand[: door.kept])
            for taken in at_hand[door.kept :]:
                await self._put_back(door, taken.delivery, now)

    async def _put_back(self, door: _Door, delivery: Delivery, now: Instant) -> None:
        pace = max(door.took, _PATIENCE) // door.room
        turn_at = max(door.turn_at, now + SECOND) + pace
        if turn_at > now + door.lap:
            # The next lap stands beside the one before: were they all due at its end, others would wait for them.
            door.lap = min(2 * door.lap, _LONGEST_LAP)
            turn_at = now + SECOND + pace
        door.turn_at = turn_at
        # On a grid, so that a thousand letters are looked for a few times, not a thousand times.
        due_at = _on_grid(door.turn_at, _GRID)
        said = f"; it said: {door.error}" if door.error else ""
        await self._settle(_untried(delivery), due_at, f"its receiver is busy with others{said}")
        self.at_hand -= 1
        self._look_at(due_at)

    def _forget(self, door: _Door) -> None:
        """Nothing goes there now. What was slow is remembered for a while."""
        if door.running or door.waiting:
            return
        if self._receiver is None or not door.slow:
            self._doors.pop(door.key, None)
        elif len(self._doors) > _REMEMBERED:
            idle = (known for known in self._doors.values() if not known.running)
            oldest = next((known for known in idle if not known.waiting), door)
            self._doors.pop(oldest.key, None)

    async def _settle(self, delivery: Delivery, again_at: Instant | None, error: str) -> None:
        try:
            await self._store.settle_delivery(delivery, again_at, error)
        except Unavailable:
            # Not settled: it comes again when its time is over, and its id tells the channel.
            self._look_at(self._clock.now() + HELD_FOR)


def _untried(delivery: Delivery) -> Delivery:
    """It was taken and not tried, so that does not count as a try."""
    return msgspec.structs.replace(delivery, tries=delivery.tries - 1)


def _on_grid(at: Instant, grid: Span) -> Instant:
    """The next instant on the grid: many that are near each other become one."""
    return -(-at // grid) * grid
