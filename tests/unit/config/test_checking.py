"""Lanes and settings that were made in code (L-1): refused by the name of the field."""

import pytest

from headway.config import MAX_WIDTH, check_settings, lane_settings
from headway.model.errors import InvalidInput
from headway.model.settings import Budget, LaneSettings, Settings


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


def test_o2_settings_from_code_are_checked_by_field() -> None:
    with pytest.raises(InvalidInput) as refused:
        check_settings(Settings(lease=-1))
    assert refused.value.field == "settings.lease"
