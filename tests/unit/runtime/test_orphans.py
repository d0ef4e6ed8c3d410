"""The scan for workers that nobody wants any more: whom it ends, and above all whom it leaves alone (D-8, W-2)."""

import asyncio

import msgspec
import pytest

from headway.core.actions import Start
from headway.model import events
from headway.model.run import Run, RunId, SessionKey
from headway.model.settings import MAIN, Settings
from headway.model.time import SECOND
from headway.model.views import RunView
from headway.model.words import FINAL_STATES, Source, State, WorkerState
from headway.ports import Granted, WorkerQuery
from headway.runtime.beats import is_unwanted
from headway.testing import virtual_time
from tests.unit.runtime.keeping import Field
from tests.unit.runtime.test_watch import AGENT, World
from tests.unit.runtime.worlds import moment

SCAN_S = Settings().scan_every / SECOND


@virtual_time
async def test_d8_a_worker_whose_run_has_ended_is_ended_by_the_scan_and_told_of() -> None:
    async with World() as world:
        handle, body = await world.begin()
        body.ended.set_result(0)
        await handle.wait()
        await moment()
        world.field.add(handle.id, 1, age_s=30)
        await asyncio.sleep(SCAN_S + 5)
        assert world.field.killed == [(handle.id, 1)]
        assert world.told(events.OrphanEnded) == 1
        await asyncio.sleep(3 * SCAN_S)
        assert world.told(events.OrphanEnded) == 1


@virtual_time
async def test_d8_one_that_the_store_cannot_be_asked_about_keeps_the_scan_from_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What lies in a folder may have any name, and a newer version's run may not be readable."""
    async with World() as world:
        handle, body = await world.begin()
        body.ended.set_result(0)
        await handle.wait()
        await moment()
        find = world.store.find

        async def finds(run_id: RunId) -> RunView | None:
            if run_id == "odd":
                raise ValueError("no text")
            return await find(run_id)

        monkeypatch.setattr(world.store, "find", finds)
        world.field.add("odd", 1, age_s=1_000)
        world.field.add(handle.id, 1, age_s=30)
        await asyncio.sleep(3 * SCAN_S)
        assert world.field.killed == [(handle.id, 1)]
        assert world.told(events.CallbackFailed) == 1, "once"
        assert world.told(events.NodeBroken) == 0


@virtual_time
async def test_d8_a_worker_of_an_earlier_attempt_is_ended_while_the_run_goes_on() -> None:
    async with World() as world:
        handle, body = await world.begin(max_attempts=2)
        await asyncio.sleep(10)
        body.answers = False
        await asyncio.sleep(200)
        assert set(world.field.bodies) == {(handle.id, 2)}
        world.field.add(handle.id, 1)
        await asyncio.sleep(SCAN_S + 5)
        assert set(world.field.bodies) == {(handle.id, 2)}


@virtual_time
async def test_d8_the_scan_leaves_alone_whom_the_store_says_is_running_elsewhere_on_this_machine() -> (
    None
):
    """Another node of this host, alive or dead and not taken over yet: the same attempt runs by the store."""
    async with World() as world:
        await _running_elsewhere(world, "theirs")
        body = world.field.add("theirs", 1, age_s=1_000)
        await asyncio.sleep(3 * SCAN_S)
        assert world.field.killed == []
        assert world.field.forgotten == []
        assert not body.over


@virtual_time
async def test_d8_a_young_worker_of_an_unknown_run_is_left_for_the_next_scan() -> None:
    async with World() as world:
        await asyncio.sleep(SCAN_S - 10)
        world.field.add("unknown", 1)
        await asyncio.sleep(30)
        assert world.field.killed == []
        await asyncio.sleep(SCAN_S)
        assert world.field.killed == [("unknown", 1)]


@virtual_time
async def test_d8_the_first_scan_comes_right_after_the_start() -> None:
    field = Field()
    field.add("long gone", 1, age_s=3_600)
    async with World(field) as world:
        await asyncio.sleep(5)
        assert world.field.killed == [("long gone", 1)]


@virtual_time
async def test_d8_a_store_that_is_away_lets_the_scan_end_nobody() -> None:
    async with World() as world:
        await asyncio.sleep(10)
        world.store.away = True
        world.field.add("unknown", 1, age_s=1_000)
        await asyncio.sleep(2 * SCAN_S)
        assert world.field.killed == []
        world.store.away = False
        await asyncio.sleep(60)
        assert world.field.killed == [("unknown", 1)]


@virtual_time
async def test_what_is_left_of_a_worker_that_is_over_is_removed_without_a_word() -> None:
    async with World() as world:
        handle, body = await world.begin()
        body.ended.set_result(0)
        await handle.wait()
        await moment()
        world.field.add(handle.id, 1).ended.set_result(0)
        await asyncio.sleep(SCAN_S + 5)
        assert world.field.bodies == {}
        assert world.told(events.OrphanEnded) == 0


@virtual_time
async def test_a_scan_that_is_asked_for_comes_soon() -> None:
    async with World() as world:
        await asyncio.sleep(30)
        world.field.add("unknown", 1, age_s=100)
        world.engine._parts.scan_soon()
        await asyncio.sleep(5)
        assert world.field.killed == [("unknown", 1)]


@virtual_time
async def test_d8_a_worker_whose_machine_is_gone_is_dead_once_its_run_goes_on_without_it() -> None:
    async with World() as world:
        handle, body = await world.begin()
        await asyncio.sleep(10)
        worker = await world.worker(handle)
        body.ended.set_result(0)
        await handle.wait()
        gone = msgspec.structs.replace(
            worker, id=f"{handle.id}.7", attempt=7, host="elsewhere", state=WorkerState.BUSY
        )
        await world.store.beat([gone], gone.beat_at)
        await asyncio.sleep(60)
        assert [each.id for each in (await world.store.workers(WorkerQuery())).workers] == [gone.id]
        await asyncio.sleep(2 * SCAN_S)
        assert (await world.store.workers(WorkerQuery())).workers == ()
        dead = await world.store.find_worker(gone.id)
        assert dead is not None
        assert (dead.state, dead.beat_at) == (WorkerState.DEAD, gone.beat_at)


@pytest.mark.parametrize("state", State)
def test_d8_who_is_wanted_is_the_stores_to_say(state: State) -> None:
    run = _run("r")
    same, later = RunView(run, state, 2), RunView(run, state, 3)
    assert is_unwanted(2, same) is (state in FINAL_STATES), "one that waits may yet be adopted"
    assert is_unwanted(2, later)


async def _running_elsewhere(world: World, run_id: str) -> None:
    """A run of this store that another node has begun."""
    run = _run(run_id)
    granted = world.store.admit(run)
    assert isinstance(granted, Granted)
    await world.store.record([Start(run, 99, 1, granted.epoch, 0)])
    view = await world.store.find(run.id)
    assert view is not None
    assert (view.state, view.attempt) == (State.RUNNING, 1)


def _run(run_id: str) -> Run:
    return Run(RunId(run_id), AGENT, SessionKey("theirs"), Source.TASK, MAIN, 0, 0)
