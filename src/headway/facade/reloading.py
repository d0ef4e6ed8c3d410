"""What differs between two settings, and how each difference is applied to a running engine (O-1, F-1)."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import msgspec

from headway.config.keys import LIVE_OF_NODE
from headway.facade.registry import Registry
from headway.model.run import AgentName
from headway.model.settings import AgentSettings, Settings
from headway.model.views import Reloaded
from headway.runtime.engine import Engine
from headway.wiring import give_callbacks

_MAPPINGS = ("lanes", "channels", "agents", "runners")
_STRUCTS = ("limits", "queue", "callbacks")


def apply(
    engine: Engine, registry: Registry, old: Settings, new: Settings
) -> tuple[Settings, Reloaded]:
    """Make the engine go by the new settings where they differ from the old ones.

    Answers what holds from now on: where a new start is needed, still the old.
    """
    changed = sorted(differences(old, new))
    waits = tuple(name for name in changed if _needs_restart(name, new))
    held = settled(old, new)
    engine.go_by(held)
    for name, lane in held.lanes.items():
        if old.lanes.get(name) != lane:
            engine.reset_lane(name, lane)
    limits = {
        name: getattr(held.limits, name)
        for name in held.limits.__struct_fields__
        if getattr(old.limits, name) != getattr(held.limits, name)
    }
    if limits:
        engine.set_limits(msgspec.structs.replace(engine.limits, **limits))
    if old.callbacks != held.callbacks:
        give_callbacks(engine, held.callbacks)
    for agent in _changed_agents(old, held):
        _set_agent(engine, registry, agent, held)
    return held, Reloaded(tuple(name for name in changed if name not in waits), waits)


def differences(old: Settings, new: Settings) -> Iterator[str]:
    """The names of all that differs, as in the file: `lanes.main`, `limits.max_inflight`, `node.ageing`."""
    for field in Settings.__struct_fields__:
        before, after = getattr(old, field), getattr(new, field)
        if before == after:
            continue
        if field in _STRUCTS:
            names = type(before).__struct_fields__
            differ = [name for name in names if getattr(before, name) != getattr(after, name)]
        elif field in _MAPPINGS:
            names = before.keys() | after.keys()
            differ = [name for name in names if before.get(name) != after.get(name)]
        else:
            yield f"node.{field}"
            continue
        yield from (f"{field}.{name}" for name in differ)


def settled(old: Settings, new: Settings) -> Settings:
    """The new settings, but what needs a new start stays as it was."""
    kept = {
        field: getattr(old, field)
        for field in Settings.__struct_fields__
        if field not in (*LIVE_OF_NODE, *_MAPPINGS, *_STRUCTS)
    }
    kept["lanes"] = MappingProxyType({**old.lanes, **new.lanes})
    kept["runners"] = old.runners
    return msgspec.structs.replace(new, **kept)


def _needs_restart(name: str, new: Settings) -> bool:
    """A lane that is named no longer may have work in it: it stays until the next start."""
    section, _, rest = name.partition(".")
    if section == "node":
        return rest not in LIVE_OF_NODE
    return section == "runners" or (section == "lanes" and rest not in new.lanes)


def _changed_agents(old: Settings, new: Settings) -> Iterator[AgentName]:
    before: Mapping[AgentName, AgentSettings] = old.agents
    for name in sorted(before.keys() | new.agents.keys()):
        if before.get(name, AgentSettings()) != new.agents.get(name, AgentSettings()):
            yield name


def _set_agent(engine: Engine, registry: Registry, name: AgentName, settings: Settings) -> None:
    """What code says of an agent wins over the settings; of one that is not registered here, it says nothing."""
    if name in registry.agents:
        engine.set_agent(name, registry.settings_of(name, settings))
    else:
        engine.set_agent(name, settings.agents.get(name, AgentSettings()))
