"""L-5 and L-6: draining refuses, finishes and cuts; a restart in place is a new incarnation."""

import asyncio

import pytest

from headway import Draining, Headway, LaneSettings, State, Turn, Unavailable
from headway.model.events import LateResult, NodeDraining, NodeRestarted, RunFinished
from headway.testing import virtual_time
from tests.unit.runtime.worlds import (
    Recorder,
    each,
    ending,
    endings,
    hear,
    moment,
    now_s,
    only,
    with_agents,
)


@virtual_time
async def test_l5_draining_refuses_new_work_and_lets_running_work_finish() -> None:
    async with with_agents(Recorder(takes=20)) as hw, asyncio.TaskGroup() as group:
        running = await hw.submit("a", "x")
        await moment()
        draining = group.create_task(hw.drain())
        await moment()
        with pytest.raises(Draining) as refusal:
            await hw.submit("a", "y")
        assert isinstance(refusal.value, Unavailable), "try again later"
        with pytest.raises(Draining):
            await hw.send("a", "z", source="task")
        await draining
        assert now_s() == pytest.approx(20)
        assert await running.reply() == "re: x"


@virtual_time
async def test_l5_what_waits_ends_draining_in_memory() -> None:
    async with with_agents(Recorder(takes=1)) as hw:
        running = await hw.submit("a", "running", session="s")
        behind = await hw.submit("a", "behind", session="s")
        buffered = await hw.submit("a", "buffered", session="t", debounce="10s")
        later = await hw.submit("a", "later", due="1h")
        await moment()
        await hw.drain()
        assert await endings(running, behind, buffered, later) == [
            "done",
            *["cancelled/draining"] * 3,
        ]
        with pytest.raises(Draining):
            await behind.reply()


@virtual_time
async def test_l5_after_the_grace_the_attempt_is_cut() -> None:
    recorder = Recorder(takes=100)
    async with with_agents(recorder) as hw:
        handle = await hw.submit("a", "x")
        await moment()
        await hw.drain("5s")
        assert now_s() == pytest.approx(5)
        assert recorder.cancelled == ["x"]
        assert ending(handle.outcome) == "cancelled/draining"


@virtual_time
async def test_l5_an_attempt_that_ignores_the_cut_is_left_behind_so_the_drain_ends() -> None:
    async with with_agents(Recorder(takes=100, deaf=1000)) as hw:
        handle = await hw.submit("a", "x")
        await moment()
        await hw.drain("5s")
        assert now_s() == pytest.approx(15), "5 s of grace and 10 s to obey"
        assert ending(handle.outcome) == "cancelled/draining"


@virtual_time
async def test_l5_sub_runs_of_running_parents_are_still_admitted() -> None:
    hw = with_agents(Recorder())

    @hw.agent("parent")
    async def parent(turn: Turn) -> str:
        await asyncio.sleep(1)
        return await turn.delegate("a", "child")

    async with hw:
        handle = await hw.submit("parent")
        await moment()
        await hw.drain()
        assert await handle.reply() == "re: child"


@virtual_time
async def test_l5_a_waiting_sub_run_of_a_running_parent_survives_the_drain() -> None:
    hw = with_agents(Recorder(), lanes={"main": LaneSettings(2), "subagent": LaneSettings(1)})

    @hw.agent("parent")
    async def parent(turn: Turn) -> str:
        return " ".join(await asyncio.gather(*(turn.delegate("a", n) for n in each(3))))

    async with hw:
        handle = await hw.submit("parent")
        await moment()
        await hw.drain()
        assert await handle.reply() == "re: m1 re: m2 re: m3"


@virtual_time
async def test_l5_the_drain_is_bounded_although_sub_runs_wait() -> None:
    hw = with_agents(
        Recorder(takes=1000), lanes={"main": LaneSettings(2), "subagent": LaneSettings(1)}
    )

    @hw.agent("parent")
    async def parent(turn: Turn) -> str:
        return " ".join(await asyncio.gather(*(turn.delegate("a", n) for n in each(3))))

    async with hw:
        handle = await hw.submit("parent")
        await moment()
        await hw.drain("5s")
        assert now_s() <= 15
        assert ending(handle.outcome) == "cancelled/draining"
        assert hw.sessions() == {}


@virtual_time
async def test_l5_a_retry_that_waits_is_told_when_the_node_drains() -> None:
    hw = Headway()

    @hw.agent("a")
    async def fails(turn: Turn) -> str:
        await asyncio.sleep(1)
        raise ValueError

    async with hw:
        waits_for_retry = await hw.submit("a", "x", retries=5)
        await asyncio.sleep(1.2)
        fails_while_draining = await hw.submit("a", "y", retries=5)
        await moment()
        await hw.drain()
        assert ending(waits_for_retry.outcome) == "cancelled/draining"
        assert fails_while_draining.outcome is not None


@virtual_time
async def test_l5_draining_twice_is_harmless_and_is_heard_once() -> None:
    async with with_agents(Recorder()) as hw:
        heard = hear(hw)
        await hw.submit("a", "x")
        await moment()
        await asyncio.gather(hw.drain(), hw.drain())
        await hw.close()
        assert [event.running for event in only(heard, NodeDraining)] == [1]
        assert len(only(heard, RunFinished)) == 1


@virtual_time
async def test_l6_a_restart_keeps_waiting_work_and_runs_it_in_order() -> None:
    recorder = Recorder(takes=1)
    async with with_agents(recorder) as hw:
        heard = hear(hw)
        handles = [await hw.submit("a", text, session="s") for text in each(4)]
        buffered = await hw.submit("a", "buffered", session="t", debounce="30s")
        await moment()
        await hw.restart()
        assert now_s() == pytest.approx(1)
        assert await endings(*handles, buffered) == ["done"] * 5
        assert recorder.started == [*each(4), "buffered"]
        assert [event.incarnation for event in only(heard, NodeRestarted)] == [2]


@virtual_time
async def test_l6_a_run_cut_by_the_restart_is_tried_again_if_it_may() -> None:
    recorder = Recorder(takes=5)
    async with with_agents(recorder) as hw:
        twice = await hw.submit("a", "twice", session="s", max_attempts=2)
        once = await hw.submit("a", "once", session="t", max_attempts=1)
        behind = await hw.submit("a", "behind", session="s")
        await moment()
        await hw.restart("1s")
        assert await endings(twice, once, behind) == ["done", "cancelled/draining", "done"]
        assert recorder.started == ["twice", "once", "twice", "behind"]
        assert [turn.attempt for turn in recorder.turns] == [1, 1, 2, 1]


@virtual_time
async def test_l6_late_completions_of_the_old_incarnation_touch_no_slot_and_no_counter() -> None:
    deaf = Recorder(takes=100, deaf=50)
    async with with_agents(deaf) as hw:
        hw.set_lane("main", 2)
        heard = hear(hw)
        old = [await hw.submit("a", text, max_attempts=1) for text in each(2, "old")]
        await moment()
        await hw.restart(0)
        assert await endings(*old) == ["cancelled/draining"] * 2
        new = [await hw.submit("a", text) for text in each(3, "new")]
        await moment()
        assert (hw.lanes()["main"].running, hw.lanes()["main"].waiting) == (2, 1)
        await asyncio.sleep(60)
        assert len(only(heard, LateResult)) == 2
        assert (hw.lanes()["main"].running, hw.lanes()["main"].waiting) == (2, 1)
        assert [await handle.state() for handle in new[:2]] == [State.RUNNING] * 2
        assert deaf.most == 4, "two left behind beside two that count"


@virtual_time
async def test_l6_new_work_is_taken_again_after_a_restart() -> None:
    async with with_agents(Recorder()) as hw:
        await hw.restart()
        await hw.restart()
        assert await hw.send("a", "x") == "re: x"
        assert hw.engine.incarnation == 3


@virtual_time
async def test_l6_work_sent_while_restarting_is_refused_with_draining() -> None:
    async with with_agents(Recorder(takes=3)) as hw, asyncio.TaskGroup() as group:
        await hw.submit("a", "x")
        await moment()
        restarting = group.create_task(hw.restart())
        await asyncio.sleep(1)
        with pytest.raises(Draining):
            await hw.submit("a", "y")
        await restarting
        assert await hw.send("a", "y") == "re: y"


@virtual_time
async def test_l5_a_drain_while_restarting_starts_nothing_that_it_would_cut_again() -> None:
    """The node was told to restart, and then to end: it does not come back in between."""
    recorder = Recorder(takes=3)
    async with with_agents(recorder) as hw, asyncio.TaskGroup() as group:
        hw.set_lane("main", 1)
        handles = [await hw.submit("a", text) for text in each(2)]
        await moment()
        restarting = group.create_task(hw.restart("10s"))
        await asyncio.sleep(1)
        await hw.drain("10s")
        await restarting
        assert hw.draining
        assert recorder.started == ["m1"]
        assert await endings(*handles) == ["done", "cancelled/draining"], "memory keeps nothing"
        await hw.restart()
        assert await hw.send("a", "x") == "re: x", "a later restart counts again"
