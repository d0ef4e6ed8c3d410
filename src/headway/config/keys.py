"""The one table of everything that can be set: what it is called in the file, in the environment and as a flag.

Names, kinds and defaults come from the values themselves (`model.settings`, `model.server`), so a new field is a
new key by itself. Said here is only what a field cannot say: its section, odd names, whether a reload applies it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import get_type_hints

import msgspec

from headway.config.checking import MAX_WIDTH
from headway.config.kinds import (
    Kind,
    arguments,
    choice,
    duration,
    kind_of,
    secret,
    text,
    whole_number,
    zone,
)
from headway.model.run import QueueOptions
from headway.model.runner import RUNNERS
from headway.model.server import LogSettings, ServerSettings
from headway.model.settings import (
    MAX_NAME,
    AgentSettings,
    Budget,
    CallbackSettings,
    LaneSettings,
    Limits,
    QueueSettings,
    Settings,
)
from headway.model.text import is_whole
from headway.model.time import MILLISECOND, SECOND

PREFIX = "HEADWAY_"
LANE_PREFIX = f"{PREFIX}LANE_"
STORE_ALIAS = f"{PREFIX}DATABASE"
RUNNER = "runner"
"""The key that says how an agent is run."""
OF_RUNNERS = frozenset(
    {RUNNER, *(name for spec in RUNNERS.values() for name in spec.__struct_fields__)}
)
"""Keys of agents that say how they are run."""
ARGUMENTS = frozenset({"command", "resume"})
A_NAME = f"a text of 1 to {MAX_NAME} characters"
"""What lanes, channels and agents can be called."""

_UNPREFIXED = frozenset({"", "server", "node"})
"""Sections that the names of variables leave out: `HEADWAY_PORT`, `HEADWAY_LEASE`."""
_VARIABLES = {"limits.max_inflight": f"{PREFIX}MAX_INFLIGHT"}
_FLAGS = {"node.drain_grace": "--grace", "log.file": "--log-file", "log.level": "--log-level"}
_OFTEN = duration(MILLISECOND)
"""After this something is done again: 0 would mean all the time."""
_KINDS = {
    "store": text("the address of a store: sqlite:///file.db or postgresql://user@host/database"),
    "log.file": text("the path of a file", may_be_empty=True),
    "node.tz": zone(),
    "node.lease": _OFTEN,
    "node.renew_every": _OFTEN,
    "node.poll_every": _OFTEN,
    "node.prune_every": _OFTEN,
    "server.send_within": _OFTEN,
    "callbacks.secret": secret(),
    "callbacks.timeout": duration(MILLISECOND, 15 * SECOND),
    **{f"limits.{name}": whole_number(0, MAX_WIDTH) for name in Limits.__struct_fields__},
}
_ELSEWHERE = frozenset(
    {"lanes", "queue", "channels", "agents", "runners", "limits", "callbacks", "log", "budget"}
)
"""Fields that are sections of their own, or spread over their owner's."""
_LIVE = frozenset({"lanes", "queue", "limits", "callbacks", "channels", "agents"})
_LEVEL = "log.level"
"""The one thing about the log that a reload applies."""
LIVE_OF_NODE = frozenset(
    {
        "ageing",
        "callback_within",
        "cancel_grace",
        "debounce_limit",
        "drain_grace",
        "idle_sessions",
        "live_runs",
        "put_back_after",
        "result_size",
        "throttle_ratio",
        "tz",
        "verdict_within",
        "wait_notice",
    }
)
"""Keys of `[node]` that a running node can change. The others are the store's, or were said to other nodes."""


@dataclass(frozen=True)
class Key:
    """One thing that can be set."""

    section: str
    """Empty: it stands at the top of the file."""
    name: str
    kind: Kind
    default: object
    """`msgspec.NODEFAULT` where it must be said."""
    variable: str
    """Empty: only a file can set it."""
    flag: str
    live: bool
    """Whether a reload applies it; else it counts from the next start."""

    @property
    def dotted(self) -> str:
        return f"{self.section}.{self.name}" if self.section else self.name


def _fixed(section: str, owner: type[msgspec.Struct]) -> Iterator[Key]:
    """The keys of a section that is there once."""
    for name, default, hint in _fields(owner):
        dotted = f"{section}.{name}"
        prefix = PREFIX if section in _UNPREFIXED else f"{PREFIX}{section.upper()}_"
        yield Key(
            section,
            name,
            _KINDS.get(dotted) or kind_of(hint),
            default,
            _VARIABLES.get(dotted, f"{prefix}{name.upper()}"),
            _FLAGS.get(dotted, f"--{name.replace('_', '-')}"),
            section in _LIVE or dotted == _LEVEL or (section == "node" and name in LIVE_OF_NODE),
        )


def _named(section: str, *owners: type[msgspec.Struct]) -> Mapping[str, Key]:
    """The keys of each thing in a section that holds things by name."""
    return MappingProxyType(
        {
            name: Key(section, name, kind_of(hint), default, "", "", section in _LIVE)
            for owner in owners
            for name, default, hint in _fields(owner)
        }
    )


def _runner_keys() -> dict[str, Key]:
    """What can be said about runners: a key may be of several of them, and means the same in each."""
    return {
        name: replace(key, live=False, kind=arguments() if name in ARGUMENTS else key.kind)
        for owner in RUNNERS.values()
        for name, key in _named("agents", owner).items()
    }


def _fields(owner: type[msgspec.Struct]) -> Iterator[tuple[str, object, object]]:
    hints = get_type_hints(owner, include_extras=True)
    for field in msgspec.structs.fields(owner):
        if field.name not in _ELSEWHERE:
            yield field.name, field.default, hints[field.name]


STORE = Key("", "store", _KINDS["store"], "", f"{PREFIX}STORE", "--store", live=False)
SECTIONS: Mapping[str, type[msgspec.Struct]] = MappingProxyType(
    {
        "server": ServerSettings,
        "log": LogSettings,
        "queue": QueueSettings,
        "limits": Limits,
        "callbacks": CallbackSettings,
        "node": Settings,
    }
)
"""Sections with fixed keys, and the value that each of them makes."""
KEYS: Mapping[str, Key] = MappingProxyType(
    {
        key.dotted: key
        for key in (
            STORE,
            *(key for section, owner in SECTIONS.items() for key in _fixed(section, owner)),
        )
    }
)
"""Every fixed key by its dotted name."""
NAMED: Mapping[str, Mapping[str, Key]] = MappingProxyType(
    {
        "lanes": MappingProxyType(
            {
                **_named("lanes", LaneSettings, Budget),
                "width": Key(
                    "lanes",
                    "width",
                    whole_number(0, MAX_WIDTH),
                    msgspec.NODEFAULT,
                    f"{LANE_PREFIX}<NAME>",
                    "",
                    live=True,
                ),
            }
        ),
        "channels": _named("channels", QueueOptions),
        "agents": MappingProxyType(
            {
                **_named("agents", AgentSettings, Budget),
                RUNNER: Key(
                    "agents",
                    RUNNER,
                    choice({name: name for name in RUNNERS}),
                    None,
                    "",
                    "",
                    live=False,
                ),
                **_runner_keys(),
            }
        ),
    }
)
"""Sections that hold things by name, and what can be said about each thing."""
VARIABLES: Mapping[str, Key] = MappingProxyType(
    {**{key.variable: key for key in KEYS.values()}, STORE_ALIAS: STORE}
)


def is_name(text: str) -> bool:
    """Whether something can be called so."""
    return 0 < len(text) <= MAX_NAME and is_whole(text)
