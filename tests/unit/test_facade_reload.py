"""A reload changes exactly what differs from the settings before, and starts what it now may (F-1, O-1)."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from headway import (
    AgentSettings,
    Drop,
    Headway,
    InvalidInput,
    LaneSettings,
    Limits,
    Mode,
    QueueFull,
    QueueOptions,
    QueueSettings,
    Reloaded,
    Route,
    Settings,
)
from headway.config.keys import LIVE_OF_NODE
from headway.events import LaneChanged, LimitsChanged
from headway.model.run import AgentName, LaneName
from headway.model.settings import DEFAULT_LANES, Budget
from headway.model.time import SECOND
from headway.testing import virtual_time
from tests.unit.runtime.worlds import Gate, Recorder, each, hear, moment, only, with_agents

MAIN, TEAM = LaneName("main"), LaneName("team")
A = AgentName("a")


class Quiet:
    """A runner that is told nothing."""

    async def run(self, turn: object) -> str:
        return ""


def changed(settings: Settings, **changes: object) -> Settings:
    return msgspec.structs.replace(settings, **changes)


def with_lane(settings: Settings, name: LaneName, lane: LaneSettings) -> Settings:
    return changed(settings, lanes={**settings.lanes, name: lane})


@virtual_time
async def test_f1_a_raised_limit_starts_exactly_what_it_now_may() -> None:
    gate, other = Gate(), Gate()
    hw = with_agents(gate, other, limits=Limits(max_inflight=2), lanes=DEFAULT_LANES)
    async with hw:
        for number in range(6):
            await hw.submit("ab"[number % 2], str(number), source="task")
        await hw.submit("a", "a message", session="s")
        await hw.submit("a", "another", session="s")
        await moment()
        heard = hear(hw)
        before = hw.stats()
        began = [turn.text for turn in (*gate.turns, *other.turns)]
        limits = msgspec.structs.replace(hw.settings.limits, max_inflight=3)
        assert hw.reload(changed(hw.settings, limits=limits)) == Reloaded(("limits.max_inflight",))
        await moment()
        now = [turn.text for turn in (*gate.turns, *other.turns)]
        assert set(now) - set(began) == {"3"}, "the next in the fair order, and no other"
        after = hw.stats()
        assert (before.inflight, after.inflight) == (2, 3)
        assert (before.queued, after.queued) == (4, 3)
        assert after.limits == limits
        assert [type(event).__name__ for event in heard] == ["LimitsChanged", "RunStarted"]
        await hw.close(0)


@virtual_time
async def test_f1_a_lowered_limit_lets_what_runs_finish() -> None:
    recorder = Recorder()
    hw = with_agents(recorder, limits=Limits(max_inflight=3), lanes=DEFAULT_LANES)
    async with hw:
        handles = [await hw.submit("a", text, source="task") for text in each(5)]
        await moment()
        hw.reload(changed(hw.settings, limits=Limits(max_inflight=1)))
        await moment()
        assert recorder.live == 3
        for handle in handles:
            assert (await handle.wait()).ok
        assert recorder.started_at == [0, 0, 0, 1, 2]


@virtual_time
async def test_l2_a_lane_whose_setting_did_not_change_stays_as_it_was_set_by_hand() -> None:
    hw = with_agents(Gate(), lanes=DEFAULT_LANES)
    async with hw:
        hw.set_lane("main", 3)
        hw.set_limits(max_queue=7)
        heard = hear(hw)
        settings = with_lane(hw.settings, TEAM, LaneSettings(9))
        settings = changed(settings, limits=Limits(max_inflight=5))
        assert hw.reload(settings).changed == ("lanes.team", "limits.max_inflight")
        assert {name: lane.width for name, lane in hw.lanes().items()} == {
            "main": 3,
            "subagent": 50,
            "team": 9,
            "cron": 30,
        }
        assert hw.engine.limits == Limits(max_inflight=5, max_queue=7)
        assert [event.lane for event in only(heard, LaneChanged)] == ["team"]
        assert len(only(heard, LimitsChanged)) == 1
        assert hw.reload(hw.settings) == Reloaded()
        assert hw.reload(settings) == Reloaded()


@virtual_time
async def test_l2_a_wider_lane_starts_what_waits_and_a_new_one_is_made() -> None:
    gate = Gate()
    hw = with_agents(gate, lanes={**DEFAULT_LANES, MAIN: LaneSettings(1)})
    async with hw:
        for text in each(4):
            await hw.submit("a", text)
        await moment()
        settings = with_lane(hw.settings, MAIN, LaneSettings(2))
        settings = with_lane(settings, LaneName("gpu"), LaneSettings(4, reserve=1))
        assert hw.reload(settings).changed == ("lanes.gpu", "lanes.main")
        await moment()
        assert [turn.text for turn in gate.turns] == ["m1", "m2"]
        assert (hw.lanes()["gpu"].width, hw.lanes()["gpu"].reserve) == (4, 1)
        await hw.close(0)


@virtual_time
async def test_l1_a_lane_that_is_named_no_longer_stays_until_the_next_start() -> None:
    lanes = {**DEFAULT_LANES, LaneName("gpu"): LaneSettings(4)}
    hw = with_agents(Gate(), lanes=lanes)
    async with hw:
        for _ in range(2):
            reloaded = hw.reload(changed(hw.settings, lanes=DEFAULT_LANES))
            assert reloaded == Reloaded(needs_restart=("lanes.gpu",))
        assert hw.lanes()["gpu"].width == 4


@virtual_time
async def test_l1_lanes_said_in_code_win_over_every_settings() -> None:
    hw = Headway(lanes={"main": 2})
    hw.agent("a")(Gate())
    async with hw:
        assert hw.reload(Settings(lanes={**DEFAULT_LANES, MAIN: LaneSettings(50)})) == Reloaded()
        assert hw.lanes()["main"].width == 2


@virtual_time
async def test_s5_new_queue_settings_count_for_what_comes_now() -> None:
    gate = Gate()
    hw = with_agents(gate, lanes=DEFAULT_LANES, queue=QueueSettings(debounce=0))
    tight = QueueSettings(debounce=0, cap=1, drop=Drop.NEW)
    async with hw:
        for text in each(5):
            await hw.submit("a", text, session="s")
        assert hw.reload(changed(hw.settings, queue=tight)).changed == ("queue.cap", "queue.drop")
        with pytest.raises(QueueFull):
            await hw.submit("a", "too many", session="s")
        assert len(hw.sessions()["s"].waiting) == 4, "what waits is left alone"
        await hw.close(0)


@virtual_time
async def test_s5_a_channel_gets_its_own_settings_live() -> None:
    gate = Gate()
    hw = with_agents(gate, lanes=DEFAULT_LANES, queue=QueueSettings(debounce=0))
    web = Route("web", peer="1")
    async with hw:
        await hw.submit("a", "busy", route=web)
        options = QueueOptions(mode=Mode.REJECT, cap=3)
        reloaded = hw.reload(changed(hw.settings, channels={"web": options}))
        assert reloaded.changed == ("channels.web",)
        assert "mode reject, cap 3" in str(await hw.command("s", "/queue", route=web))
        assert "mode queue, cap 10" in str(await hw.command("s", "/queue"))
        assert hw.reload(changed(hw.settings, channels={})).changed == ("channels.web",)
        assert "mode queue, cap 10" in str(await hw.command("s", "/queue", route=web))
        await hw.close(0)


@virtual_time
async def test_o2_what_code_says_of_an_agent_wins_over_the_settings() -> None:
    hw = Headway(settings=Settings(agents={A: AgentSettings(weight=3, retries=1)}))
    hw.agent("a", weight=5, runs_per_minute=60)(Gate())
    own = AgentSettings(weight=7)
    hw.add_agent("b", Quiet(), own)
    async with hw:
        assert hw.engine.agents[A] == AgentSettings(
            weight=5, retries=1, budget=Budget(runs_per_minute=60)
        )
        new = AgentSettings(weight=9, retries=4, budget=Budget(tokens_per_minute=5))
        agents = {A: new, AgentName("b"): new, AgentName("stranger"): new}
        reloaded = hw.reload(changed(hw.settings, agents=agents))
        assert reloaded.changed == ("agents.a", "agents.b", "agents.stranger")
        assert hw.engine.agents[A] == AgentSettings(
            weight=5, retries=4, budget=Budget(runs_per_minute=60, tokens_per_minute=5)
        )
        assert hw.engine.agents[AgentName("b")] == own
        floor = hw.engine.kernel.stage.floor
        assert floor.agents[A].settings == hw.engine.agents[A]
        assert floor.agents[AgentName("stranger")].weight == 9
        handle = await hw.submit("a", "x", session="s")
        assert (await hw.run(handle)).run.retries == 4
        hw.reload(changed(hw.settings, agents={}))
        assert floor.agents[AgentName("stranger")].weight == 1
        assert hw.engine.agents[A].retries is None
        await hw.close(0)


@virtual_time
async def test_f1_a_quota_of_an_agent_that_is_raised_starts_what_it_now_may() -> None:
    gate = Gate()
    hw = with_agents(gate, lanes=DEFAULT_LANES, agents={A: AgentSettings(max_inflight=1)})
    async with hw:
        for text in each(4):
            await hw.submit("a", text, source="task")
        await moment()
        assert len(gate.turns) == 1
        hw.reload(changed(hw.settings, agents={A: AgentSettings(max_inflight=3)}))
        await moment()
        assert len(gate.turns) == 3
        await hw.close(0)


def test_o2_every_setting_is_either_live_or_needs_a_new_start() -> None:
    sections = {"lanes", "queue", "limits", "channels", "agents"}
    fields = set(Settings.__struct_fields__)
    assert fields >= LIVE_OF_NODE
    assert fields > sections
    assert not sections & LIVE_OF_NODE


@virtual_time
async def test_o2_what_the_store_was_told_needs_a_new_start_and_says_so_each_time() -> None:
    hw = with_agents(Gate(), lanes=DEFAULT_LANES)
    async with hw:
        new = changed(hw.settings, lease=60 * SECOND, retention=1, wait_notice=5, tz="Europe/Rome")
        expected = ("node.lease", "node.retention")
        assert hw.reload(new) == Reloaded(("node.tz", "node.wait_notice"), expected)
        assert hw.reload(new) == Reloaded((), expected)
        assert (hw.settings.lease, hw.settings.tz) == (30 * SECOND, "Europe/Rome")
        assert hw.engine.settings.wait_notice == 5


async def waits_long(hw: Headway) -> bool:
    notices: list[object] = []
    hw.on_wait(notices.append)
    handles = [await hw.submit("a", text, session="s") for text in each(2)]
    for handle in handles:
        await handle.wait()
    await moment()
    return bool(notices)


async def cut_after(hw: Headway) -> bool:
    """Whether an attempt that ignores its cancellation is left behind within a second."""
    handle = await hw.submit("a", "deaf", session="t")
    await moment()
    await handle.cancel()
    await asyncio.sleep(1.1)
    return handle.outcome is not None


@pytest.mark.parametrize(
    ("change", "effect"),
    [({"wait_notice": SECOND // 2}, waits_long), ({"cancel_grace": SECOND}, cut_after)],
)
@pytest.mark.parametrize("reloads", [False, True])
def test_o1_settings_of_the_node_count_at_once(
    change: dict[str, int], effect: Callable[[Headway], object], reloads: bool
) -> None:
    @virtual_time
    async def check() -> None:
        hw = with_agents(Recorder(deaf=30), lanes=DEFAULT_LANES)
        async with hw:
            if reloads:
                assert hw.reload(changed(hw.settings, **change)).changed == (
                    f"node.{next(iter(change))}",
                )
            assert await effect(hw) is reloads  # type: ignore[misc]
            await hw.close(0)

    check()


@virtual_time
async def test_o2_bad_settings_change_nothing() -> None:
    hw = with_agents(Gate(), lanes=DEFAULT_LANES)
    async with hw:
        before = hw.settings
        for bad in (
            with_lane(before, MAIN, LaneSettings(1, reserve=5)),
            changed(before, tz="Mars/Olympus", limits=Limits(max_inflight=1)),
            changed(before, limits=Limits(max_inflight=-1)),
            "settings",
        ):
            with pytest.raises(InvalidInput):
                hw.reload(bad)  # type: ignore[arg-type]
        assert hw.settings is before
        assert hw.engine.limits == Limits()


@virtual_time
async def test_o1_before_the_start_a_reload_changes_what_the_start_finds() -> None:
    hw = Headway(lanes={"main": 2})
    hw.agent("a", weight=2)(Gate())
    new = Settings(lease=60 * SECOND, agents={A: AgentSettings(weight=9, retries=2)})
    assert hw.reload(new) == Reloaded(("agents.a", "node.lease"))
    async with hw:
        assert hw.engine.settings.lease == 60 * SECOND
        assert hw.lanes()["main"].width == 2
        assert hw.engine.agents[A] == AgentSettings(weight=2, retries=2)
