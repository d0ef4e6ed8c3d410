"""Settings from the environment (L-1, F-1): applied by name, refused by name."""

import pytest

from headway.config import MAX_WIDTH, lane_settings, settings_from
from headway.model.errors import InvalidInput
from headway.model.settings import Budget, LaneSettings, Limits, Settings


def widths(**environment: str) -> dict[str, int]:
    return {str(name): lane.width for name, lane in settings_from(environment).lanes.items()}


def test_l1_an_empty_environment_gives_the_defaults() -> None:
    assert settings_from({"PATH": "x", "HEADWAY": "1"}) == Settings()


def test_l1_a_variable_sets_the_width_of_its_lane_only() -> None:
    assert widths(HEADWAY_LANE_CRON="1") == {"main": 30, "subagent": 50, "team": 100, "cron": 1}


def test_l1_delegate_is_team() -> None:
    assert widths(HEADWAY_LANE_DELEGATE="7") == {
        "main": 30,
        "subagent": 50,
        "team": 7,
        "cron": 30,
    }


def test_l1_a_new_name_makes_a_lane_and_0_pauses_one() -> None:
    assert widths(HEADWAY_LANE_NIGHT="4", HEADWAY_LANE_MAIN="0") == {
        "main": 0,
        "subagent": 50,
        "team": 100,
        "cron": 30,
        "night": 4,
    }


def test_f1_max_inflight_leaves_the_other_limits_alone() -> None:
    assert settings_from({"HEADWAY_MAX_INFLIGHT": "5"}).limits == Limits(max_inflight=5)


@pytest.mark.parametrize("name", ["HEADWAY_LANE_MAIN", "HEADWAY_MAX_INFLIGHT"])
@pytest.mark.parametrize(
    "value",
    [
        "",
        "-1",
        "+1",
        "1.5",
        "many",
        "1_0",
        " 1",
        "\u0663",
        "\u00b2",
        str(MAX_WIDTH + 1),
        "9" * 5000,
    ],
)
def test_o2_a_bad_value_is_refused_by_the_name_of_its_variable(name: str, value: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        settings_from({name: value})
    assert refused.value.field == name
    assert "whole number from 0 to" in refused.value.allowed


def test_o2_a_lane_needs_a_name() -> None:
    with pytest.raises(InvalidInput, match="HEADWAY_LANE_"):
        settings_from({"HEADWAY_LANE_": "5"})


@pytest.mark.parametrize(
    "value",
    [0, 3, MAX_WIDTH, LaneSettings(3, 3), LaneSettings(2, 0, Budget(5, 6))],
)
def test_l1_a_lane_from_code(value: int | LaneSettings) -> None:
    expected = LaneSettings(value) if isinstance(value, int) else value
    assert lane_settings("lanes.main", value) == expected


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (-1, "lanes.main"),
        (MAX_WIDTH + 1, "lanes.main"),
        (True, "lanes.main"),
        ("5", "lanes.main"),
        (2.0, "lanes.main"),
        (None, "lanes.main"),
        (LaneSettings(-1), "lanes.main.width"),
        (LaneSettings(MAX_WIDTH + 1), "lanes.main.width"),
        (LaneSettings(3, -1), "lanes.main.reserve"),
        (LaneSettings(3, 4), "lanes.main.reserve"),
    ],
)
def test_l1_a_bad_lane_from_code_is_refused_by_field(value: object, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        lane_settings("lanes.main", value)
    assert refused.value.field == field
