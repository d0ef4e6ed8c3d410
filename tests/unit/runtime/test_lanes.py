"""L-1, L-2, L-3, L-5 (clearing) and L-7: how wide lanes are, and who waits for them."""

import asyncio

import pytest

from headway import Headway, InvalidInput, LaneCleared, LaneSettings, Settings
from headway.config import settings_from
from headway.model.events import CallbackFailed, RunWaited
from headway.model.time import SECOND
from headway.testing import virtual_time
from tests.unit.runtime.worlds import (
    Gate,
    Recorder,
    each,
    endings,
    hear,
    moment,
    now_s,
    only,
    with_agents,
)


def _widths(settings: Settings) -> dict[str, int]:
    return {name: lane.width for name, lane in settings.lanes.items()}


def test_l1_lanes_by_default() -> None:
    assert _widths(settings_from({})) == {"main": 30, "subagent": 50, "team": 100, "cron": 30}


def test_l1_the_environment_sets_widths_and_makes_lanes() -> None:
    settings = settings_from(
        {"HEADWAY_LANE_CRON": "1", "HEADWAY_LANE_DELEGATE": "7", "HEADWAY_LANE_GPU": "0", "X": "y"}
    )
    assert _widths(settings) == {"main": 30, "subagent": 50, "team": 7, "cron": 1, "gpu": 0}


@pytest.mark.parametrize("value", ["-1", "many", "", "3.5", "²", "1000001"])
def test_l1_a_bad_width_in_the_environment_names_the_variable(value: str) -> None:
    with pytest.raises(InvalidInput, match="HEADWAY_LANE_MAIN") as refusal:
        settings_from({"HEADWAY_LANE_MAIN": value})
    assert refusal.value.field == "HEADWAY_LANE_MAIN"


@virtual_time
async def test_l1_the_environment_reaches_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_LANE_CRON", "1")
    recorder = Recorder()
    hw = Headway()
    hw.agent("a")(recorder)
    async with hw:
        handles = [await hw.submit("a", text, source="firing") for text in each(3)]
        await endings(*handles)
        assert recorder.most == 1, "HEADWAY_LANE_CRON=1 makes cron serial"


@virtual_time
async def test_l1_code_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_LANE_MAIN", "1")
    async with Headway(lanes={"main": 2}) as hw:
        assert hw.lanes()["main"].width == 2
        assert hw.lanes()["team"].width == 100


@pytest.mark.parametrize(
    ("source", "lane"),
    [("message", "main"), ("task", "main"), ("firing", "cron"), ("heartbeat", "cron")],
)
def test_l1_each_source_has_its_lane(source: str, lane: str) -> None:
    @virtual_time
    async def main() -> None:
        async with with_agents(Recorder()) as hw:
            await hw.submit("a", "x", source=source)
            await moment()
            assert {name for name, view in hw.lanes().items() if view.running} == {lane}

    main()


@virtual_time
async def test_l1_delegate_is_an_alias_of_team() -> None:
    gate = Gate()
    async with with_agents(gate) as hw:
        hw.set_lane("delegate", 1)
        assert hw.lanes()["team"].width == 1
        assert "delegate" not in hw.lanes()
        await hw.submit("a", "one", lane="delegate")
        waiting = await hw.submit("a", "two", lane="team")
        await moment()
        assert (hw.lanes()["team"].running, hw.lanes()["team"].waiting) == (1, 1)
        assert hw.clear_lane("delegate") == 1
        assert await endings(waiting) == ["cancelled/lane_cleared"]
        gate.open()


@virtual_time
async def test_l1_an_unknown_lane_falls_back_to_main_and_is_counted() -> None:
    async with with_agents(Recorder()) as hw:
        await hw.submit("a", "x", lane="nowhere")
        await moment()
        assert hw.lanes()["main"].running == 1
        assert hw.engine.kernel.stage.floor.fallbacks == 1
        await hw.submit("a", "x", lane="main")
        assert hw.engine.kernel.stage.floor.fallbacks == 1


@virtual_time
async def test_l1_a_lane_can_be_made_at_run_time() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        hw.set_lane("gpu", 2)
        handles = [await hw.submit("a", text, lane="gpu") for text in each(5)]
        await endings(*handles)
        assert recorder.most == 2
        assert hw.lanes()["gpu"].started == 5


@virtual_time
async def test_l1_width_0_pauses_a_lane_until_it_is_widened() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        hw.set_lane("main", 0)
        handle = await hw.submit("a", "x")
        await asyncio.sleep(100)
        assert recorder.started == []
        assert str(await hw.why(handle)).startswith("lane main is paused")
        hw.set_lane("main", 1)
        assert (await handle.wait()).ok
        assert recorder.started_at == pytest.approx([100])


@virtual_time
async def test_l2_widening_starts_as_many_waiting_runs_at_once_in_order() -> None:
    recorder = Recorder(takes=10)
    async with with_agents(recorder) as hw:
        hw.set_lane("main", 1)
        handles = [await hw.submit("a", text) for text in each(6)]
        await asyncio.sleep(1)
        assert hw.lanes()["main"].waiting == 5
        hw.set_lane("main", 3)
        await moment()
        assert recorder.started == ["m1", "m2", "m3"]
        assert recorder.started_at == pytest.approx([0, 1, 1])
        await endings(*handles)
        assert recorder.started == list(each(6))
        assert recorder.most == 3


@virtual_time
async def test_l2_narrowing_lets_running_runs_finish_and_starts_nothing_meanwhile() -> None:
    recorder = Recorder(takes=10, spans={"m1": 1, "m2": 2, "m3": 3})
    async with with_agents(recorder) as hw:
        hw.set_lane("main", 3)
        handles = [await hw.submit("a", text) for text in each(4)]
        await moment()
        hw.set_lane("main", 1)
        await moment()
        assert recorder.live == 3
        assert await endings(*handles) == ["done"] * 4
        assert recorder.cancelled == []
        assert recorder.started_at == pytest.approx([0, 0, 0, 3])


@virtual_time
async def test_l2_a_lane_is_never_over_its_width_while_it_is_resized() -> None:
    recorder = Recorder(takes=1)
    async with with_agents(recorder) as hw:
        handles = [await hw.submit("a", text) for text in each(60)]
        width = 30
        for width in (3, 5, 2, 7, 1, 4):
            hw.set_lane("main", width)
            await asyncio.sleep(1.5)
            assert recorder.live <= width
        await endings(*handles)


@virtual_time
async def test_l2_a_new_width_leaves_reserve_and_budget_of_the_lane_alone() -> None:
    async with with_agents(Recorder(), lanes={"main": LaneSettings(4, reserve=2)}) as hw:
        hw.set_lane("main", 6)
        assert (hw.lanes()["main"].width, hw.lanes()["main"].reserve) == (6, 2)


@virtual_time
async def test_l3_the_lane_belongs_to_the_run_not_to_the_first_of_its_session() -> None:
    recorder = Recorder(takes=5, spans={"first": 1})
    async with with_agents(recorder) as hw:
        hw.set_lane("main", 1)
        hw.set_lane("side", 1)
        first = await hw.submit("a", "first", session="s", lane="main")
        await hw.submit("a", "blocks main", session="t", lane="main")
        second = await hw.submit("a", "second", session="s", lane="side")
        await first.wait()
        await moment()
        assert recorder.started == ["first", "blocks main", "second"]
        assert hw.lanes()["side"].running == 1
        await second.wait()


@virtual_time
async def test_l5_clearing_a_lane_ends_what_waits_and_leaves_what_runs() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        hw.set_lane("main", 1)
        running = await hw.submit("a", "running")
        waiting = [await hw.submit("a", text) for text in each(3)]
        elsewhere = await hw.submit("a", "elsewhere", session="s", lane="cron")
        await hw.submit("a", "elsewhere too", session="s", lane="cron")
        await moment()
        assert hw.clear_lane("main") == 3
        assert await endings(*waiting) == ["cancelled/lane_cleared"] * 3
        assert now_s() == 0
        assert await endings(running, elsewhere) == ["done", "done"]
        with pytest.raises(LaneCleared):
            await waiting[0].reply()


@virtual_time
async def test_l5_clearing_reaches_runs_that_wait_for_their_session_or_a_retry() -> None:
    async with with_agents(Recorder()) as hw:
        await hw.submit("a", "running", session="s")
        behind = await hw.submit("a", "behind", session="s")
        buffered = await hw.submit("a", "buffered", session="s", debounce="5s")
        later = await hw.submit("a", "later", due="1h")
        assert hw.clear_lane("main") == 3
        assert await endings(behind, buffered, later) == ["cancelled/lane_cleared"] * 3


@virtual_time
async def test_l5_clearing_an_unknown_lane_suggests_a_name() -> None:
    async with with_agents(Recorder()) as hw:
        with pytest.raises(InvalidInput, match="did you mean 'main'"):
            hw.clear_lane("mian")


@virtual_time
async def test_l7_a_long_wait_tells_how_long_and_how_many_were_truly_ahead() -> None:
    async with with_agents(Recorder(takes=1)) as hw:
        heard = hear(hw)
        hw.set_lane("main", 1)
        handles = [await hw.submit("a", text) for text in each(6)]
        await handles[1].cancel()
        await endings(*handles)
        waits = {event.run_id: (event.waited, event.ahead) for event in only(heard, RunWaited)}
        assert waits == {
            handles[4].id: (3 * SECOND, 2),
            handles[5].id: (4 * SECOND, 3),
        }, "the cancelled one was ahead of nobody, and 2 s are not over 2 s"


@virtual_time
async def test_l7_those_that_overtook_count_as_ahead_and_those_overtaken_do_not() -> None:
    async with with_agents(Recorder(takes=3)) as hw:
        heard = hear(hw)
        hw.set_lane("main", 1)
        await hw.submit("a", "running")
        slow = await hw.submit("a", "slow", priority=5)
        quick = await hw.submit("a", "quick", priority=0)
        await endings(quick, slow)
        assert {event.run_id: event.ahead for event in only(heard, RunWaited)} == {
            quick.id: 0,
            slow.id: 1,
        }


@virtual_time
async def test_l7_the_notice_is_a_setting() -> None:
    async with with_agents(Recorder(takes=10), wait_notice=20 * SECOND) as hw:
        heard = hear(hw)
        handles = [await hw.submit("a", text, session="s") for text in each(4)]
        await endings(*handles)
        assert [event.run_id for event in only(heard, RunWaited)] == [handles[3].id]


@virtual_time
async def test_l7_a_wait_callback_that_raises_stops_nothing() -> None:
    hw = with_agents(Recorder(takes=3))
    seen: list[RunWaited] = []

    @hw.on_wait
    async def broken(event: RunWaited) -> None:
        raise ValueError("callback broken")

    hw.on_wait(seen.append)
    async with hw:
        heard = hear(hw)
        handles = [await hw.submit("a", text, session="s") for text in each(3)]
        assert await endings(*handles) == ["done"] * 3
        assert [event.run_id for event in seen] == [handles[1].id, handles[2].id]
        assert ["callback broken" in event.error for event in only(heard, CallbackFailed)] == [
            True,
            True,
        ]


@virtual_time
async def test_l7_a_wait_callback_may_call_back_into_headway() -> None:
    recorder = Recorder(takes=3)
    hw = with_agents(recorder)
    replies: list[str] = []

    @hw.on_wait
    async def widen(event: RunWaited) -> None:
        hw.set_lane("main", 5)
        replies.append((await hw.submit("a", "from the callback")).id)

    async with hw:
        hw.set_lane("main", 1)
        handles = [await hw.submit("a", text) for text in each(4)]
        assert await endings(*handles) == ["done"] * 4
        assert recorder.started[:2] == ["m1", "m2"]
        assert recorder.started_at[1:4] == pytest.approx([3, 3, 3])
        assert "from the callback" in recorder.started


@virtual_time
async def test_l7_a_plain_wait_callback_may_call_back_into_headway() -> None:
    recorder = Recorder(takes=3)
    hw = with_agents(recorder)
    loops: list[bool] = []

    @hw.on_wait
    def widen(event: RunWaited) -> None:
        hw.set_lane("main", 5)
        try:
            loops.append(asyncio.get_running_loop() is not None)
        except RuntimeError:
            loops.append(False)

    async with hw:
        hw.set_lane("main", 1)
        handles = [await hw.submit("a", text) for text in each(4)]
        assert await endings(*handles) == ["done"] * 4
        assert recorder.started_at[1:4] == pytest.approx([3, 3, 3])
        assert loops[0], "the kernel belongs to the loop: what touches it must run there"


@virtual_time
async def test_l7_a_slow_wait_callback_holds_nothing_up() -> None:
    hw = with_agents(Recorder(takes=3))

    @hw.on_wait
    async def slow(event: RunWaited) -> None:
        await asyncio.sleep(1000)

    async with hw:
        heard = hear(hw)
        handles = [await hw.submit("a", text, session="s") for text in each(3)]
        await endings(*handles)
        assert now_s() == pytest.approx(9)
        assert len(only(heard, CallbackFailed)) >= 1
