"""The sweeper: looks for workers that nobody wants any more, and ends them (D-8).

It is a safety net beside the lease. The store alone says who is wanted: a worker whose run goes on with the same
attempt is left alone, whichever node of this machine it belongs to, and also while that node is dead and nobody
has taken its sessions over yet, because it may still be adopted (W-2). What cannot be found out now is left for
later.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from headway.core.kernel import Kernel
from headway.model.errors import Unavailable
from headway.model.run import AgentName, RunId
from headway.model.settings import Settings
from headway.model.time import MINUTE, SECOND, Span
from headway.model.views import RunView
from headway.model.worker import Worker
from headway.ports import Clock, Store, WorkerQuery
from headway.runtime.beats import dead, is_alive, is_unwanted, worker_id
from headway.runtime.herald import Herald
from headway.runtime.replies import describe
from headway.turn import KeepsWorkers, Sight

_AGAIN_S = 30.0
"""Before the next scan, if something could not be found out."""
_UNKNOWN_GRACE: Span = MINUTE
"""A worker of a run that the store does not know is left alone until it is so old."""
_FRESH: Span = 5 * SECOND
"""An answer of the store is acted on within this, or not at all: this process may have been frozen since."""
_GATHERS_S = 2.0
"""Who asks for a scan has decided something just now: first it is stored."""
_END_WITHIN_S = 60.0
_AT_ONCE = 500


class Sweeper:
    """Scans the machine for workers that are left over, and the store for those whose machine is gone."""

    def __init__(
        self,
        kernel: Kernel,
        store: Store,
        clock: Clock,
        settings: Settings,
        *,
        keepers: Mapping[AgentName, KeepsWorkers],
        look: Callable[[AgentName], Awaitable[Sequence[Sight] | None]],
        needed: asyncio.Event,
        herald: Herald,
    ) -> None:
        self._kernel = kernel
        self._store = store
        self._clock = clock
        self._every_s = settings.scan_every / SECOND
        self._silent = (settings.missed_beats + 1) * settings.beat_every
        self._keepers = keepers
        self._look = look
        self._needed = needed
        self._herald = herald
        self._asked = asyncio.Event()
        self._failing: set[str] = set()
        """Workers that could not be ended the last time."""
        self._odd: set[str] = set()
        """Workers about which the store could not be asked."""

    def scan_soon(self) -> None:
        """A worker may just have become unwanted."""
        self._asked.set()

    async def run(self) -> None:
        """Scan once after the start, then now and then, and when asked."""
        await self._needed.wait()
        while True:
            self._asked.clear()
            await asyncio.sleep(_GATHERS_S)
            pause_s = self._every_s if await self.scan() else min(_AGAIN_S, self._every_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._asked.wait()

    async def scan(self) -> bool:
        """Once. Answers whether everything could be found out."""
        try:
            whole = True
            for agent, keeper in tuple(self._keepers.items()):
                whole &= await self._scan_workers(agent, keeper)
            await self._settle_silent()
        except Unavailable:
            return False
        return whole

    # Workers on this machine.

    async def _scan_workers(self, agent: AgentName, keeper: KeepsWorkers) -> bool:
        sights = await self._look(agent)
        if sights is None:
            return False
        whole = True
        for sight in sights:
            if not self._is_live(sight.run_id, sight.attempt):
                whole &= await self._looked_at(agent, keeper, sight)
        return whole

    async def _looked_at(self, agent: AgentName, keeper: KeepsWorkers, sight: Sight) -> bool:
        """One of whom nothing can be found out, ever, is no reason to leave the others or the node."""
        key = worker_id(sight.run_id, sight.attempt)
        try:
            known = await self._scan_worker(agent, keeper, sight)
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - what lies on a machine may have any name
            if key not in self._odd:
                self._odd.add(key)
                what = f"finding out about the worker {key!r}"
                self._herald.callback_failed(what, describe(error))
            return True
        self._odd.discard(key)
        return known

    async def _scan_worker(self, agent: AgentName, keeper: KeepsWorkers, sight: Sight) -> bool:
        asked_at = self._clock.elapsed()
        view = await self._store.find(sight.run_id)
        if not self._is_left_over(sight, view):
            return True
        if self._is_live(sight.run_id, sight.attempt):
            return True
        if self._clock.elapsed() - asked_at > _FRESH:
            return False
        if not await self._ended(keeper, sight):
            return False
        if not sight.over:
            self._herald.orphan_ended(sight.run_id, agent, sight.attempt)
        worker = await self._store.find_worker(worker_id(sight.run_id, sight.attempt))
        if worker is not None and is_alive(worker):
            await self._store.beat([dead(worker, sight.exit_code)], self._clock.now())
        return True

    def _is_left_over(self, sight: Sight, view: RunView | None) -> bool:
        """A start is stored before its worker is made: a run that is not known, is known no more."""
        if view is None:
            return self._clock.now() - sight.started_at > _UNKNOWN_GRACE
        return is_unwanted(sight.attempt, view)

    # Workers in the store whose machine may be gone.

    async def _settle_silent(self) -> None:
        """A worker that nobody looks after any more is dead, once its run has ended or goes on elsewhere."""
        cursor: str | None = None
        while True:
            page = await self._store.workers(WorkerQuery(limit=_AT_ONCE, cursor=cursor))
            lost = [worker for worker in page.workers if await self._is_lost(worker)]
            if lost:
                await self._store.beat([dead(worker) for worker in lost], self._clock.now())
            cursor = page.cursor
            if cursor is None:
                return

    async def _is_lost(self, worker: Worker) -> bool:
        if self._clock.now() - worker.beat_at <= self._silent:
            return False
        if self._is_live(worker.run_id, worker.attempt):
            return False
        try:
            view = await self._store.find(worker.run_id)
        except Unavailable:
            raise
        except Exception:  # noqa: BLE001 - a newer version's run: its own nodes settle it
            return False
        return view is None or is_unwanted(worker.attempt, view)

    def _is_live(self, run_id: RunId, attempt: int) -> bool:
        live = self._kernel.stage.runs.get(run_id)
        return live is not None and live.ticket != 0 and live.attempt == attempt

    async def _ended(self, keeper: KeepsWorkers, sight: Sight) -> bool:
        """Whether it could be ended; that one cannot be is told once."""
        key = worker_id(sight.run_id, sight.attempt)
        try:
            async with asyncio.timeout(_END_WITHIN_S):
                await keeper.end(sight.run_id, sight.attempt)
        except Exception as error:  # noqa: BLE001 - the machine may refuse it, and the node goes on
            if key not in self._failing:
                self._failing.add(key)
                what = f"ending the worker of run {sight.run_id}"
                self._herald.callback_failed(what, describe(error))
            return False
        self._failing.discard(key)
        return True
