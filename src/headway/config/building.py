"""From layers that were put together to the frozen values that a node and a server live by."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeVar

import msgspec

from headway.config.keys import OF_RUNNERS, RUNNER, SECTIONS
from headway.config.layers import KeyPath, Said, dotted
from headway.model.errors import InvalidInput
from headway.model.run import AgentName, LaneName, QueueOptions
from headway.model.runner import RUNNERS, SECRETS, RunnerSpec
from headway.model.server import LogSettings, ServerSettings
from headway.model.settings import (
    DEFAULT_LANES,
    AgentSettings,
    Budget,
    CallbackSettings,
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
    agents, runners, wrong = _agents(said)
    problems += wrong
    settings = msgspec.structs.replace(
        node,
        lanes=MappingProxyType(lanes),
        queue=_section(said, "queue", QueueSettings),
        limits=_section(said, "limits", Limits),
        callbacks=_section(said, "callbacks", CallbackSettings),
        channels=MappingProxyType(
            {name: QueueOptions(**said) for name, said in _things(said, "channels").items()}  # type: ignore[arg-type]
        ),
        agents=MappingProxyType(agents),
        runners=MappingProxyType(runners),
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


def _agents(
    said: Mapping[KeyPath, Said],
) -> tuple[dict[AgentName, AgentSettings], dict[AgentName, RunnerSpec], list[InvalidInput]]:
    """What the scheduler must know of each agent, and how those are run that are no functions."""
    agents: dict[AgentName, AgentSettings] = {}
    runners: dict[AgentName, RunnerSpec] = {}
    problems: list[InvalidInput] = []
    for name, about in _things(said, "agents").items():
        runner = {key: about.pop(key) for key in tuple(about) if key in OF_RUNNERS}
        kind = runner.pop(RUNNER, None)
        if kind is not None:
            spec = RUNNERS[str(kind)]
            problems += _runner_problems(said, name, spec, runner)
            if not problems:
                runners[AgentName(name)] = spec(**runner)  # type: ignore[arg-type]
        elif runner:
            key = next(iter(runner))
            allowed = f"said together with how the agent is run: {RUNNER} = {_or(RUNNERS)}"
            problems.append(_not_so(said["agents", name, key], key, allowed))
        budget = _budget(about)
        agents[AgentName(name)] = AgentSettings(**about, budget=budget)  # type: ignore[arg-type]
    return agents, runners, problems


def _runner_problems(
    said: Mapping[KeyPath, Said], name: str, spec: type[RunnerSpec], about: Mapping[str, object]
) -> Iterator[InvalidInput]:
    """Keys of other runners, and those that are missing."""
    place = said["agents", name, RUNNER].place
    kind = said["agents", name, RUNNER].value
    for key in about.keys() - set(spec.__struct_fields__):
        others = _or(other for other, fields in RUNNERS.items() if key in fields.__struct_fields__)
        allowed = f"left out: it is for {RUNNER} = {others}, and this agent's is {kind!r}"
        yield _not_so(said["agents", name, key], key, allowed)
    needed = {field.name for field in msgspec.structs.fields(spec) if field.required}
    for key in sorted(needed - about.keys()):
        yield InvalidInput(place, kind, f"said together with {dotted(('agents', name, key))}")


def _not_so(one: Said, key: str, allowed: str) -> InvalidInput:
    """What is wrong with a key of a runner, without what nobody is shown."""
    return InvalidInput(one.place, "…" if key in SECRETS else one.value, allowed)


def _or(names: Iterable[str]) -> str:
    return " or ".join(repr(name) for name in names)


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
