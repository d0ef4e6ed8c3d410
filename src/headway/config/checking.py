"""Settings that were made in code, checked as strictly as those that were written in a file."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from headway.model.errors import InvalidInput
from headway.model.settings import LaneSettings, Settings

MAX_WIDTH = 1_000_000


def check_settings(settings: object) -> Settings:
    """Settings that were made in code, every value checked and every word made one of its vocabulary."""
    if not isinstance(settings, Settings):
        raise InvalidInput("settings", settings, "a headway.Settings")
    try:
        plain = msgspec.to_builtins(settings, enc_hook=_plain)
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
        runners=MappingProxyType(dict(checked.runners)),
    )


def _plain(value: object) -> object:
    """Mappings that cannot be changed are no builtins."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not a setting")


def lane_settings(field: str, value: object) -> LaneSettings:
    """A lane from what code says: a width, or whole settings."""
    if isinstance(value, LaneSettings):
        if not 0 <= value.width <= MAX_WIDTH:
            allowed = f"a whole number from 0 to {MAX_WIDTH}"
            raise InvalidInput(f"{field}.width", value.width, allowed)
        if not 0 <= value.reserve <= value.width:
            raise InvalidInput(f"{field}.reserve", value.reserve, "from 0 to the lane's width")
        return value
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_WIDTH:
        raise InvalidInput(field, value, f"a whole number from 0 (paused) to {MAX_WIDTH}")
    return LaneSettings(value)
