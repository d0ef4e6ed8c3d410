"""Settings from the environment, parsed once. What code passes explicitly comes on top."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from headway.model.errors import InvalidInput
from headway.model.run import LaneName
from headway.model.settings import DEFAULT_LANES, LANE_ALIASES, LaneSettings, Limits, Settings
from headway.model.time import span

_LANE_PREFIX = "HEADWAY_LANE_"
MAX_WIDTH = 1_000_000
_SPANS = ("lease", "renew_every", "poll_every", "drain_grace", "cancel_grace", "retention")
"""Settings that the environment can give as a duration: `HEADWAY_LEASE=30s`."""


def settings_from(environment: Mapping[str, str]) -> Settings:
    """The defaults with what the environment says: `HEADWAY_LANE_<NAME>`, `HEADWAY_MAX_INFLIGHT` (L-1, F-1)
    and the durations of `_SPANS`.
    """
    lanes: dict[LaneName, LaneSettings] = dict(DEFAULT_LANES)
    for name, value in environment.items():
        if name.startswith(_LANE_PREFIX):
            written = name.removeprefix(_LANE_PREFIX).lower()
            if not written:
                raise InvalidInput(name, value, "followed by the name of a lane")
            lane = LANE_ALIASES.get(written, LaneName(written))
            lanes[lane] = LaneSettings(_number(name, value))
    limits = Limits()
    if (inflight := environment.get("HEADWAY_MAX_INFLIGHT")) is not None:
        count = _number("HEADWAY_MAX_INFLIGHT", inflight)
        limits = msgspec.structs.replace(limits, max_inflight=count)
    spans = {
        name: span(environment[variable], variable)
        for name in _SPANS
        if (variable := f"HEADWAY_{name.upper()}") in environment
    }
    settings = Settings(lanes=MappingProxyType(lanes), limits=limits)
    if zone := environment.get("HEADWAY_TZ"):
        settings = msgspec.structs.replace(settings, tz=zone)
    return msgspec.structs.replace(settings, **spans)


def check_settings(settings: object) -> Settings:
    """Settings that were made in code, every value checked and every word made one of its vocabulary."""
    if not isinstance(settings, Settings):
        raise InvalidInput("settings", settings, "a headway.Settings")
    try:
        plain = msgspec.to_builtins(
            msgspec.structs.replace(
                settings,
                lanes=dict(settings.lanes),
                channels=dict(settings.channels),
                agents=dict(settings.agents),
            )
        )
        checked = msgspec.convert(plain, Settings)
    except (msgspec.ValidationError, TypeError, ValueError, AttributeError) as wrong:
        what, _, where = str(wrong).partition(" - at `$")
        field = f"settings{where.rstrip('`')}"
        raise InvalidInput(field, "its value", what.removeprefix("Expected ")) from None
    for name, lane in checked.lanes.items():
        lane_settings(f"settings.lanes.{name}", lane)
    return msgspec.structs.replace(
        checked,
        lanes=MappingProxyType(dict(checked.lanes)),
        channels=MappingProxyType(dict(checked.channels)),
        agents=MappingProxyType(dict(checked.agents)),
    )


def lane_settings(field: str, value: object) -> LaneSettings:
    """A lane from what code says: a width, or whole settings."""
    if isinstance(value, LaneSettings):
        _number(f"{field}.width", str(value.width))
        if not 0 <= value.reserve <= max(value.width, 0):
            raise InvalidInput(f"{field}.reserve", value.reserve, "from 0 to the lane's width")
        return value
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_WIDTH:
        raise InvalidInput(field, value, f"a whole number from 0 (paused) to {MAX_WIDTH}")
    return LaneSettings(value)


def _number(field: str, value: str) -> int:
    plain = value.isascii() and value.isdigit() and len(value) <= len(str(MAX_WIDTH))
    if not plain or int(value) > MAX_WIDTH:
        raise InvalidInput(field, value, f"a whole number from 0 to {MAX_WIDTH}")
    return int(value)
