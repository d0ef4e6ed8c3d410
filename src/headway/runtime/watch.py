"""The watch: looks after the workers of this node, and at the machine that they are on (D-8).

A worker's sign of life is a beat. Each worker is looked after by the node whose attempt it executes, and by no
other: nodes of one machine see each other's workers, and leave them alone. A worker that has missed more beats
than it may is dead: its attempt ends as if its node had died (D-7). Between beats there is a look when an attempt
has begun, so that who asks for the workers sees them soon; one that is over before is never written down. A worker
whose attempt has ended is written down as dead at once, also one that another process had written down as alive.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from headway.core.actions import Start
from headway.core.kernel import Kernel
from headway.core.live import LiveRun
from headway.model.errors import Unavailable, WorkerLost
from headway.model.outcome import Outcome
from headway.model.run import AgentName, Run, RunId
from headway.model.settings import Settings
from headway.model.time import SECOND, Instant, span_text
from headway.model.views import LaneView
from headway.model.worker import Snapshot, Worker
from headway.ports import Clock, Store
from headway.runtime import beats
from headway.runtime.attempts import Attempts
from headway.runtime.beats import is_alive, worker_id
from headway.runtime.herald import Herald
from headway.runtime.machine import Gauge, Load, snapshot_of
from headway.runtime.replies import describe
from headway.turn import KeepsWorkers, Sight

_FIRST_S = 1.0
"""The first look at the machine comes so long after the start: then it knows what the cores were at."""
_GATHERS_S = 2.0
"""What begins within this is looked at together."""
_LOOK_WITHIN_S = 30.0


class Watch:
    """Keeps the store's sight of this node's workers and machine up to date, as long as it runs."""

    def __init__(
        self,
        kernel: Kernel,
        store: Store,
        clock: Clock,
        settings: Settings,
        *,
        attempts: Attempts,
        herald: Herald,
        machine: Gauge,
        host: str,
        node: Callable[[], int],
        lanes: Callable[[], Iterable[LaneView]],
        scan_soon: Callable[[], None],
    ) -> None:
        self._kernel = kernel
        self._store = store
        self._clock = clock
        self._settings = settings
        self._attempts = attempts
        self._herald = herald
        self.machine = machine
        self._host = host
        self._node = node
        self._lanes = lanes
        self._scan_soon = scan_soon
        self.keepers: dict[AgentName, KeepsWorkers] = {}
        """The runners of this node that have workers, by their agents."""
        self.workers: dict[str, Worker] = {}
        """Those of this node as they were last seen; dead ones until the store knows it."""
        self.snapshot: Snapshot | None = None
        """The latest one."""
        self._busy: set[str] = set()
        """Workers that were busy at a look since the last beat."""
        self._blind: set[AgentName] = set()
        """Agents whose runner could not look the last time: that is told once."""
        self._refused = False
        """Whether the machine could not be looked at the last time."""
        self.needed = asyncio.Event()
        """Set once there is something to look at, or somebody to whom it is shown."""
        self._begun: set[str] = set()
        """Workers that were started here and have not ended: nobody else has written them down."""
        self._inherited: dict[str, Outcome | None] = {}
        """Workers that ended here and that another process may have written down, with how."""
        self._has_begun = False
        """Whether a worker has begun for which no look is planned yet."""
        self._changed = asyncio.Event()

    def keep(self, agent: AgentName, runner: object) -> bool:
        """An agent that runs here has this runner from now on. Answers whether it keeps workers.

        In a program that is alone with its memory, and in one that only asks, nothing ticks without need.
        """
        keeps = isinstance(runner, KeepsWorkers)
        if isinstance(runner, KeepsWorkers):
            self.keepers[agent] = runner
        else:
            self.keepers.pop(agent, None)
        if keeps or self._store.durable:
            self.needed.set()
        return keeps

    @property
    def living(self) -> list[Worker]:
        """The workers of attempts that go on here."""
        return [each for each in self.workers.values() if is_alive(each) and self._is_live(each)]

    # What the carrier tells.

    def began(self, start: Start) -> None:
        if start.run.agent in self.keepers:
            key = worker_id(start.run.id, start.attempt)
            if start.adopts:
                self._begun.discard(key)
            else:
                self._begun.add(key)
            self._inherited.pop(key, None)
            self._has_begun = True
            self._changed.set()

    def ended(self, run: Run, attempt: int, outcome: Outcome | None = None) -> None:
        """How an attempt ended is in the store: nothing of its worker is needed any more."""
        keeper = self.keepers.get(run.agent)
        if keeper is None or not attempt:
            return
        try:
            keeper.forget(run.id, attempt)
        except Exception as error:  # noqa: BLE001 - what it could not remove the scan finds
            self._herald.callback_failed(f"forgetting the worker of run {run.id}", describe(error))
        key = worker_id(run.id, attempt)
        worker = self.workers.get(key)
        if worker is not None:
            self.workers[key] = beats.ended(worker, outcome)
            self._changed.set()
        elif key not in self._begun:
            self._inherited[key] = outcome
            self._changed.set()
        self._begun.discard(key)

    def abandoned(self) -> None:
        """An attempt was left behind; its worker may go on."""
        self._scan_soon()

    # Looking, again and again.

    async def run(self) -> None:
        await self.needed.wait()
        self._load()
        every = self._settings.beat_every
        beat_at = self._clock.elapsed() + min(every, round(_FIRST_S * SECOND))
        look_at: Instant | None = None
        while True:
            await self._change_before(beat_at if look_at is None else min(beat_at, look_at))
            now = self._clock.elapsed()
            if self._has_begun:
                self._has_begun = False
                look_at = now + round(_GATHERS_S * SECOND) if look_at is None else look_at
            if now >= beat_at:
                # One at a time, also after this process was frozen: misses are counted by the minute.
                beat_at = beat_at + every if beat_at + every > now else now + every
                await self._beat(await self._look())
                await self._take_snapshot()
            elif look_at is not None and now >= look_at:
                look_at = None
                await self._settle(await self._look())
            else:
                await self._close()

    async def flush(self) -> None:
        """The node leaves: none of its workers is left, and the store is told so."""
        await self._store_beats(await self._over())

    async def _change_before(self, at: Instant) -> None:
        """Wait until something has begun or ended, or until then."""
        with suppress(TimeoutError):
            async with asyncio.timeout((at - self._clock.elapsed()) / SECOND):
                await self._changed.wait()
        self._changed.clear()

    async def _look(self) -> Mapping[str, Sight]:
        """The workers whose attempts go on here."""
        found: list[Sight] = []
        for agent in tuple(self.keepers):
            found += await self.look_at(agent) or ()
        # Asked when all have looked, which takes a while: what is over by now is no worker of ours.
        return {
            worker_id(sight.run_id, sight.attempt): sight
            for sight in found
            if self._live(sight.run_id, sight.attempt) is not None
        }

    async def look_at(self, agent: AgentName) -> Sequence[Sight] | None:
        """All workers of an agent on this machine. None: its runner could not look, which is told once."""
        try:
            async with asyncio.timeout(_LOOK_WITHIN_S):
                sights = await self.keepers[agent].look()
        except Exception as error:  # noqa: BLE001 - the machine may refuse it, and the node goes on
            if agent not in self._blind:
                self._blind.add(agent)
                what = f"looking at the workers of agent {agent!r}"
                self._herald.callback_failed(what, describe(error))
            return None
        self._blind.discard(agent)
        # What a worker did is told to whoever looks first; it counts until the next beat.
        self._busy.update(worker_id(each.run_id, each.attempt) for each in sights if each.busy)
        return sights

    async def _settle(self, sights: Mapping[str, Sight]) -> None:
        """Write down who is new, and who is gone."""
        await self._write([self._seen(sight) for sight in sights.values() if self._is_new(sight)])

    async def _beat(self, sights: Mapping[str, Sight]) -> None:
        """Write down how all are, and whom nobody has seen; who was missed too often is dead."""
        found = [
            self._seen(sight)
            for key, sight in sights.items()
            if self._is_new(sight) or is_alive(self.workers[key])
        ]
        missed = [
            beats.unseen(worker, self._settings.missed_beats)
            for key, worker in self.workers.items()
            if key not in sights and self._should_be_there(worker)
        ]
        self._busy.clear()
        self._begun &= {
            worker_id(live.run.id, live.attempt) for live in self._kernel.stage.attempts.values()
        }
        await self._write([*found, *missed])
        dead = [each for each in (*found, *missed) if each.missed and not is_alive(each)]
        # Together: what made them fall silent may make each of them slow to end.
        await asyncio.gather(*map(self._bury, dead))

    def _is_new(self, sight: Sight) -> bool:
        known = self.workers.get(worker_id(sight.run_id, sight.attempt))
        return known is None or not beats.is_same(known, sight)

    def _should_be_there(self, worker: Worker) -> bool:
        """Whether its attempt goes on here, and its runner could look."""
        looked = worker.agent in self.keepers and worker.agent not in self._blind
        return is_alive(worker) and looked and self._is_live(worker)

    def _seen(self, sight: Sight) -> Worker:
        live = self._live(sight.run_id, sight.attempt)
        assert live is not None
        key = worker_id(sight.run_id, sight.attempt)
        return beats.seen(
            sight,
            None if self._is_new(sight) else self.workers[key],
            self._clock.now(),
            run=live.run,
            host=self._host,
            node=self._node(),
            missed_beats=self._settings.missed_beats,
            was_busy=key in self._busy,
        )

    async def _write(self, workers: Sequence[Worker]) -> None:
        """These, and those that are over. A store that is away is told the next time."""
        self.workers.update((worker.id, worker) for worker in workers)
        with suppress(Unavailable):
            await self._store_beats([*workers, *await self._over()])

    async def _close(self) -> None:
        """Write down whose end was told."""
        told = [each for each in self.workers.values() if not is_alive(each)]
        over = [each for each in told if not self._is_live(each)]
        with suppress(Unavailable):
            await self._store_beats([*over, *await self._over_unseen()])

    async def _over(self) -> list[Worker]:
        """Those whose attempt is over. One that was lost to another node may go on there: the store says so."""
        over: list[Worker] = []
        for worker in tuple(self.workers.values()):
            if self._is_live(worker):
                continue
            if is_alive(worker):
                view = await self._store.find(worker.run_id)
                if view is not None and not beats.is_unwanted(worker.attempt, view):
                    continue
            over.append(beats.dead(worker))
        return [*over, *await self._over_unseen()]

    async def _over_unseen(self) -> list[Worker]:
        """Those that ended before this process ever saw them, if another one had written them down.

        Not those of another machine: what is there only its own nodes know.
        """
        over: list[Worker] = []
        for key, outcome in tuple(self._inherited.items()):
            worker = await self._store.find_worker(key)
            if worker is None or worker.host != self._host or not is_alive(worker):
                self._inherited.pop(key, None)
            else:
                over.append(beats.ended(worker, outcome))
        return over

    async def _store_beats(self, workers: Sequence[Worker]) -> None:
        if not workers:
            return
        await self._store.beat(workers, self._clock.now())
        for worker in workers:
            if not is_alive(worker) and not self._is_live(worker):
                self.workers.pop(worker.id, None)
                self._inherited.pop(worker.id, None)

    async def _bury(self, worker: Worker) -> None:
        """It has missed too many beats: it is killed, and its attempt returns: nobody knows how it ended."""
        live = self._live(worker.run_id, worker.attempt)
        keeper = self.keepers.get(worker.agent)
        if live is None or keeper is None:
            return
        ticket, silent = live.ticket, span_text(worker.missed * self._settings.beat_every)
        where = f"its worker (pid {worker.pid} on {worker.host})"
        error = f"{where} has shown no sign of life for {silent}"
        self._attempts.lose(
            ticket, WorkerLost(error, {"pid": worker.pid, "output": "\n".join(worker.lines)})
        )
        try:
            async with asyncio.timeout(self._settings.cancel_grace / SECOND):
                await keeper.end(worker.run_id, worker.attempt)
        except Exception as failed:  # noqa: BLE001 - however it is with the worker, nobody waits for it
            self._herald.callback_failed(f"ending {where}", describe(failed))
        work = self._attempts.interrupt(ticket)
        if work is None:
            return
        await asyncio.wait((work,), timeout=self._settings.cancel_grace / SECOND)
        left = self._attempts.give_up(ticket)
        if left is not None:
            self._herald.abandoned(left)
            self._scan_soon()

    async def _take_snapshot(self) -> None:
        load = self._load()
        if load is None:
            return
        self.snapshot = snapshot_of(
            load,
            self._lanes(),
            host=self._host,
            node=self._node(),
            at=self._clock.now(),
            workers=len(self.living),
        )
        with suppress(Unavailable):
            await self._store.keep_snapshot(self.snapshot)

    def _load(self) -> Load | None:
        """How busy the machine is. None: it could not be looked at, which is told once."""
        try:
            load = self.machine.look()
        except Exception as error:  # noqa: BLE001 - a system may hide what it counts, and the node goes on
            if not self._refused:
                self._refused = True
                self._herald.callback_failed("looking at the machine", describe(error))
            return None
        self._refused = False
        return load

    def _is_live(self, worker: Worker) -> bool:
        return self._live(worker.run_id, worker.attempt) is not None

    def _live(self, run_id: RunId, attempt: int) -> LiveRun | None:
        """The run, if this attempt of it goes on here."""
        live = self._kernel.stage.runs.get(run_id)
        return live if live is not None and live.ticket and live.attempt == attempt else None
