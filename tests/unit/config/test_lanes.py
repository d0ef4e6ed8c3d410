"""Lanes that are named and are not there (L-1)."""

from headway.config import lane_warnings
from headway.model.run import AgentName, LaneName
from headway.model.settings import AgentSettings, Settings


def settings(lane: str | None) -> Settings:
    about = AgentSettings(lane=None if lane is None else LaneName(lane))
    return Settings(agents={AgentName("m"): about})


def test_l1_a_lane_that_is_not_there_is_told_with_what_may_be_meant() -> None:
    sources = {"agents.m.lane": "headway.toml line 2"}
    (told,) = lane_warnings(settings("mian"), sources)
    assert told == (
        "headway.toml line 2: agents.m.lane: there is no lane 'mian', "
        "so its runs go to 'main'; did you mean 'main'?"
    )
    (unlike,) = lane_warnings(settings("x"), sources)
    assert unlike.endswith("so its runs go to 'main'")
    assert [*lane_warnings(settings("main"), sources)] == []
    assert [*lane_warnings(settings(None), {})] == []


def test_l1_what_no_config_says_is_not_warned_about() -> None:
    assert [*lane_warnings(settings("elsewhere"), {})] == []
