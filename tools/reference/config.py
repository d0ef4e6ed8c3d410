"""The page of settings: every key of `headway.toml`, its variable, and the options that calls take."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from inspect import cleandoc

import msgspec

from headway.config.environment import OTHERS
from headway.config.keys import KEYS, NAMED, OF_RUNNERS, SECTIONS, STORE_ALIAS, Key
from headway.core.template import NAMES
from headway.facade import AgentOptions
from headway.model.runner import RUNNERS, RunnerSpec
from headway.model.settings import (
    DEFAULT_LANES,
    LANE_ALIASES,
    Budget,
    LaneSettings,
    QueueSettings,
)
from headway.model.words import (
    Drop,
    LogLevel,
    Misfire,
    Mode,
    Overlap,
    SteerFallback,
    Word,
)
from tools.reference.meanings import meaning_of
from tools.reference.options import option_lines
from tools.reference.source import fields_of
from tools.reference.tables import NOTE, cell, code, shown, table, word_table

EXAMPLE = """\
store = "postgresql://headway@db.internal/headway"

[server]
host = "0.0.0.0"
port = 8787

[log]
file = "/var/log/headway/headway.log"

[lanes]
main = 10                                  # a width,
gpu = { width = 2, cluster_limit = 4 }     # or more of it

[queue]
mode = "collect"
debounce = "1.5s"

[channels.telegram]
cap = 25
drop = "summarize"

[agents.researcher]
lane = "gpu"
timeout = "20m"
tokens_per_minute = 200_000

[limits]
max_queue = 5_000

[node]
drain_grace = "2m"
tz = "Europe/Paris"
"""

_INTRO = """\
A server is set up by a file, `headway.toml`; by variables of its environment, which win over the file; and by
flags of `headway serve`, which win over both. The file is the one that `--config` or `HEADWAY_CONFIG` names,
else `headway.toml` in the folder that the server starts in, else `headway.toml` in the user's config folder
(`~/.config/headway` on Linux). What does not exist or is not allowed is refused at the start, by its line, with
a suggestion:

```console
$ headway config check
headway: headway.toml line 5: 'server.prot' is not a setting; did you mean 'server.port'?
```

`headway config show` tells what holds and where it comes from. A server reads all of it again on SIGHUP and on
`POST /config/reload`, applies what has changed, and says what has to wait for the next start; a file that is
wrong changes nothing.

A library's `Headway()` reads no file: it starts with the defaults and what the environment says.
`Headway(settings=Settings(...))` takes yours and asks the environment only for the store;
`Headway(lanes={...})` comes on top of either. Settings are frozen values with the names of these keys: those of
`[node]` are fields of `Settings` itself, those of `[queue]` of `QueueSettings`, of `[limits]` of `Limits`, of a
lane of `LaneSettings`, of an agent of `AgentSettings` (`runs_per_minute` and `tokens_per_minute` are in its
`Budget`), of a channel of `QueueOptions`. In them a duration is a whole number of microseconds;
`headway.model.time` has `SECOND`, `MINUTE` and so on. Lanes, limits and the queues of single sessions can be
changed while running, with `set_lane`, `set_limits` and `set_queue`.

Everywhere else a duration is written `500ms`, `30s`, `10m`, `1.5h`, `1d` or `1h30m`, or is a `timedelta`. What
may be unset is unset again by `"none"`. A list is written with commas in a variable."""

_ENVIRONMENT = """\
Each key has a variable: its section and its name, but the sections `server` and `node` are left out. Lanes are
set by `HEADWAY_LANE_<NAME>`; what is said of channels and agents, only in the file. An empty variable counts as
not set where a text is expected. A variable that begins with `HEADWAY_` and sets nothing is warned about."""

_OTHERS: Mapping[str, str] = {
    "HEADWAY_CONFIG": "the file to read",
    "HEADWAY_SERVER": "the server that commands talk to, such as `http://127.0.0.1:8787`",
    "HEADWAY_TOKEN": "what they show it",
    "HEADWAY_MACHINE": "what this machine is called, where its own name changes with each start: workers that "
    "outlived a node are found by it",
    "HEADWAY_STATE": "the folder in which workers that outlive a node leave how they are",
    "HEADWAY_RUN_ID": "told to a command that runs: the run that it is",
    "HEADWAY_TRACE_ID": "likewise: its trace",
    "HEADWAY_JOB_ID": "likewise: the job that it is of",
    "HEADWAY_SESSION": "likewise: its session",
    "HEADWAY_ATTEMPT": "likewise: which attempt it is",
    "HEADWAY_FENCE": "likewise: its fencing token",
    "HEADWAY_AGENT": "likewise: its agent",
}

_SECTION_INTROS: Mapping[str, str] = {
    "server": "Where `headway serve` listens, and what it lets in.",
    "log": "What a server writes down. `headway logs` reads the file.",
    "queue": "The queue of every session, unless its channel, the session itself or a message says otherwise.",
    "callbacks": (
        "How programs are told how their tasks ended (T-4): "
        "[callbacks of tasks](../guides/delivery.md#callbacks-of-tasks). "
        "Without a secret no task can ask for it."
    ),
    "limits": "Limits for tasks (F-1). The first two hold over all nodes, the others on each node.",
    "node": "Everything else about a node.",
}

_RUNNERS = f"""\
With `runner` an agent needs no code: it is a program, a pane of tmux, or an endpoint. An agent that code registers
under the same name wins. Templates are filled in for each attempt with
{", ".join(f"`{{{name}}}`" for name in sorted(NAMES))};
`{{session_uuid}}` is always the same for one agent and session. A brace itself is written twice."""

_QUEUE_WORDS: Mapping[type[Word], str] = {
    Mode: "What a message does while its session is busy",
    Drop: "Who gives way when a session's queue is full",
    SteerFallback: "What steering becomes if the turn cannot be steered",
    Overlap: "What a firing does while an earlier one of its job is unfinished",
    Misfire: "What becomes of firings that were missed: the latest is made up for, none, or all",
    LogLevel: "What is written to the log: this and worse",
}

_STORE = (
    "Where everything is kept. Without one, a server has SQLite in the user's data folder, and a library's "
    "`Headway()` keeps all in memory."
)


def config_page() -> str:
    lines = ["# Settings", "", NOTE, "", _INTRO, "", "## A file", "", "```toml", EXAMPLE.rstrip()]
    lines += ["```", "", "## Top of the file", ""]
    lines += _key_table([(KEYS["store"], _STORE)])
    for section, owner in SECTIONS.items():
        keys = [key for key in KEYS.values() if key.section == section]
        lines += ["", f"## `[{section}]`", "", _SECTION_INTROS[section], ""]
        lines += _key_table(_with_meanings(keys, owner))
    lines += ["", "## `[lanes]`", "", *_lane_lines()]
    lines += ["", "## `[channels.<name>]`", ""]
    lines += ["The queue of messages from one channel, by its name (`Route.channel`).", ""]
    lines += _key_table(_with_meanings(NAMED["channels"].values(), QueueSettings), fixed=False)
    lines += ["", "## `[agents.<name>]`", ""]
    lines += ["What an agent has unless the code that registers it says otherwise.", ""]
    agents = [key for key in NAMED["agents"].values() if key.name not in OF_RUNNERS]
    lines += _key_table(_with_meanings(agents, AgentOptions), fixed=False)
    lines += _runner_lines()
    lines += ["", "## Environment", "", _ENVIRONMENT, "", *_other_variables()]
    lines += ["", *option_lines(), "", "## Words", "", "The closed lists that settings use.", ""]
    lines += word_table(_QUEUE_WORDS)
    return "\n".join(lines) + "\n"


def _runner_lines() -> list[str]:
    """How agents are run that are no functions: a table for each kind of runner."""
    lines = ["", "### Agents that are no functions", "", _RUNNERS]
    for name, spec in RUNNERS.items():
        keys = [
            replace(NAMED["agents"][field], default=_default(spec, field))
            for field in spec.__struct_fields__
        ]
        lines += ["", f'#### `runner = "{name}"`', "", cleandoc(spec.__doc__ or ""), ""]
        lines += _key_table(_with_meanings(keys, spec), fixed=False)
    return lines


def _default(spec: type[RunnerSpec], name: str) -> object:
    (field,) = (one for one in msgspec.structs.fields(spec) if one.name == name)
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def _lane_lines() -> list[str]:
    widths = ", ".join(f"`{name}` {lane.width}" for name, lane in DEFAULT_LANES.items())
    lines = ["A lane is a width, or a table. Others can be made later with `set_lane`.", ""]
    lines += [f"There are from the start: {widths}."]
    lines += [f"`{alias}` is another name of `{lane}`." for alias, lane in LANE_ALIASES.items()]
    keys = NAMED["lanes"].values()
    names = {field.name for field in fields_of(LaneSettings)}
    rows = _with_meanings([key for key in keys if key.name in names], LaneSettings)
    rows += _with_meanings([key for key in keys if key.name not in names], Budget)
    return [*lines, "", *_key_table(rows, fixed=False)]


def _other_variables() -> list[str]:
    assert _OTHERS.keys() == OTHERS
    rows = [(f"`{STORE_ALIAS}`", "another name of `HEADWAY_STORE`")]
    rows += [(f"`{name}`", meaning) for name, meaning in _OTHERS.items()]
    return table(("beside the keys", "what it says"), rows)


def _with_meanings(keys: Iterable[Key], owner: type) -> list[tuple[Key, str]]:
    docstrings = {field.name: field.docstring for field in fields_of(owner)}
    return [(key, meaning_of(f"{owner.__name__}.{key.name}", docstrings[key.name])) for key in keys]


def _key_table(rows: Iterable[tuple[Key, str]], *, fixed: bool = True) -> list[str]:
    """`fixed`: keys that are there once, so that each has its variable."""
    columns = ["key", "default", "allowed", "meaning", "reload"]
    if fixed:
        columns.insert(1, "variable")
    cells = []
    for key, meaning in rows:
        default = "" if key.default is msgspec.NODEFAULT else shown(key.kind.tell(key.default))
        row = [code(key.name), default, cell(key.kind.allowed), cell(meaning)]
        row.append("at once" if key.live else "next start")
        if fixed:
            row.insert(1, code(key.variable))
        cells.append(row)
    return table(columns, cells)
