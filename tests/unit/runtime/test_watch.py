"""Workers show signs of life, the dead are noticed, machines are looked at (D-8). In virtual time."""

import asyncio
from collections.abc import Sequence
from typing import Self

import pytest

from headway import Handle, Outcome, Reason, Reply, State, Turn
from headway.model import events
from headway.model.errors import StoreUnavailable
from headway.model.run import AgentName, Run, RunId
from headway.model.settings import AgentSettings, Settings
from headway.model.time import MINUTE, SECOND, Instant
from headway.model.views import RunView
from headway.model.words import WorkerKind, WorkerState
from headway.model.worker import Snapshot, Worker
from headway.ports import Clock, SnapshotQuery, WorkerQuery
from headway.runtime.clock import clock_for
from headway.runtime.engine import Engine
from headway.runtime.machine import Load
from headway.store.memory import MemoryStore
from headway.testing import virtual_time
from tests.unit.runtime.keeping import Body, CalmMachine, Field, FieldRunner
from tests.unit.runtime.worlds import moment, now_s

AGENT = AgentName("coder")


class CountingStore(MemoryStore):
    """A store in memory that counts what is written about workers and machines, and may be away."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        super().__init__(settings, clock)
        self.beaten: list[tuple[float, tuple[str, ...]]] = []
        self.taken: list[float] = []
        self.away = False

    async def beat(self, workers: Sequence[Worker], at: Instant) -> None:
        self._answer()
        self.beaten.append((now_s(), tuple(str(worker.state) for worker in workers)))
        await super().beat(workers, at)

    async def keep_snapshot(self, snapshot: Snapshot) -> None:
        self._answer()
        self.taken.append(now_s())
        await super().keep_snapshot(snapshot)

    async def find(self, run_id: RunId) -> RunView | None:
        self._answer()
        return await super().find(run_id)

    def _answer(self) -> None:
        if self.away:
            raise StoreUnavailable("the store", "connection refused")


class LastingStore(CountingStore):
    """As if others could read it later."""

    durable = True


class World:
    """A node on a machine with workers."""

    def __init__(
        self, field: Field | None = None, kind: type[CountingStore] = CountingStore
    ) -> None:
        clock = clock_for(asyncio.get_running_loop())
        self.settings = Settings()
        self.store = kind(self.settings, clock)
        self.engine = Engine(self.settings, self.store, clock, host="here")
        self.field = Field() if field is None else field
        self.runner = FieldRunner(self.field)
        self.heard: list[events.Event] = []

    async def __aenter__(self) -> Self:
        self.engine.register(AGENT, self.runner, AgentSettings(max_attempts=1))
        await self.engine.start()
        self.engine.bus.tap(self.heard.append)
        return self

    async def __aexit__(self, *_: object) -> None:
        for body in self.field.bodies.values():
            if not body.ended.done():
                body.ended.set_result(0)
        await self.engine.close(0)

    async def begin(self, text: str = "work", **options: object) -> tuple[Handle, Body]:
        """A run whose worker is there."""
        handle = await self.engine.delegate(0, AGENT, text, {"session": text, **options})
        await moment()
        return handle, self.field.bodies[handle.id, 1]

    async def worker(self, handle: Handle, attempt: int = 1) -> Worker:
        found = await self.store.find_worker(f"{handle.id}.{attempt}")
        assert found is not None
        return found

    def told(self, kind: type[events.Event]) -> int:
        return sum(type(event) is kind for event in self.heard)


@virtual_time
async def test_d8_a_worker_beats_each_minute_with_what_it_is_at_and_wrote_last() -> None:
    async with World() as world:
        handle, body = await world.begin()
        body.lines = tuple(f"line {number}" for number in range(30))
        await asyncio.sleep(10)
        worker = await world.worker(handle)
        assert (worker.state, worker.pid, worker.host) == (WorkerState.ALIVE, body.pid, "here")
        assert worker.lines == tuple(f"line {number}" for number in range(20, 30))
        body.busy = True
        await asyncio.sleep(60)
        assert (await world.worker(handle)).state is WorkerState.BUSY
        body.busy = False
        await asyncio.sleep(60)
        worker = await world.worker(handle)
        assert (worker.state, worker.missed) == (WorkerState.IDLE, 0)
        beats = await world.store.beats(worker.id, 10)
        assert [beat.state for beat in beats][:2] == [WorkerState.IDLE, WorkerState.BUSY]
        assert beats[0].at - beats[1].at == MINUTE


@virtual_time
async def test_d8_two_missed_beats_are_forgiven_the_third_is_death_and_the_attempt_is_lost() -> (
    None
):
    async with World() as world:
        handle, body = await world.begin()
        await asyncio.sleep(10)
        body.answers = False
        await asyncio.sleep(120)
        worker = await world.worker(handle)
        assert (worker.missed, worker.state) == (2, WorkerState.ALIVE)
        assert world.field.killed == []
        await asyncio.sleep(60)
        outcome = await handle.wait()
        assert (outcome.state, outcome.reason) == (State.FAILED, Reason.ORPHANED)
        assert "no sign of life for 3m" in outcome.error
        assert world.field.killed == [(handle.id, 1)]
        assert (await world.worker(handle)).state is WorkerState.DEAD
        assert world.told(events.WorkerDied) == 1


class StuckRunner(FieldRunner):
    """Its workers cannot be ended, and it does not say so."""

    async def end(self, run_id: RunId, attempt: int) -> None:
        await asyncio.sleep(1_000_000)


@virtual_time
async def test_s3_many_that_die_together_and_cannot_be_ended_are_left_behind_in_time() -> None:
    async with World() as world:
        world.engine.register(AGENT, StuckRunner(world.field), AgentSettings(max_attempts=1))
        begun = [await world.begin(f"work {number}") for number in range(20)]
        await asyncio.sleep(10)
        for _, body in begun:
            body.answers = False
        await asyncio.sleep(3 * 60 + 3 * world.settings.cancel_grace / SECOND)
        assert world.told(events.CallbackFailed) == 20, "each was tried"
        for handle, _ in begun:
            outcome = await asyncio.wait_for(handle.wait(), 1)
            assert (outcome.state, outcome.reason) == (State.FAILED, Reason.ORPHANED)
        assert world.told(events.AttemptAbandoned) == 20


@virtual_time
async def test_d8_a_worker_that_answers_again_in_time_lives() -> None:
    async with World() as world:
        handle, body = await world.begin()
        await asyncio.sleep(10)
        body.answers = False
        await asyncio.sleep(120)
        body.answers = True
        await asyncio.sleep(60)
        assert (await world.worker(handle)).missed == 0
        body.answers = False
        await asyncio.sleep(120)
        assert (await world.worker(handle)).missed == 2
        assert not world.field.killed
        body.ended.set_result(0)
        assert (await handle.wait()).ok


@virtual_time
async def test_d8_a_worker_that_is_not_seen_any_more_is_missed_too() -> None:
    """Also where the runner's own call does not notice: then it is interrupted."""
    async with World() as world:
        world.runner.deaf = True
        handle, _ = await world.begin()
        await asyncio.sleep(10)
        del world.field.bodies[handle.id, 1]
        await asyncio.sleep(200)
        assert (await handle.wait()).reason is Reason.ORPHANED
        assert world.told(events.WorkerDied) == 1


@virtual_time
async def test_d7_a_run_whose_worker_died_is_tried_again_where_attempts_are_left() -> None:
    async with World() as world:
        handle, body = await world.begin(max_attempts=2)
        await asyncio.sleep(10)
        body.answers = False
        await asyncio.sleep(200)
        assert set(world.field.bodies) == {(handle.id, 2)}
        world.field.bodies[handle.id, 2].ended.set_result(0)
        assert (await handle.wait()).text == "exit 0"
        await asyncio.sleep(10)
        assert (await world.worker(handle, 1)).state is WorkerState.DEAD
        assert (await world.worker(handle, 2)).state is WorkerState.DEAD


@virtual_time
async def test_a_runner_that_cannot_look_kills_nobody_and_is_told_of_once() -> None:
    async with World() as world:
        handle, body = await world.begin()
        await asyncio.sleep(10)
        world.runner.breaks = PermissionError("no")
        await asyncio.sleep(600)
        assert world.told(events.CallbackFailed) == 1
        world.runner.breaks = None
        await asyncio.sleep(60)
        assert (await world.worker(handle)).missed == 0
        body.ended.set_result(3)
        assert (await handle.wait()).text == "exit 3"


@virtual_time
async def test_an_attempt_that_has_ended_is_forgotten_and_its_worker_dead() -> None:
    async with World() as world:
        handle, body = await world.begin()
        await asyncio.sleep(10)
        body.ended.set_result(0)
        await handle.wait()
        await moment()
        assert world.field.forgotten == [(handle.id, 1)]
        await asyncio.sleep(5)
        assert (await world.worker(handle)).state is WorkerState.DEAD
        assert (await world.store.workers(WorkerQuery())).workers == ()


class TellingRunner(FieldRunner):
    """Its workers are programs: they wrote something, and ended with a code."""

    async def run(self, turn: Turn) -> Reply:  # type: ignore[override]
        await super().run(turn)
        return Reply("step 24/25\nstep 25/25", data={"exit": 0})


@virtual_time
async def test_d8_the_last_beat_says_how_a_worker_ended_and_what_it_wrote_last_and_comes_at_once() -> (
    None
):
    async with World() as world:
        world.engine.register(AGENT, TellingRunner(world.field), AgentSettings(max_attempts=1))
        handle, body = await world.begin()
        body.lines = ("step 6/25",)
        await asyncio.sleep(10)
        assert (await world.worker(handle)).lines == ("step 6/25",)
        body.ended.set_result(0)
        await handle.wait()
        await moment()
        worker = await world.worker(handle)
        assert (worker.state, worker.exit_code) == (WorkerState.DEAD, 0)
        assert worker.lines == ("step 24/25", "step 25/25")
        (last, *_) = await world.store.beats(worker.id, 1)
        assert (last.state, last.lines) == (WorkerState.DEAD, worker.lines)


def left_by_another(run: Run, host: str) -> Worker:
    """A worker as a process that is gone had written it down."""
    kind = WorkerKind.COMMAND
    return Worker(
        f"{run.id}.2", run.id, 2, AGENT, run.session, kind, host, 9, 77, 1.5, 0, WorkerState.BUSY, 0
    )


@pytest.mark.parametrize(("host", "state"), [("here", "dead"), ("there", "busy")])
def test_w2_a_worker_that_another_process_saw_last_is_dead_as_soon_as_its_run_has_ended(
    host: str, state: str
) -> None:
    """Also while the store could not be told; but what is on another machine only that one knows."""

    @virtual_time
    async def play() -> None:
        async with World() as world:
            handle, body = await world.begin()
            run = world.engine.kernel.stage.runs[handle.id].run
            await world.store.beat([left_by_another(run, host)], 0)
            world.store.away = True
            world.engine.watch.ended(
                run, 2, Outcome(State.DONE, reply=Reply("over", data={"exit": 0}))
            )
            await asyncio.sleep(10)
            assert (await world.worker(handle, 2)).state is WorkerState.BUSY
            world.store.away = False
            await asyncio.sleep(60)
            worker = await world.worker(handle, 2)
            assert worker.state == state
            assert (worker.exit_code, worker.lines) == (
                (0, ("over",)) if host == "here" else (None, ())
            )
            body.ended.set_result(0)

    play()


@virtual_time
async def test_a_worker_that_is_over_at_once_is_never_written_down() -> None:
    async with World() as world:
        for number in range(20):
            handle, body = await world.begin(f"quick {number}")
            body.ended.set_result(0)
            await handle.wait()
        await asyncio.sleep(30)
        assert world.store.beaten == []
        assert len(world.field.forgotten) == 20


@virtual_time
async def test_d8_an_idle_node_takes_one_snapshot_a_minute_and_writes_nothing_else() -> None:
    async with World() as world:
        world.engine.watch.machine = CalmMachine()
        await asyncio.sleep(3_600)
        assert world.store.beaten == []
        assert 60 <= len(world.store.taken) <= 61
        taken = (await world.store.snapshots(SnapshotQuery(limit=2))).snapshots
        assert taken[0].at - taken[1].at == MINUTE
        assert (taken[0].host, taken[0].cpu, taken[0].workers) == ("here", 12.5, 0)
        assert {lane.name for lane in taken[0].lanes} >= {"main", "cron"}


@virtual_time
async def test_d8_a_snapshot_counts_the_workers_of_its_node_and_what_its_lanes_hold() -> None:
    async with World() as world:
        await world.begin("one")
        _, second = await world.begin("two")
        await asyncio.sleep(61)
        (latest,) = await world.store.machines()
        assert latest.workers == 2
        assert sum(lane.running for lane in latest.lanes) == 2
        second.ended.set_result(0)
        await asyncio.sleep(60)
        (latest,) = await world.store.machines()
        assert latest.workers == 1


@virtual_time
async def test_a_store_that_is_away_is_told_later_and_no_worker_suffers() -> None:
    async with World() as world:
        handle, body = await world.begin()
        await asyncio.sleep(10)
        world.store.away = True
        await asyncio.sleep(600)
        assert not world.field.killed
        body.busy = True
        world.store.away = False
        await asyncio.sleep(60)
        assert (await world.worker(handle)).state is WorkerState.BUSY


class SecretiveMachine(CalmMachine):
    """A system that does not say what it counts."""

    def look(self) -> Load:
        super().look()
        raise PermissionError("/proc/stat")


@virtual_time
async def test_d8_a_machine_that_cannot_be_looked_at_is_told_of_once_and_workers_are_seen() -> None:
    async with World() as world:
        machine = world.engine.watch.machine = SecretiveMachine()
        handle, _ = await world.begin()
        await asyncio.sleep(190)
        assert machine.looks >= 3
        assert (await world.worker(handle)).state is WorkerState.ALIVE
        assert world.told(events.CallbackFailed) == 1
        assert world.store.taken == []


@virtual_time
async def test_w2_a_worker_that_was_lost_to_another_node_is_not_declared_dead() -> None:
    """It may have been adopted there: its run goes on with the same attempt, as the store says."""
    async with World() as world:
        handle, body = await world.begin()
        await asyncio.sleep(10)
        (session,) = world.engine.kernel.stage.sessions.values()
        world.engine._parts.ownership.lose([(session.key, session.epoch)])
        await asyncio.sleep(180)
        assert (await world.worker(handle)).state is WorkerState.ALIVE
        assert world.engine.watch.living == []
        assert body.run_id == handle.id


@virtual_time
async def test_l5_who_leaves_in_good_order_says_that_its_workers_are_gone() -> None:
    world = World(kind=LastingStore)
    async with world:
        handle, _ = await world.begin()
        await asyncio.sleep(10)
    assert (await world.worker(handle)).state is WorkerState.DEAD


@virtual_time
async def test_a_program_that_is_alone_with_its_memory_and_has_no_workers_is_not_looked_at() -> (
    None
):
    clock = clock_for(asyncio.get_running_loop())
    store = CountingStore(Settings(), clock)
    engine = Engine(Settings(), store, clock)
    await engine.start()
    await asyncio.sleep(600)
    assert store.taken == []
    engine.watch.needed.set()
    await asyncio.sleep(65)
    assert len(store.taken) == 2
    await engine.close(0)
