"""Claims: which sessions this node takes from the store, and which it gives back (D-5, F-2).

What is ready and nobody's is claimed when there is room for it, when a hint says so, when the store said that
something comes due, and once per poll in any case: a lost hint delays, it never hides. What was claimed and could
not start goes back where another node might start it sooner.
"""

import asyncio
from collections.abc import Callable, Iterable

import msgspec

from headway.core.kernel import Kernel
from headway.core.lanes import Lane
from headway.model.errors import Unavailable
from headway.model.places import Holding
from headway.model.run import AgentName, LaneName, Run, SessionKey
from headway.model.settings import Settings
from headway.model.time import MILLISECOND, SECOND, Instant, Span
from headway.ports import Clock, Hint, Store
from headway.runtime.scribe import Scribe

_LOOKS_AHEAD = 2
"""Sessions that come due within so many polls are claimed: the kernel's alarm then starts them on time."""
_WIDEST_BACKLOG = 4
"""At most so many times a lane's width is claimed beyond its free slots, where the work is short."""
_TOO_SHORT: Span = 5 * MILLISECOND
"""From less than this no rate is foretold."""
_LEAST_PAUSE_S = 0.001
_TAKEN_AT_ONCE = 100
"""Sessions and runs that are taken in before the loop goes on with something else."""
_MAY_STILL_COMMIT = 16 * SECOND
"""How long a call whose answer was given up may still take effect in the database."""


class Claims:
    """Looks for work in the store, as long as it runs."""

    def __init__(
        self,
        kernel: Kernel,
        store: Store,
        clock: Clock,
        *,
        alone: Callable[[], bool],
        agents: Callable[[], list[AgentName]],
        take_in: Callable[[Holding], None],
        put_back: Callable[[list[SessionKey]], None],
        scribe: Scribe,
        follow: Callable[[], object],
    ) -> None:
        self._kernel = kernel
        self._store = store
        self._clock = clock
        self._alone = alone
        self._agents = agents
        self._take_in = take_in
        self._put_back = put_back
        self._scribe = scribe
        self._follow = follow
        self._woken = asyncio.Event()
        self._claim = True
        self._all_news = True
        self._fresh: set[SessionKey] = set()
        """Sessions in which something has come that this node has not seen."""
        self._parts: dict[SessionKey, Holding] = {}
        """Sessions of which only a part was read so far."""
        self._polled_at: Instant = 0
        self._due_at: Instant | None = None
        """When to look again because something comes due, or passes its deadline."""
        self._backlog = self._more = True
        """Whether the store may have more than was taken so far, in any lane; and whether it said so."""
        self._left_out: set[LaneName] = set()
        """Lanes that had no room when the store was asked last."""
        self._started: dict[LaneName, tuple[Instant, int, int]] = {}
        """By lane: when its starts were counted last, how many there were, and how many in the second before."""
        self._doubt_until: Instant = 0
        """An answer was lost by which this node may own sessions that it does not know; 0: none was.

        What was asked may still be committed for a while, so the last look must begin after this.
        """
        self.open = True
        """False while this node takes nothing: it drains, or its lease is in doubt."""

    # Deciding.

    def may_claim(self, run: Run, now: Instant, beside: int = 0) -> bool:
        """Whether a new run's idle session becomes ours at once, or is left for whoever has room.

        `beside` counts those of the same lane that come with it.
        """
        if run.due_at is not None and run.due_at > now + self._horizon:
            return False
        stage = self._kernel.stage
        if self._alone():
            return len(stage.runs) + beside < self._settings.live_runs
        lane = stage.floor.lanes.get(run.lane)
        return lane is not None and lane.in_use + _ready(lane) + beside < _width(lane)

    @property
    def _settings(self) -> Settings:
        return self._kernel.stage.settings

    @property
    def _horizon(self) -> int:
        return _LOOKS_AHEAD * self._settings.poll_every

    def _room(self, now: Instant) -> dict[LaneName, int]:
        """How many more sessions each lane could use: its free slots, and as many as it starts in a second."""
        room: dict[LaneName, int] = {}
        for name, lane in self._kernel.stage.floor.lanes.items():
            width = _width(lane) + lane.ahead_at(now)
            backlog = min(_WIDEST_BACKLOG * width, self._rate(lane, now))
            wanted = width - lane.in_use + backlog - _ready(lane)
            if wanted > backlog // 2:
                room[name] = wanted
        return room

    def _rate(self, lane: Lane, now: Instant) -> int:
        """How many runs the lane has started in the last second or so, or would in one as it goes now."""
        counted_at, started, rate = self._started.get(lane.name, (0, 0, 0))
        passed = now - counted_at
        if passed >= SECOND:
            rate = (lane.started - started) * SECOND // max(passed, SECOND)
            self._started[lane.name] = (now, lane.started, rate)
            return rate
        so_far = lane.started - started
        if so_far >= 2 * _width(lane):
            # All that it started first must have ended, so they are short: no need to wait for the second to pass.
            so_far = so_far * SECOND // max(passed, _TOO_SHORT)
        return max(rate, so_far)

    # Being told.

    def hear(self, hint: Hint) -> None:
        match hint:
            case Hint.WORK:
                self._claim = self._backlog = self._more = True
            case Hint.NEWS:
                self._all_news = True
            case Hint.ENDED | Hint.SLOTS | Hint.JOBS:
                return
            case Hint.ALL:
                self._claim = self._backlog = self._more = self._all_news = True
        self._woken.set()

    def left_in_store(self) -> None:
        """A run was stored that nobody owns yet."""
        self._backlog = self._more = True
        self.room_made()

    def in_doubt(self) -> None:
        """An answer was lost: the store may know more sessions as ours than we do, or will soon."""
        self._doubt_until = self._clock.now() + _MAY_STILL_COMMIT
        self._all_news = True
        self._woken.set()

    def forget(self) -> None:
        """Nothing is this node's any more."""
        self._parts.clear()
        self._fresh.clear()

    def look_at(self, sessions: Iterable[SessionKey]) -> None:
        """Something came in these sessions that was not seen."""
        self._fresh.update(sessions)
        self._woken.set()

    def room_made(self) -> None:
        """Something ended: there may be room for more of what the store has."""
        if self._kernel.stage.foreign:
            self._woken.set()
        if not self._backlog or self._claim or not self.open:
            return
        room = self._room(self._clock.now())
        if room if self._more else room.keys() & self._left_out:
            self._claim = True
            self._woken.set()

    # Looking.

    async def run(self) -> None:
        while True:
            await self._sleep()
            now = self._clock.now()
            if now - self._polled_at >= self._settings.poll_every:
                self._polled_at = now
                self._claim = self._all_news = True
                self._follow()
            try:
                await self._look(now)
            except Unavailable:
                await asyncio.sleep(min(1.0, self._settings.poll_every / SECOND))
                self._claim = self._all_news = True

    async def _look(self, now: Instant) -> None:
        if self._all_news or self._fresh:
            await self._read_news()
        if self.open:
            late = self._kernel.strangers()
            if not self._alone():
                late += self._kernel.unstarted_since(now - self._settings.put_back_after)
            if late:
                self._put_back(late)
        due = self._due_at is not None and self._due_at <= now
        if self.open and (self._claim or due):
            await self._claim_some(now)

    async def _read_news(self) -> None:
        fresh, self._fresh = self._fresh, set()
        whole, self._all_news = self._all_news, False
        began_at = self._clock.now()
        complete = whole and self._doubt_until > 0
        known = self._kernel.stage.sessions
        every = {**dict.fromkeys(known), **dict.fromkeys([*self._scribe.kept, *self._parts])}
        seen = self._seen_of([*every, *fresh] if whole else fresh)
        if not seen and not complete:
            return
        self._note_what_leaves()
        try:
            holdings = await self._store.news(seen, complete)
        except BaseException:
            self._fresh |= fresh
            self._all_news |= whole
            raise
        if complete and began_at >= self._doubt_until:
            self._doubt_until = 0
        for key in seen.keys() - {holding.session for holding in holdings}:
            self._scribe.kept.pop(key, None)
            self._parts.pop(key, None)
        for holding in holdings:
            self._accept(holding)
            if holding.more:
                self.look_at((holding.session,))

    def _seen_of(self, keys: Iterable[SessionKey]) -> dict[SessionKey, int]:
        """What was seen of these sessions. Those that are just being given back must wait for that."""
        sessions = self._kernel.stage.sessions
        seen: dict[SessionKey, int] = {}
        for key in keys:
            if key in sessions:
                seen[key] = sessions[key].seen
            elif key in self._parts:
                seen[key] = self._parts[key].seen
            elif key not in self._scribe.releasing:
                seen[key] = self._scribe.kept.get(key, 0)
        return seen

    def _note_what_leaves(self) -> None:
        """From now on the kernel's view may be newer than what the store is about to answer."""
        releasing = self._scribe.releasing
        self._scribe.given_back = {key: epoch for key, (epoch, _) in releasing.items()}

    async def _accept_all(self, holdings: Iterable[Holding]) -> None:
        """A few at a time: what the store has answered meanwhile is carried out in between."""
        taken = 0
        for holding in holdings:
            if taken >= _TAKEN_AT_ONCE:
                taken = 0
                await asyncio.sleep(0)
            self._accept(holding)
            taken += 1 + len(holding.places)

    def _accept(self, holding: Holding) -> None:
        """An answer about a session that left the kernel meanwhile may be older than that: ask again."""
        key = holding.session
        if key in self._kernel.stage.sessions:
            self._parts.pop(key, None)
            self._take_in(holding)
            return
        if holding.epoch <= self._scribe.given_back.get(key, 0):
            self._parts.pop(key, None)
            self.look_at((key,))
            return
        whole = _joined(self._parts.pop(key, None), holding)
        if whole.more:
            # A session is put together only as a whole: what was decided about its last run matters to the first.
            self._parts[key] = whole
            self.look_at((key,))
        else:
            self._take_in(whole)

    async def _claim_some(self, now: Instant) -> None:
        self._claim = False
        agents = self._agents()
        room = self._room(now) if agents else {}
        self._note_what_leaves()
        try:
            claims = await self._store.claim(room, agents, now + self._horizon)
        except BaseException:
            self.in_doubt()
            raise
        self._due_at = self._look_again_at(claims.next_at, now)
        lanes = self._kernel.stage.floor.lanes
        self._more = claims.more
        self._left_out = {name for name, lane in lanes.items() if lane.settings.width} - room.keys()
        self._backlog = self._more or bool(self._left_out)
        await self._accept_all(claims.holdings)
        if claims.holdings and claims.more:
            self.room_made()

    def _look_again_at(self, next_at: Instant | None, now: Instant) -> Instant | None:
        """What comes due is claimed ahead; what is near already was, so only its deadline can be meant."""
        if next_at is None or next_at <= now:
            return None
        ahead = next_at - self._horizon
        return ahead if ahead > now else next_at

    async def _sleep(self) -> None:
        """Until told, until the next poll, or until something comes due."""
        now = self._clock.now()
        until = self._polled_at + self._settings.poll_every
        if self._due_at is not None and self.open:
            until = min(until, self._due_at)
        if not self._alone() and self._kernel.stage.runs:
            until = min(until, now + self._settings.put_back_after)
        if (self._claim and self.open) or self._fresh or self._all_news:
            until = now
        pause_s = max(_LEAST_PAUSE_S, (until - now) / SECOND)
        self._woken.clear()
        if until > now:
            try:
                async with asyncio.timeout(pause_s):
                    await self._woken.wait()
            except TimeoutError:
                pass
        else:
            await asyncio.sleep(0)


def _joined(part: Holding | None, rest: Holding) -> Holding:
    """What was read of a session so far, with what came next."""
    if part is None or part.epoch != rest.epoch:
        return rest
    return msgspec.structs.replace(
        rest, places=(*part.places, *rest.places), orders=(*part.orders, *rest.orders)
    )


def _width(lane: Lane) -> int:
    """How wide the lane can get: one that is limited over all nodes counts by more than its permits just now."""
    limit = lane.settings.cluster_limit
    return lane.width if limit is None else min(lane.settings.width, limit)


def _ready(lane: Lane) -> int:
    return sum(lane.ready)
