"""O-2 with code in play: what the config says wins over the user's code, and what it does not say stays."""

from pathlib import Path

import msgspec

from headway import AgentSettings, Budget, LaneSettings, Limits, Mode, QueueOptions, Settings
from headway.cli.serve.overlay import overlay
from headway.config import load
from headway.model.run import AgentName, LaneName
from headway.model.settings import DEFAULT_LANES
from headway.model.time import SECOND

CODE = Settings(
    lanes={**DEFAULT_LANES, LaneName("main"): LaneSettings(3), LaneName("slow"): LaneSettings(1)},
    agents={AgentName("support"): AgentSettings(weight=5)},
    limits=Limits(max_inflight=4, max_queue=50),
    ageing=7 * SECOND,
)


def said(**environment: str) -> Settings:
    return overlay(CODE, load(None, environment, {}))


def test_a_silent_config_changes_nothing() -> None:
    assert said() == CODE


def test_one_limit_is_changed_and_the_others_are_the_codes() -> None:
    changed = said(HEADWAY_MAX_INFLIGHT="9")
    assert changed.limits == Limits(max_inflight=9, max_queue=50)
    assert changed.lanes == CODE.lanes


def test_one_lane_is_changed_and_the_others_are_the_codes() -> None:
    changed = said(HEADWAY_LANE_MAIN="8")
    assert changed.lanes == {**CODE.lanes, LaneName("main"): LaneSettings(8)}


def test_a_nodes_own_settings_come_through() -> None:
    changed = said(HEADWAY_DRAIN_GRACE="5s")
    assert (changed.drain_grace, changed.ageing) == (5 * SECOND, 7 * SECOND)


def test_o2_of_one_thing_only_what_the_config_says_is_changed(tmp_path: Path) -> None:
    file = tmp_path / "headway.toml"
    file.write_text(
        "[lanes.main]\nruns_per_minute = 10\n[agents.support]\nlane = 'team'\n"
        "[channels.web]\ncap = 3\n[agents.other]\nweight = 2\n",
        encoding="utf-8",
    )
    code = msgspec.structs.replace(CODE, channels={"web": QueueOptions(mode=Mode.STEER)})
    changed = overlay(code, load(str(file), {}, {}))
    assert changed.lanes[LaneName("main")] == LaneSettings(3, budget=Budget(runs_per_minute=10))
    assert changed.agents == {
        AgentName("support"): AgentSettings(weight=5, lane=LaneName("team")),
        AgentName("other"): AgentSettings(weight=2),
    }
    assert changed.channels == {"web": QueueOptions(mode=Mode.STEER, cap=3)}
