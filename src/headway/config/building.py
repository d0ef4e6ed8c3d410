"""From layers that were put together to the frozen values that a node and a server live by."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

import msgspec

from headway.config.keys import SECTIONS
from headway.config.layers import KeyPath, Said, dotted
from headway.model.errors import InvalidInput
from headway.model.run import AgentName, LaneName, QueueOptions
from headway.model.server import LogSettings, ServerSettings
from headway.model.settings import (
    DEFAULT_LANES,
    AgentSettings,
    Budget,
    LaneSettings,
    Limits,
    QueueSettings,
    Settings,
)
from headway.model.time import span_text

Made = TypeVar("Made", bound=msgspec.Struct)


def settings_of(said: Mapping[KeyPath, Said]) -> tuple[Settings, list[InvalidInput]]:
    """The settings of a node, and what does not fit together in them."""
    lanes, problems = _lanes(said)
    node = _section(said, "node", Settings)
    problems += _lease_problems(said, node)
    settings = msgspec.structs.replace(
        node,
        lanes=MappingProxyType(lanes),
        queue=_section(said, "queue", QueueSettings),
        limits=_section(said, "limits", Limits),
        channels=MappingProxyType(
            {name: QueueOptions(**said) for name, said in _things(said, "channels").items()}  # type: ignore[arg-type]
        ),
        agents=MappingProxyType(
            {AgentName(name): _agent(said) for name, said in _things(said, "agents").items()}
        ),
    )
    return settings, problems


def server_of(said: Mapping[KeyPath, Said]) -> ServerSettings:
    server = _section(said, "server", ServerSettings)
    return msgspec.structs.replace(server, log=_section(said, "log", LogSettings))


def _section(said: Mapping[KeyPath, Said], section: str, owner: type[Made]) -> Made:
    assert SECTIONS[section] is owner
    values = {path[1]: one.value for path, one in said.items() if path[0] == section}
    return owner(**values)


def _things(said: Mapping[KeyPath, Said], section: str) -> dict[str, dict[str, object]]:
    """What is said about each thing of a section that holds things by name."""
    things: dict[str, dict[str, object]] = {}
    for path, one in said.items():
        if path[0] == section:
            about = things.setdefault(path[1], {})
            if len(path) > 2:
                about[path[2]] = one.value
    return things


def _agent(about: dict[str, object]) -> AgentSettings:
    budget = _budget(about)
    return AgentSettings(**about, budget=budget)  # type: ignore[arg-type]


def _budget(about: dict[str, object]) -> Budget:
    picked = {name: about.pop(name) for name in Budget.__struct_fields__ if name in about}
    return Budget(**picked)  # type: ignore[arg-type]


def _lanes(
    said: Mapping[KeyPath, Said],
) -> tuple[dict[LaneName, LaneSettings], list[InvalidInput]]:
    """The lanes from the start, changed and added to as was said."""
    lanes = dict(DEFAULT_LANES)
    problems: list[InvalidInput] = []
    for name, about in _things(said, "lanes").items():
        lane = LaneName(name)
        usual = lanes.get(lane)
        if usual is None and "width" not in about:
            source = next(one.source for path, one in said.items() if path[:2] == ("lanes", name))
            place = f"{source}: {dotted(('lanes', name))}"
            problems.append(InvalidInput(place, about, "given a width: it is a new lane"))
            continue
        about.setdefault("width", usual.width if usual is not None else 0)
        budget = _budget(about)
        made = LaneSettings(**about, budget=budget)  # type: ignore[arg-type]
        if made.reserve > made.width:
            place = said["lanes", name, "reserve"].place
            allowed = f"at most the lane's width, {made.width}"
            problems.append(InvalidInput(place, made.reserve, allowed))
        lanes[lane] = made
    return lanes, problems


def _lease_problems(said: Mapping[KeyPath, Said], node: Settings) -> list[InvalidInput]:
    """A lease that is renewed too late is lost each time."""
    if node.renew_every < node.lease:
        return []
    renew, lease = span_text(node.renew_every), span_text(node.lease)
    if (one := said.get(("node", "lease"))) is not None:
        return [InvalidInput(one.place, lease, f"longer than renew_every, which is {renew}")]
    place = said["node", "renew_every"].place
    return [InvalidInput(place, renew, f"shorter than the lease, which is {lease}")]
