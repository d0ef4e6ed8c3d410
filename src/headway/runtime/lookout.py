"""The lookout: jobs that somebody looks for before their agent is woken (X-7, H-2), beside the timekeeper's work.

A node claims a job before it looks, so that a gate is asked once over all nodes, and claims only what it can look
at right away: what waits for a free look stays due, for any node. Gates and heartbeats have looks of their own, so
that slow gates hold up no heartbeat (H-4). If the node dies on the way, the claim ends by itself.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from headway.core.firing import FIRED, Decision, Look, Skip, catch_up_pace, is_late
from headway.model.errors import Unavailable
from headway.model.job import Advance, JobRecord
from headway.model.time import MINUTE, Instant, Span
from headway.ports import Clock, Store
from headway.runtime.callbacks import Callbacks
from headway.runtime.looks import Looks
from headway.runtime.replies import is_own_cancel

_AT_ONCE = 32
_TRY_AGAIN_S = 1.0
_CLAIM_LASTS: Span = 2 * MINUTE
"""While one node looks, no other does, for so long."""


class Lookout:
    """Claims jobs, looks, and has decided what follows."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        looks: Looks,
        callbacks: Callbacks,
        *,
        spread: Span,
        decide: Callable[[JobRecord, Instant, Look, Instant | None], Decision],
        carry_out: Callable[[Sequence[Decision]], Awaitable[list[bool]]],
        free: Callable[[], None],
        in_doubt: Callable[[], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._looks = looks
        self._callbacks = callbacks
        self._spread = spread
        self._decide = decide
        self._carry_out = carry_out
        self._free = free
        self._in_doubt = in_doubt
        self._next_place: Instant = 0
        self._pace: Span = 0
        self._gates = 0
        self._heartbeats = 0

    def abilities(self) -> Sequence[str]:
        """What jobs may need of this node just now: nothing of a kind for which no look is free."""
        gates = self._looks.gates() if self._gates < _AT_ONCE else ()
        heartbeats = self._looks.heartbeats() if self._heartbeats < _AT_ONCE else ()
        return [*self._looks.plain(), *gates, *heartbeats]

    async def look_for(self, records: Sequence[JobRecord], now: Instant) -> list[bool]:
        """Claim as many of these as there are free looks, and look. Answers which were claimed."""
        mine = self._within_reach(records)
        if not mine:
            return []
        claimed = [
            msgspec.structs.replace(record.ticking, claimed_until=now + _CLAIM_LASTS)
            for record in mine
        ]
        answers = await self._store.advance(
            [
                Advance(record.job.id, record.ticking.version, ticking)
                for record, ticking in zip(mine, claimed, strict=True)
            ]
        )
        pace = catch_up_pace(sum(is_late(record, now) for record in records), self._spread)
        for record, ticking, answer in zip(mine, claimed, answers, strict=True):
            if answer is not None:
                stands = msgspec.structs.replace(ticking, version=ticking.version + 1)
                looked_for = msgspec.structs.replace(record, ticking=stands)
                place = self._place(pace) if is_late(record, now) else None
                self._count(looked_for, 1)
                self._callbacks.start(self._look(looked_for, place))
        return [answer is not None for answer in answers]

    def _place(self, pace: Span) -> Instant:
        """When the next one starts that makes up for a missed firing: one after the other (C-6)."""
        now = self._clock.now()
        # Of those that were missed together fewer and fewer are left: the first of them say how close they come.
        self._pace = pace if self._next_place <= now else min(self._pace, pace)
        place = max(now, self._next_place)
        self._next_place = place + self._pace
        return place

    def _within_reach(self, records: Sequence[JobRecord]) -> list[JobRecord]:
        heartbeats = [record for record in records if record.job.heartbeat is not None]
        gates = [record for record in records if record.job.heartbeat is None]
        return [*heartbeats[: _AT_ONCE - self._heartbeats], *gates[: _AT_ONCE - self._gates]]

    def _count(self, record: JobRecord, change: int) -> None:
        if record.job.heartbeat is not None:
            self._heartbeats += change
        else:
            self._gates += change

    async def _look(self, record: JobRecord, catch_up_at: Instant | None) -> None:
        """While the claim lasts, a store that is away is asked again; then somebody else looks."""
        until = record.ticking.claimed_until or 0
        try:
            look: Look | None = None
            while look is None and self._clock.wall() < until:
                look = await self._looked(record)
        finally:
            self._count(record, -1)
            self._free()
        while look is not None and self._clock.wall() < until:
            if await self._fired(record, look, catch_up_at):
                break

    async def _looked(self, record: JobRecord) -> Look | None:
        try:
            return await self._looks.look(record.job, self._clock.wall())
        except Unavailable:
            await asyncio.sleep(_TRY_AGAIN_S)
            return None
        except BaseException as error:
            if is_own_cancel(error, asyncio.current_task()):
                raise
            return Skip(self._looks.failed(record.job, error))

    async def _fired(self, record: JobRecord, look: Look, catch_up_at: Instant | None) -> bool:
        """Whether the store has answered; what it refused was changed by somebody, or fired before."""
        try:
            for sight in (look, Skip(FIRED)):
                now = self._clock.wall()
                # The second is kept only if the job is what it was, so that nothing else spoke against the first.
                if all(await self._carry_out([self._decide(record, now, sight, catch_up_at)])):
                    break
        except Unavailable:
            self._in_doubt()
            await asyncio.sleep(_TRY_AGAIN_S)
            return False
        return True
