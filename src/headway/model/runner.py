"""What can be said about how an agent is run, where that is not a function of the program (W-1, T-3)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

import msgspec

from headway.model.bounds import Length, Positive
from headway.model.time import SECOND
from headway.model.value import Value

KIB = 1024
MIB = 1024 * KIB

_NOTHING: Mapping[str, str] = MappingProxyType({})


class CommandSpec(Value, frozen=True, tag="command", kw_only=True):
    """A program that is started for each attempt. Texts are templates, such as `{text}` and `{session}`."""

    command: tuple[str, ...] = ()
    """The program and its arguments, without a shell. Empty: it runs the commands of jobs."""
    folder: str = ""
    """Where it is run; empty: where the server was started."""
    environment: Mapping[str, str] = msgspec.field(default_factory=lambda: _NOTHING)
    """What is added to the environment of the server; `env:NAME` takes the value of that variable."""
    stdin: str = ""
    """What it can read; empty: nothing."""
    resume: tuple[str, ...] = ()
    """What is run instead when an earlier attempt died: it goes on with the agent's own session (W-3)."""
    grace: Length = 5 * SECOND
    """How long it may take to end when it is asked to; then it is killed."""
    output: Positive = 64 * KIB
    """So many bytes of what it writes last are kept."""


class PaneSpec(Value, frozen=True, tag="tmux", kw_only=True):
    """A program in a pane of tmux, at which a person can look and type."""

    command: tuple[str, ...]
    """The program and its arguments, without a shell."""
    folder: str = ""
    """Where it is run; empty: where the server was started."""
    environment: Mapping[str, str] = msgspec.field(default_factory=lambda: _NOTHING)
    """What is added to the environment of the server; `env:NAME` takes the value of that variable."""
    resume: tuple[str, ...] = ()
    """What is run instead when an earlier attempt died: it goes on with the agent's own session (W-3)."""
    grace: Length = 5 * SECOND
    """How long it may take to end when it is asked to; then it is killed."""
    output: Positive = 64 * KIB
    """So many bytes of what it writes last are kept."""
    socket: str = "headway"
    """The name of the tmux server: a person's own one is left alone."""
    width: Positive = 200
    """Columns of the pane."""
    height: Positive = 50
    """Lines of the pane."""


class HttpSpec(Value, frozen=True, tag="http", kw_only=True):
    """An endpoint that speaks JSON: each attempt is one request."""

    url: str
    """A template; what is filled in can change neither the host nor the path."""
    method: str = "POST"
    """`POST`, `PUT`, `PATCH`, `GET` or `DELETE`."""
    headers: Mapping[str, str] = msgspec.field(default_factory=lambda: _NOTHING)
    """Sent with each request; `env:NAME` takes the value of that variable."""
    token: str = ""
    """Sent as `Authorization: Bearer …`; `env:NAME` takes the value of that variable."""
    body: object = None
    """JSON. A template: strings in it are filled in, and one that is nothing but `{params}` becomes that value."""
    reply: str = ""
    """Where the text stands in the answer, such as `choices.0.message.content`; else all of it is data."""
    max_body: Positive = MIB
    """So many bytes of an answer are read."""
    connections: Positive = 100
    """How many requests go at once; more wait for a free connection."""


class TabsSpec(Value, frozen=True, tag="tabs", kw_only=True):
    """Browser instances: a task is posted to the one that owns its tab (T-3)."""

    instances: Mapping[str, str] = msgspec.field(default_factory=lambda: _NOTHING)
    """Which address owns which tab."""
    url: str = ""
    """A template of the address for all other tabs, such as `http://browser-{tab_id}:9867`."""
    headers: Mapping[str, str] = msgspec.field(default_factory=lambda: _NOTHING)
    """Sent with each request; `env:NAME` takes the value of that variable."""
    token: str = ""
    """Sent as `Authorization: Bearer …`; `env:NAME` takes the value of that variable."""
    tokens: Mapping[str, str] = msgspec.field(default_factory=lambda: _NOTHING)
    """Tokens of single instances, by their address."""
    max_body: Positive = MIB
    """So many bytes of an answer are read."""
    connections: Positive = 100
    """How many requests go at once; more wait for a free connection."""


class ChatSpec(Value, frozen=True, tag="chat", kw_only=True):
    """A chat endpoint that speaks as OpenAI's does; what it streams is the run's live output."""

    url: str
    """Up to and with `/v1`."""
    model: str
    """What the endpoint calls the model."""
    token: str = ""
    """Sent as `Authorization: Bearer …`; `env:NAME` takes the value of that variable."""
    headers: Mapping[str, str] = msgspec.field(default_factory=lambda: _NOTHING)
    """Sent with each request; `env:NAME` takes the value of that variable."""
    system: str = ""
    """A template of what the model is told first."""
    options: object = None
    """JSON. What else is said with each request, such as `{"temperature": 0}`."""
    stream: bool = True
    """Whether the answer comes piece by piece."""
    max_body: Positive = 4 * MIB
    """So many bytes of an answer are read."""
    connections: Positive = 100
    """How many requests go at once; more wait for a free connection."""


RunnerSpec: TypeAlias = CommandSpec | PaneSpec | HttpSpec | TabsSpec | ChatSpec

RUNNERS: Mapping[str, type[RunnerSpec]] = MappingProxyType(
    {
        "command": CommandSpec,
        "tmux": PaneSpec,
        "http": HttpSpec,
        "tabs": TabsSpec,
        "chat": ChatSpec,
    }
)
"""What `runner` says in a file, and what can be said about each."""
FROM_ENVIRONMENT = "env:"
"""A secret that begins so is the value of the variable that is named."""
SECRETS = frozenset({"token", "tokens", "headers", "environment"})
"""Fields that may hold what nobody is shown."""
