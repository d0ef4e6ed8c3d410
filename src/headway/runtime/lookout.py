"""The lookout: jobs that somebody looks for before their agent is woken (X-7, H-2), beside the timekeeper's work.

A node claims a job before it looks, so that a gate is asked once over all nodes, and claims only what it can look
at right away: what waits for a free look stays due, for any node. Gates and heartbeats have looks of their own, so
that slow gates hold up no heartbeat (H-4). If the node dies on the way, the claim ends by itself.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from headway.core.firing import FIRED, Decision, Look, Skip
from headway.model.errors import Unavailable
from headway.model.job import Advance, JobRecord
from headway.model.run import JobId
from headway.model.time import MINUTE, Instant, Span
from headway.ports import Clock, Store
from headway.runtime.callbacks import Callbacks
from headway.runtime.looks import Looks
from headway.runtime.replies import is_own_cancel

_AT_ONCE = 32
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
        decide: Callable[[JobRecord, Instant, Look, Instant | None], Decision],
        carry_out: Callable[[Sequence[Decision]], Awaitable[list[bool]]],
        free: Callable[[], None],
        in_doubt: Callable[[], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._looks = looks
        self._callbacks = callbacks
        self._decide = decide
        self._carry_out = carry_out
        self._free = free
        self._in_doubt = in_doubt
        self._gates = 0
        self._heartbeats = 0

    def abilities(self) -> Sequence[str]:
        """What jobs may need of this node just now: nothing of a kind for which no look is free."""
        gates = self._looks.gates() if self._gates < _AT_ONCE else ()
        heartbeats = self._looks.heartbeats() if self._heartbeats < _AT_ONCE else ()
        return [*gates, *heartbeats]

    async def look_for(
        self, records: Sequence[JobRecord], now: Instant, places: Mapping[JobId, Instant]
    ) -> list[bool]:
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
        for record, ticking, answer in zip(mine, claimed, answers, strict=True):
            if answer is not None:
                stands = msgspec.structs.replace(ticking, version=ticking.version + 1)
                looked_for = msgspec.structs.replace(record, ticking=stands)
                self._count(looked_for, 1)
                self._callbacks.start(self._look(looked_for, places.get(record.job.id)))
        return [answer is not None for answer in answers]

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
        try:
            look = await self._looked(record)
        finally:
            self._count(record, -1)
            self._free()
        if look is not None:
            await self._fire(record, look, catch_up_at)

    async def _looked(self, record: JobRecord) -> Look | None:
        try:
            return await self._looks.look(record.job, self._clock.wall())
        except Unavailable:
            # The claim ends by itself, and then somebody looks again.
            return None
        except BaseException as error:
            if is_own_cancel(error, asyncio.current_task()):
                raise
            return Skip(self._looks.failed(record.job, error))

    async def _fire(self, record: JobRecord, look: Look, catch_up_at: Instant | None) -> None:
        try:
            for sight in (look, Skip(FIRED)):
                now = self._clock.wall()
                # The second is kept only if the job is what it was, so that nothing else spoke against the first.
                if all(await self._carry_out([self._decide(record, now, sight, catch_up_at)])):
                    break
        except Unavailable:
            self._in_doubt()
