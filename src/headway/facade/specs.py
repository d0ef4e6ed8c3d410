"""What can be said by name about agents that are no functions, and how it is checked."""

from collections.abc import Mapping, Sequence

import msgspec

from headway.config.keys import NAMED
from headway.core.request import AGENT_CHECKS, Duration
from headway.facade.options import AgentOptions
from headway.model.errors import UnknownOption
from headway.model.runner import RUNNERS, CommandSpec, PaneSpec, RunnerSpec
from headway.model.time import MINUTE, span

RESUMES = 3
"""So often a worker's agent session is resumed by itself (W-3)."""
RESUME_AFTER = MINUTE
"""So long after each try began the next one does, at the earliest (W-3)."""


class PaneOptions(AgentOptions, total=False):
    """All that can be said about an agent in a pane besides its name and command."""

    folder: str
    environment: Mapping[str, str]
    resume: Sequence[str]
    grace: Duration
    output: int
    socket: str
    width: int
    height: int


class CommandOptions(AgentOptions, total=False):
    """All that can be said about an agent that is a program besides its name and command."""

    folder: str
    environment: Mapping[str, str]
    stdin: str
    resume: Sequence[str]
    grace: Duration
    output: int


class HttpOptions(AgentOptions, total=False):
    """All that can be said about an agent behind an endpoint besides its name and address."""

    method: str
    headers: Mapping[str, str]
    token: str
    body: object
    reply: str
    max_body: int
    connections: int


class TabsOptions(AgentOptions, total=False):
    """All that can be said about browser instances."""

    instances: Mapping[str, str]
    url: str
    headers: Mapping[str, str]
    token: str
    tokens: Mapping[str, str]
    max_body: int
    connections: int


class ChatOptions(AgentOptions, total=False):
    """All that can be said about an agent behind a chat endpoint besides its name, address and model."""

    token: str
    headers: Mapping[str, str]
    system: str
    options: object
    stream: bool
    max_body: int
    connections: int


def spec_of(kind: str, said: Mapping[str, object]) -> tuple[RunnerSpec, dict[str, object]]:
    """How an agent is run, and what else was said about it; `InvalidInput` names the field that is wrong."""
    spec = RUNNERS[kind]
    fields = frozenset(spec.__struct_fields__)
    rest = {name: value for name, value in said.items() if name not in fields}
    for name in rest:
        if name not in AGENT_CHECKS:
            raise UnknownOption(name, fields | AGENT_CHECKS.keys())
    checked = {name: _checked(name, said[name]) for name in said if name in fields}
    return spec(**checked), rest  # type: ignore[arg-type]  # each was checked by its kind


def _checked(name: str, value: object) -> object:
    """One field, checked as the same key of a file is."""
    if name == "grace":
        return span(value, name)
    if isinstance(value, str | tuple) and not value:
        return value
    return NAMED["agents"][name].kind.read(value, name)


def defaults_of(spec: RunnerSpec) -> dict[str, object]:
    """What the scheduler is told of such an agent unless something else is said."""
    if isinstance(spec, CommandSpec | PaneSpec) and spec.resume:
        return {"max_attempts": 1 + RESUMES, "resume_after": RESUME_AFTER}
    return {}


def with_defaults(spec: RunnerSpec, said: msgspec.Struct) -> dict[str, object]:
    """The defaults that settings of an agent do not say otherwise."""
    return {name: value for name, value in defaults_of(spec).items() if getattr(said, name) is None}
