"""The defaults are SPEC's, and they stand in one place."""

from types import MappingProxyType

import pytest

from headway.core.request import CHANNEL_TIMEOUT
from headway.core.retry import FIRST_DELAY, JITTER, LONGEST_DELAY
from headway.model.run import INTERACTIVE_BELOW, LaneName
from headway.model.settings import (
    DEFAULT_LANES,
    LANE_ALIASES,
    MAX_TEXT,
    SOURCE_DEFAULTS,
    AgentSettings,
    Budget,
    LaneSettings,
    Limits,
    QueueSettings,
    Settings,
    SourceDefaults,
)
from headway.model.time import DAY, HOUR, MILLISECOND, MINUTE, SECOND
from headway.model.words import Drop, Mode, Source, SteerFallback


def test_l1_default_lanes() -> None:
    widths = {name: lane.width for name, lane in Settings().lanes.items()}
    assert widths == {"main": 30, "subagent": 50, "team": 100, "cron": 30}
    assert {lane.reserve for lane in DEFAULT_LANES.values()} == {0}
    assert dict(LANE_ALIASES) == {"delegate": "team"}


def test_f1_default_limits() -> None:
    assert Settings().limits == Limits(
        max_queue=1000, max_queue_per_agent=100, max_inflight=20, max_inflight_per_agent=10
    )


def test_f1_every_default_limit_can_really_be_reached() -> None:
    """A lane narrower than a limit, or a limit above the sum of the smaller ones, would hide it."""
    settings = Settings()
    limits = settings.limits
    task_lane = settings.lanes[SOURCE_DEFAULTS[Source.TASK].lane]
    assert limits.max_inflight_per_agent < limits.max_inflight <= task_lane.width
    assert limits.max_queue_per_agent < limits.max_queue


def test_s_default_queue() -> None:
    """S-1, S-6, S-7: one at once, cap 10, drop old, 800 ms, steering falls back to interrupt."""
    assert Settings().queue == QueueSettings(
        mode=Mode.QUEUE,
        cap=10,
        drop=Drop.OLD,
        debounce=800 * MILLISECOND,
        steer_fallback=SteerFallback.INTERRUPT,
        max_concurrent=1,
    )


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("ageing", 30 * SECOND),
        ("cancel_grace", 10 * SECOND),
        ("drain_grace", 30 * SECOND),
        ("wait_notice", 2 * SECOND),
        ("throttle_ratio", 0.60),
        ("debounce_limit", 5),
        ("dedupe", 20 * MINUTE),
        ("idempotency", 24 * HOUR),
        ("retention", 7 * DAY),
        ("task_retention", 300 * SECOND),
    ],
)
def test_the_defaults_of_spec(setting: str, value: object) -> None:
    """F-3, F-6, L-5, L-7, S-2, S-3, S-7, S-8 and the list of defaults at SPEC's end."""
    assert getattr(Settings(), setting) == value


def test_attempts_from_channels_are_bounded_by_an_hour_and_texts_by_a_mebibyte() -> None:
    assert CHANNEL_TIMEOUT == 60 * MINUTE
    assert MAX_TEXT == 1024 * 1024


@pytest.mark.parametrize(
    ("source", "defaults"),
    [
        (Source.MESSAGE, SourceDefaults(0, 2, 0, LaneName("main"), None)),
        (Source.TASK, SourceDefaults(0, 1, 0, LaneName("main"), MINUTE)),
        (Source.FIRING, SourceDefaults(10, 1, 3, LaneName("cron"), None)),
        (Source.HEARTBEAT, SourceDefaults(20, 2, 0, LaneName("cron"), None)),
        (Source.DELEGATION, SourceDefaults(0, 1, 0, LaneName("subagent"), None)),
    ],
)
def test_f4_f5_d7_c9_l1_defaults_by_source(source: Source, defaults: SourceDefaults) -> None:
    """Priority, attempts after a crash, retries after an error, lane, and deadline."""
    assert SOURCE_DEFAULTS[source] == defaults


def test_x5_what_is_interactive() -> None:
    """Messages, tasks and sub-runs are; firings and heartbeats are background."""
    assert INTERACTIVE_BELOW == 10
    background = {
        source
        for source, defaults in SOURCE_DEFAULTS.items()
        if defaults.priority >= INTERACTIVE_BELOW
    }
    assert background == {Source.FIRING, Source.HEARTBEAT}


def test_c9_retry_delays() -> None:
    assert (FIRST_DELAY, LONGEST_DELAY, JITTER) == (2 * SECOND, 30 * SECOND, 0.25)


def test_x6_x8_nothing_is_bounded_or_favoured_unless_asked() -> None:
    assert AgentSettings() == AgentSettings(
        weight=1, preemptible=False, provider=None, max_inflight=None, budget=Budget(None, None)
    )
    assert LaneSettings(3) == LaneSettings(3, reserve=0, budget=Budget(None, None))


def test_settings_are_frozen_all_the_way() -> None:
    settings = Settings()
    with pytest.raises(AttributeError):
        settings.ageing = 1  # type: ignore[misc]
    for table in (settings.lanes, settings.agents, settings.channels, SOURCE_DEFAULTS):
        assert isinstance(table, MappingProxyType)
