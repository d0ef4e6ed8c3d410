"""Pausing and resuming lanes, and changing them live (L-1, L-2)."""

import pytest

from headway import InvalidInput, LaneSettings
from headway.events import LaneChanged
from headway.model.errors import UnknownName
from headway.model.run import LaneName
from headway.testing import virtual_time
from tests.unit.runtime.worlds import Gate, Recorder, each, hear, moment, only, with_agents

WIDE = LaneSettings(3, reserve=1)
MAIN = LaneName("main")


@virtual_time
async def test_l1_a_paused_lane_starts_nothing_and_lets_what_runs_go_on() -> None:
    recorder = Recorder()
    hw = with_agents(recorder, lanes={"main": LaneSettings(1)})
    async with hw:
        handles = [await hw.submit("a", text) for text in each(3)]
        await moment()
        hw.pause_lane("main")
        assert (await handles[0].wait()).ok
        await moment()
        assert recorder.started == ["m1"]
        assert (hw.lanes()["main"].paused, hw.lanes()["main"].width) == (True, 0)
        hw.resume_lane("main")
        for handle in handles:
            assert (await handle.wait()).ok
        assert (hw.lanes()["main"].paused, hw.lanes()["main"].width) == (False, 1)
        assert recorder.most == 1


@virtual_time
async def test_l2_resuming_gives_back_all_that_the_lane_had() -> None:
    hw = with_agents(Gate(), lanes={"main": WIDE})
    async with hw:
        heard = hear(hw)
        hw.pause_lane("main")
        hw.pause_lane("main")
        assert hw.lanes()["main"].reserve == 0
        hw.resume_lane("main")
        hw.resume_lane("main")
        view = hw.lanes()["main"]
        assert (view.width, view.reserve) == (3, 1)
        changes = only(heard, LaneChanged)
        assert [(event.width, event.reserve) for event in changes] == [(0, 0), (3, 1)]


@virtual_time
async def test_l2_a_lane_resized_by_hand_resumes_as_wide_as_it_was_then() -> None:
    hw = with_agents(Gate(), lanes={"main": WIDE})
    async with hw:
        hw.set_lane("main", 7)
        hw.pause_lane("main")
        hw.resume_lane("main")
        assert hw.lanes()["main"].width == 7


@virtual_time
async def test_l2_a_new_width_ends_the_pause() -> None:
    hw = with_agents(Gate(), lanes={"main": WIDE})
    async with hw:
        hw.pause_lane("main")
        hw.set_lane("main", 5)
        view = hw.lanes()["main"]
        assert (view.width, view.reserve, view.paused) == (5, 1, False)


@virtual_time
async def test_l1_an_alias_pauses_and_resumes_its_lane() -> None:
    hw = with_agents(Gate())
    async with hw:
        hw.pause_lane("delegate")
        assert hw.lanes()["team"].paused
        hw.resume_lane("team")
        assert hw.lanes()["team"].width == 100


@virtual_time
async def test_l1_a_lane_set_to_0_resumes_by_its_settings_or_the_defaults() -> None:
    hw = with_agents(Gate(), lanes={"main": LaneSettings(0), "gpu": LaneSettings(4)})
    async with hw:
        for name in ("main", "gpu"):
            hw.set_lane(name, 0)
            hw.resume_lane(name)
        assert (hw.lanes()["main"].width, hw.lanes()["gpu"].width) == (30, 4)
        hw.set_lane("new", 0)
        with pytest.raises(InvalidInput, match="set_lane"):
            hw.resume_lane("new")


@virtual_time
async def test_l1_a_lane_that_does_not_exist_is_named() -> None:
    hw = with_agents(Gate())
    async with hw:
        for call in (hw.pause_lane, hw.resume_lane, hw.clear_lane):
            with pytest.raises(UnknownName, match="mian"):
                call("mian")


@virtual_time
async def test_l2_new_settings_of_a_paused_lane_count_when_it_resumes() -> None:
    hw = with_agents(Gate(), lanes={"main": WIDE})
    async with hw:
        hw.pause_lane("main")
        hw.engine.reset_lane(MAIN, LaneSettings(8, reserve=2))
        assert hw.lanes()["main"].paused
        hw.resume_lane("main")
        view = hw.lanes()["main"]
        assert (view.width, view.reserve) == (8, 2)
