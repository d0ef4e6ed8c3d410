"""Settings from two hands: what the user's own code says, and on top of it what his config says."""

from types import MappingProxyType
from typing import TypeVar

import msgspec

from headway.config import Config
from headway.config.layers import KeyPath, dotted
from headway.model.settings import Settings

_BY_NAME = ("lanes", "channels", "agents")
_VALUES = ("queue", "limits", "callbacks")
_BUDGET = "budget"
"""The one value inside of others; its fields are written among theirs."""

Thing = TypeVar("Thing", bound=msgspec.Struct)


def overlay(code: Settings, config: Config) -> Settings:
    """The code's settings with what the config really says; what neither says is at its default in both."""
    changes: dict[str, object] = {}
    for section in _BY_NAME:
        by_code = getattr(code, section)
        things = {
            name: _over(by_code[name], one, config, (section, name)) if name in by_code else one
            for name, one in getattr(config.settings, section).items()
            if _is_said(config, section, name)
        }
        if things:
            changes[section] = MappingProxyType({**by_code, **things})
    for section in _VALUES:
        wanted = getattr(config.settings, section)
        changes[section] = _over(getattr(code, section), wanted, config, (section,))
    changes["runners"] = MappingProxyType({**code.runners, **config.settings.runners})
    for field in Settings.__struct_fields__:
        if f"node.{field}" in config.sources:
            changes[field] = getattr(config.settings, field)
    return msgspec.structs.replace(code, **changes)


def _over(code: Thing, wanted: Thing, config: Config, place: KeyPath) -> Thing:
    """The code's value, with the fields that the config says."""
    values: dict[str, object] = {}
    for field in wanted.__struct_fields__:
        value = getattr(wanted, field)
        if field == _BUDGET:
            values[field] = _over(getattr(code, field), value, config, place)
        elif dotted((*place, field)) in config.sources:
            values[field] = value
    return msgspec.structs.replace(code, **values)


def _is_said(config: Config, section: str, name: str) -> bool:
    thing = dotted((section, name))
    return any(key.startswith(f"{thing}.") for key in config.sources)
