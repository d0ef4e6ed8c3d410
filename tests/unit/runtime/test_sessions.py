"""S-1 and S-4: order and overlap inside a session, and what an idle one costs."""

import asyncio
from collections.abc import Sized
from typing import cast

import pytest

from headway import Headway, Route, Settings
from headway.facade import LimitChoices
from headway.testing import virtual_time
from tests.unit.runtime.worlds import Recorder, each, endings, moment, now_s, with_agents


@virtual_time
async def test_s1_runs_of_a_session_never_overlap_and_keep_their_order() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        handles = [await hw.submit("a", text, session="s") for text in each(5)]
        await endings(*handles)
        assert recorder.most == 1
        assert recorder.started == list(each(5))


@virtual_time
async def test_s1_fifty_submissions_in_one_clock_tick_keep_their_order() -> None:
    recorder = Recorder(takes=0)
    async with with_agents(recorder) as hw:
        handles = await asyncio.gather(
            *(hw.submit("a", text, session="s", cap=100) for text in each(50))
        )
        await endings(*handles)
        assert now_s() == 0
        assert recorder.started == list(each(50))


@virtual_time
async def test_f2_fifty_sessions_in_one_clock_tick_start_in_submission_order() -> None:
    recorder = Recorder(takes=1)
    async with with_agents(recorder) as hw:
        hw.set_lane("main", 1)
        handles = await asyncio.gather(*(hw.submit("a", text, session=text) for text in each(50)))
        await endings(*handles)
        assert recorder.started == list(each(50))


@virtual_time
async def test_s1_priority_changes_nothing_inside_a_session() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        handles = [
            await hw.submit("a", f"p{priority}", session="s", priority=priority)
            for priority in (5, 9, 0, -3, 7)
        ]
        await endings(*handles)
        assert recorder.started == ["p5", "p9", "p0", "p-3", "p7"]


@virtual_time
async def test_s1_sessions_do_not_wait_for_each_other() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        handles = [await hw.submit("a", text, session=text) for text in each(10)]
        await endings(*handles)
        assert now_s() == pytest.approx(1)
        assert recorder.most == 10


@virtual_time
async def test_s1_a_request_may_allow_more_at_once() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        handles = [
            await hw.submit("a", text, session="group", max_concurrent=3) for text in each(7)
        ]
        await endings(*handles)
        assert recorder.most == 3
        assert recorder.started == list(each(7))


@virtual_time
async def test_s1_one_that_wants_to_be_alone_is_not_joined_and_joins_nobody() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        for text in ("m1", "m2", "alone", "m3", "m4"):
            width = 1 if text == "alone" else 3
            await hw.submit("a", text, session="group", max_concurrent=width)
        await asyncio.sleep(5)
        assert recorder.started_at == pytest.approx([0, 0, 1, 2, 2])


@virtual_time
async def test_s1_heartbeats_step_behind_messages() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        await hw.submit("a", "running", session="s")
        beat = await hw.submit("a", "beat", session="s", source="heartbeat")
        firing = await hw.submit("a", "firing", session="s", source="firing")
        message = await hw.submit("a", "message", session="s")
        await endings(beat, firing, message)
        assert recorder.started == ["running", "firing", "message", "beat"]


@virtual_time
async def test_f4_a_running_heartbeat_is_preempted_by_a_message_of_its_session() -> None:
    recorder = Recorder(takes=10)
    async with with_agents(recorder) as hw:
        beat = await hw.submit("a", "beat", session="s", source="heartbeat")
        await asyncio.sleep(1)
        message = await hw.submit("a", "message", session="s")
        await endings(message, beat)
        assert recorder.started == ["beat", "message", "beat"]
        assert recorder.started_at == pytest.approx([0, 1, 11])
        assert (await beat.wait()).ok


@virtual_time
async def test_s1_a_run_due_later_takes_its_place_when_it_becomes_due() -> None:
    recorder = Recorder(takes=4)
    async with with_agents(recorder) as hw:
        first = await hw.submit("a", "due", session="s", due="5s")
        *_, last = [await hw.submit("a", text, session="s") for text in each(3)]
        await endings(first, last)
        assert recorder.started == ["m1", "m2", "m3", "due"]


@virtual_time
async def test_d5_a_run_due_at_an_instant_starts_at_that_instant() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        await hw.send("a", "x", due="1h30m")
        assert recorder.started_at == pytest.approx([5400])


@virtual_time
async def test_s1_tasks_and_firings_without_a_session_are_sessions_of_their_own() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        handles = [
            await hw.submit("a", source, source=source) for source in ("task", "task", "firing")
        ]
        await endings(*handles)
        assert recorder.most == 3
        assert len({turn.session for turn in recorder.turns}) == 3


@virtual_time
async def test_s1_a_message_without_a_session_goes_by_its_route() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        *_, last = [
            await hw.submit("a", peer, route=Route("telegram", peer=peer), debounce=0)
            for peer in ("1", "2", "1")
        ]
        await last.wait()
        assert recorder.turns[0].session == recorder.turns[2].session != recorder.turns[1].session
        assert recorder.most == 2


FORGETFUL = {"retention": 0, "task_retention": 0, "idle_sessions": 0}
"""Nothing is kept for later readers, and no idle session is kept at hand."""


def _left_over(hw: Headway) -> dict[str, int]:
    """How many of what the engine, its kernel and its store still hold."""
    engine = hw.engine
    stage = engine.kernel.stage
    holders: list[tuple[object, tuple[str, ...]]] = [
        (engine, ("_handles",)),
        (engine.attempts, ("_turns", "_left_behind")),
        (engine.callbacks, ("_chores",)),
        (stage, ("sessions", "runs", "attempts", "alarms", "borrowers")),
        (engine._store, tuple(vars(engine._store))),
    ]
    counts = {
        name: len(getattr(holder, name))
        for holder, names in holders
        for name in names
        if isinstance(getattr(holder, name, None), Sized)
    }
    return {name: count for name, count in counts.items() if count}


@virtual_time
async def test_s4_thousands_of_one_shot_sessions_leave_nothing() -> None:
    async with with_agents(Recorder(takes=0.01), **FORGETFUL) as hw:
        for start in range(0, 3000, 500):
            await asyncio.gather(
                *(hw.send("a", "x", session=f"s{start + number}") for number in range(500))
            )
        await moment()
        assert _left_over(hw) == {}


@virtual_time
async def test_s4_debounced_cancelled_failed_and_refused_sessions_leave_nothing() -> None:
    recorder = Recorder(takes=1)
    async with with_agents(recorder, **FORGETFUL) as hw:
        for number in range(200):
            session = f"s{number}"
            await hw.submit("a", "x", session=session, debounce="100ms")
            await hw.submit("a", "y", session=session, debounce="100ms")
            stopped = await hw.submit("a", "z", session=f"t{number}")
            if number % 2:
                await moment()
            await stopped.cancel()
            await hw.submit("a", "late", session=f"u{number}", timeout="10ms")
        await asyncio.sleep(10)
        assert _left_over(hw) == {}


@pytest.mark.parametrize("limit", ["max_queue", "max_queue_per_agent"])
def test_s4_refused_tasks_leave_nothing(limit: str) -> None:
    """Also F-6: rejected submissions cost bounded memory."""

    @virtual_time
    async def main() -> None:
        async with with_agents(Recorder(), **FORGETFUL) as hw:
            hw.set_limits(**cast(LimitChoices, {limit: 0}))
            told = await asyncio.gather(
                *(hw.submit("a", "x", source="task") for _ in range(100)), return_exceptions=True
            )
            assert {type(error).__name__ for error in told} == {"QueueFull"}
            await moment()
            assert _left_over(hw) == {}

    main()


@virtual_time
async def test_s4_submissions_whose_deadline_is_past_leave_nothing() -> None:
    async with with_agents(Recorder(), **FORGETFUL) as hw:
        told = await asyncio.gather(
            *(hw.submit("a", "x", deadline=0) for _ in range(100)), return_exceptions=True
        )
        assert {type(error).__name__ for error in told} == {"RunFailed"}
        await moment()
        assert _left_over(hw) == {}


@virtual_time
async def test_s4_a_stop_or_a_question_about_an_idle_session_leaves_nothing() -> None:
    async with with_agents(Recorder(), **FORGETFUL) as hw:
        for number in range(100):
            await hw.stop(f"s{number}")
            await hw.command(f"s{number}", "/queue status")
            await hw.command(f"s{number}", "/queue clear")
            await hw.command(f"s{number}", "/queue reset")
        await moment()
        assert _left_over(hw) == {}


@virtual_time
async def test_s4_finished_runs_beyond_the_bound_are_forgotten() -> None:
    async with Headway(settings=Settings(retained_runs=10)) as hw:
        hw.agent("a")(Recorder(takes=0))
        for number in range(30):
            await hw.send("a", "x", session=f"s{number}")
        await moment()
        assert len((await hw.runs()).runs) == 10


@virtual_time
async def test_s4_idle_sessions_at_hand_are_bounded() -> None:
    async with with_agents(Recorder(takes=0), retention=0, idle_sessions=50) as hw:
        for number in range(1000):
            await hw.send("a", "x", session=f"s{number}")
        await moment()
        assert hw.sessions() == {}
        assert len(hw.engine.kernel.stage.sessions) <= 100
        assert _left_over(hw).get("_held", 0) <= 100
