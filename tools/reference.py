"""Writes the reference pages for events and settings from the code, so that they cannot drift from it.

    python -m tools.reference        (or `make docs`)

Names, types, defaults and what is allowed are read from the code. What a name means is read from its
docstring; where the code has none, it is said in `MEANINGS` below.
"""

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from headway.config import MAX_WIDTH, settings_from
from headway.core.job_fields import PAYLOADS
from headway.core.jobs import new_job
from headway.core.request import AGENT_CHECKS, CHANNEL_TIMEOUT, SubmitOptions, check_option
from headway.events import CATALOGUE, Event, RunFinished
from headway.facade import AgentOptions
from headway.heartbeats import HeartbeatOptions, read_heartbeat
from headway.jobs import JobFields, JobOptions
from headway.model.errors import InvalidInput
from headway.model.heartbeat import HeartbeatSettings
from headway.model.job import Job
from headway.model.run import AgentName, JobId, LaneName, RunId, SessionKey
from headway.model.settings import (
    DEFAULT_LANES,
    LANE_ALIASES,
    SOURCE_DEFAULTS,
    AgentSettings,
    Budget,
    LaneSettings,
    Limits,
    QueueSettings,
    Settings,
)
from headway.model.time import span_text
from headway.model.words import (
    Cut,
    Drop,
    Fired,
    HeartbeatSkip,
    Misfire,
    Mode,
    Overlap,
    Reason,
    Source,
    State,
    SteerFallback,
    Word,
)

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "reference"

MEANINGS: Mapping[str, str] = {
    "RunSubmitted": "A run was asked for. It is kept by the store; it may still be refused.",
    "RunStarted": "An attempt begins.",
    "RunFinished": "A run has its one outcome.",
    "RunsMerged": "Several messages became one run.",
    "OutputEmitted": "A turn emitted a piece of output.",
    "TokensUsed": "A turn reported tokens.",
    "SessionStopped": "A `/stop` or `/stopall` was carried out, and reached so many runs.",
    "LaneChanged": "A lane was made, or has a new width or reserve.",
    "LaneCleared": "All that waited in a lane was ended.",
    "LimitsChanged": "The limits for tasks are these from now on.",
    "NodeDraining": "The node takes nothing new; so many attempts still run.",
    "NodeRestarted": "The node came back in place, as a new incarnation.",
    "Settings.lanes": "The lanes that exist from the start; others can be made later with `set_lane`.",
    "Settings.queue": "The queue of every session, unless something closer says otherwise.",
    "Settings.channels": "Queue options for messages of one channel, by its name (`Route.channel`).",
    "Settings.agents": "Settings of agents by name; what `hw.agent` says comes on top.",
    "Settings.limits": "Limits for tasks.",
    "Settings.ageing": "A waiting run gains one step of priority in this time.",
    "Settings.cancel_grace": "How long a cancelled attempt may take to return before it is left behind.",
    "Settings.drain_grace": "How long running work may take to finish when the node drains.",
    "Settings.wait_notice": "A run that waited longer says so when it starts (`RunWaited`, `on_wait`).",
    "Settings.throttle_ratio": "From this part of its context window on, a session runs one at a time.",
    "Settings.dedupe": "How long a message id is remembered, so that it is not taken twice.",
    "Settings.idempotency": "How long an idempotency key is remembered.",
    "Settings.retention": "How long a finished run is kept, unless it is a task.",
    "Settings.task_retention": "How long a finished task is kept.",
    "LaneSettings.width": "How many runs go at once; 0 pauses the lane.",
    "LaneSettings.reserve": "So many slots are for interactive work only (priority below 10).",
    "LaneSettings.budget": "Runs and tokens per minute for the whole lane.",
    "Budget.runs_per_minute": "Starts per minute.",
    "Budget.tokens_per_minute": "Tokens per minute, as turns report them with `turn.usage`.",
    "QueueSettings.mode": "What a message does while its session is busy.",
    "QueueSettings.cap": "How many messages may wait in one session.",
    "QueueSettings.drop": "Who gives way when the cap is reached.",
    "QueueSettings.debounce": (
        "How long to wait for more text. Counts for messages with a route; others use 0 unless they say."
    ),
    "QueueSettings.steer_fallback": "What a steering message does if the turn cannot be steered.",
    "QueueSettings.max_concurrent": "How many runs of one session go at once.",
    "Limits.max_queue": "Tasks that may wait in all.",
    "Limits.max_queue_per_agent": "Tasks of one agent that may wait.",
    "Limits.max_inflight": "Tasks that run at once in all.",
    "Limits.max_inflight_per_agent": "Tasks of one agent that run at once.",
    "AgentOptions.weight": "Its share of starts beside other agents that have work.",
    "AgentOptions.steerable": "Its turns look into `turn.inbox`.",
    "AgentOptions.preemptible": "Its background turns give way to waiting interactive ones.",
    "AgentOptions.provider": "A key towards its model provider; agents with the same one share rate limits.",
    "AgentOptions.max_inflight": "Tasks of this agent at once, instead of `max_inflight_per_agent`.",
    "AgentOptions.runs_per_minute": "Its budget of starts.",
    "AgentOptions.tokens_per_minute": "Its budget of tokens.",
    "AgentOptions.lane": "The lane of its runs, unless a run names one.",
    "AgentOptions.timeout": "The bound on each of its attempts.",
    "AgentOptions.max_attempts": "Attempts in all, where crashes or drains cut some. Errors: see `retries`.",
    "AgentOptions.retries": "How often an attempt that failed or took too long is tried again.",
    "SubmitOptions.session": "Runs of one session keep their order. Without it: from the route, else its own.",
    "SubmitOptions.source": "What the run is; tasks have limits and a deadline.",
    "SubmitOptions.lane": "The lane it counts in; an unknown name means `main`.",
    "SubmitOptions.priority": "Lower starts first; from 10 on it is background work.",
    "SubmitOptions.attachments": "What travels with the text.",
    "SubmitOptions.route": "Where the message came from and its reply goes.",
    "SubmitOptions.sender": "Who wrote it, and with which authority.",
    "SubmitOptions.message_id": "The channel's id of the message: it is not taken twice.",
    "SubmitOptions.sent_at": "When it was written; tells whether a `/stopall` came later.",
    "SubmitOptions.due": "Not to start before: an instant, or a span from now.",
    "SubmitOptions.deadline": "Ended if it is not done by then: an instant, or a span from when it is due.",
    "SubmitOptions.timeout": "The bound on each of its attempts.",
    "SubmitOptions.mode": "What it does while its session is busy.",
    "SubmitOptions.cap": "How many messages may wait in the session.",
    "SubmitOptions.drop": "Who gives way when the cap is reached.",
    "SubmitOptions.debounce": "How long to wait for more text of the same sender.",
    "SubmitOptions.steer_fallback": "What steering becomes if the turn cannot be steered.",
    "SubmitOptions.max_concurrent": "How many runs of the session may go at once beside it.",
    "SubmitOptions.max_attempts": "Attempts in all, where crashes or drains cut some. Errors: see `retries`.",
    "SubmitOptions.retries": "How often an attempt that failed or took too long is tried again.",
    "SubmitOptions.preemptible": "If it is background work, it gives way to waiting interactive work.",
    "SubmitOptions.trace_id": "Handed to the agent as `turn.trace_id`.",
    "SubmitOptions.idempotency_key": "A second submission with the same key gives the first run.",
    "SubmitOptions.on_repeat": (
        "What a repeated key gives if the first run did not succeed: its outcome, or another try."
    ),
    "JobFields.cron": "It fires when the wall clock of `tz` matches; also `@daily`, `@every 10m`.",
    "JobFields.every": "It fires after each period, counted from when the job was made, without drift.",
    "JobFields.at": "It fires once: at what a person means, at a `datetime`, or after a `timedelta`.",
    "JobFields.schedule": "One of these as a value, or as it stands in JSON.",
    "JobOptions.text": "What the agent is told.",
    "JobOptions.command": "A command to run, without a shell; the agent must be one of `hw.commands`.",
    "JobOptions.function": "The name of a function (`hw.function`): what it returns is what the agent is told.",
    "JobOptions.tz": "The time zone that the schedule means.",
    "JobOptions.lane": "The lane that its runs count in; none: its agent's, else `cron`.",
    "JobOptions.session": "`isolated`: a fresh one for each firing; `job`: one for all; else a key.",
    "JobOptions.timeout": "The bound on each attempt; none: its agent's, else 1h.",
    "JobOptions.retries": (
        "How often an attempt that failed or took too long is tried again; none: its agent's, else 3."
    ),
    "JobOptions.max_attempts": (
        "Attempts in all, where crashes or drains cut some; none: its agent's, else 1."
    ),
    "JobOptions.priority": "Lower starts first; from 10 on it is background work; none: 10.",
    "JobOptions.overlap": "What a firing does while an earlier one is unfinished.",
    "JobOptions.misfire": "What becomes of firings that were missed.",
    "JobOptions.misfire_window": "What was missed longer ago is never made up for.",
    "JobOptions.stagger": "Each firing is later by a part of this that a hash of the job's id decides.",
    "JobOptions.deliver": "Where the reply goes.",
    "JobOptions.delete_after_run": "Whether it fires once, and goes when that has ended well.",
    "JobOptions.gate": "A function or a command that is asked first whether to wake the agent (X-7).",
    "JobOptions.enabled": "Whether it fires at all.",
    "HeartbeatOptions.every": "How often the agent is woken.",
    "HeartbeatOptions.prompt": "What it is told; without one it is told to look after its checklist.",
    "HeartbeatOptions.hours": "When it may be woken: from the start to before the end, over midnight too.",
    "HeartbeatOptions.tz": "The time zone of the hours; none: that of the settings.",
    "HeartbeatOptions.target": (
        "Who hears it: `last`, where the agent's latest message came from; `none`; or a route."
    ),
    "HeartbeatOptions.checklist": "The path of HEARTBEAT.md; without one its text is kept in the store.",
    "HeartbeatOptions.ack_max_chars": "So many characters beside HEARTBEAT_OK are still silence (H-3).",
    "HeartbeatOptions.lane": "The lane that its runs count in; none: its agent's, else `cron`.",
    "HeartbeatOptions.session": "`main`: the agent's own; `isolated`: a fresh one each time; else a key.",
    "HeartbeatOptions.timeout": "The bound on each attempt; none: its agent's, else 1h.",
}

_WORDS: Mapping[type[Word], str] = {
    State: "Where a run is in its life",
    Reason: "Why a run ended as it did",
    Cut: "Why a live attempt is being cancelled",
    Source: "Who asked for a run",
    Fired: "What became of a firing of a job",
    HeartbeatSkip: "Why an agent was not woken, or nobody was told what it answered",
}
_QUEUE_WORDS: Mapping[type[Word], str] = {
    Mode: "What a message does while its session is busy",
    Drop: "Who gives way when a session's queue is full",
    SteerFallback: "What steering becomes if the turn cannot be steered",
    Overlap: "What a firing does while an earlier one of its job is unfinished",
    Misfire: "What becomes of firings that were missed: the latest is made up for, none, or all",
}

_EVENTS_INTRO = """\
Everything that can be heard from a node: `async for event in hw.events()`. A listener that is slow keeps the
latest 10,000; `hw.events(keep=100)` asks for another number. The classes are in `headway.events`, to match on.

Every event has `at`, the instant at which it happened. **Notable** events are also logged, whether somebody
listens or not: as one line of JSON, at the level WARNING, by the logger `headway`. In JSON the field `event`
says which one it is:"""

_EVENTS_TYPES = """\
`Instant` is a whole number of microseconds since 1970 UTC and `Span` a whole number of microseconds; `RunId`,
`SessionKey`, `AgentName` and `LaneName` are texts."""

_SETTINGS_INTRO = """\
`Headway()` starts with the defaults below and what the environment says. `Headway(settings=Settings(...))`
takes yours and asks the environment only for the store; `Headway(lanes={...})` comes on top of either. Settings
are frozen values. Lanes, limits and the queues of single sessions can be changed while running, with `set_lane`,
`set_limits` and `set_queue`.

In these values a `Span` is a whole number of microseconds; `headway.model.time` has `SECOND`, `MINUTE` and so
on. Everywhere else a duration is written `500ms`, `30s`, `10m`, `1.5h`, `1d` or `1h30m`, or is a `timedelta`.
What is not allowed is refused with `InvalidInput`, which names the field; so is an option that does not exist."""

_AGENT_INTRO = """\
`@hw.agent(name, ...)` takes these. `hw.add_agent(name, runner, AgentSettings(...))` takes the same as a value,
with `runs_per_minute` and `tokens_per_minute` in its `budget`."""

_RUN_INTRO = """\
`hw.submit`, `hw.send`, `turn.submit` and `turn.delegate` take these. A run that a turn starts is always a
`delegation`."""

_JOB_INTRO = """\
`hw.jobs.add(name, agent, ...)` takes one of `cron`, `every`, `at` and `schedule`, one of `text`, `command` and
`function`, and any of the rest. `@hw.cron`, `@hw.every` and `@hw.at` take their schedule first, and ask the
function below them. `hw.jobs.edit(job, ...)` takes the same, `name` and `agent` too, and changes what it names."""

_HEARTBEAT_INTRO = "`hw.heartbeat(agent, ...)` and `hw.heartbeats.set(agent, ...)` take these."

_NOTE = "<!-- Written by `make docs` from the code. Change the code, not this page. -->"


class NoMeaning(LookupError):
    """A name that a page lists has neither a docstring nor an entry in `MEANINGS`."""


@dataclass(frozen=True)
class Field:
    """One field of a class, as its source says it."""

    name: str
    type: str
    docstring: str | None


def pages() -> dict[Path, str]:
    """Every generated page, by its path."""
    return {PAGES / "events.md": events_page(), PAGES / "settings.md": settings_page()}


def fields_of(owner: type) -> list[Field]:
    """The fields that a class itself declares, with the docstrings right below them."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(body, ast.ClassDef)
    found: list[Field] = []
    for statement, after in zip(body.body, [*body.body, None][1:], strict=True):
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                kind = ast.unparse(annotation).strip("'\"")
                if not kind.startswith("ClassVar"):
                    found.append(Field(name, kind, _string(after)))
            case _:
                pass
    return found


def meaning_of(name: str, docstring: str | None) -> str:
    """What a name means, on one line: as the code says, else as `MEANINGS` does."""
    if docstring:
        return " ".join(docstring.split())
    if name not in MEANINGS:
        raise NoMeaning(f"say what {name} means, in its docstring or in {Path(__file__).name}")
    return MEANINGS[name]


def events_page() -> str:
    index = [
        (
            f"[`{event.__name__}`](#{event.__name__.lower()})",
            _event_meaning(event),
            "yes" if event.notable else "",
        )
        for event in CATALOGUE
    ]
    sample = msgspec.json.format(msgspec.json.encode(_SAMPLE), indent=2).decode()
    lines = ["# Events", "", _NOTE, "", _EVENTS_INTRO, "", "```json", sample, "```", ""]
    lines += [_EVENTS_TYPES, "", *_table(("event", "when", "notable"), index)]
    for event in CATALOGUE:
        lines += ["", f"## {event.__name__}", "", _event_meaning(event), ""]
        rows = [
            (f"`{field.name}`", _code(field.type), _default(event, field))
            for field in fields_of(event)
        ]
        lines += (
            _table(("field", "type", "default"), rows) if rows else ["It has no fields but `at`."]
        )
    lines += ["", "## Words", "", "The closed lists that events use.", "", *_word_table(_WORDS)]
    return "\n".join(lines) + "\n"


def settings_page() -> str:
    lines = ["# Settings", "", _NOTE, "", _SETTINGS_INTRO, "", "## Environment", ""]
    lines += _table(
        ("variable", "what it sets"),
        [
            ("`HEADWAY_LANE_<NAME>`", f"the width of a lane, from 0 (paused) to {MAX_WIDTH}"),
            ("`HEADWAY_MAX_INFLIGHT`", f"`Limits.max_inflight`, from 0 to {MAX_WIDTH}"),
            ("`HEADWAY_STORE`", "the store of a `Headway` that names none, and of the commands"),
            *(
                (f"`HEADWAY_{name.upper()}`", f"`Settings.{name}`, as a duration such as `30s`")
                for name in _spans_from_environment()
            ),
            ("`HEADWAY_TZ`", "`Settings.tz`, the name of a time zone such as `Europe/Paris`"),
        ],
    )
    lines += ["", "## Lanes from the start", ""]
    widths = [(f"`{name}`", str(lane.width)) for name, lane in DEFAULT_LANES.items()]
    lines += _table(("lane", "width"), widths)
    lines += [
        "",
        *[f"`{alias}` is another name of `{lane}`." for alias, lane in LANE_ALIASES.items()],
    ]
    for owner in (Settings, LaneSettings, Budget, QueueSettings, Limits):
        lines += ["", f"## {owner.__name__}", "", _first_line(owner), "", *struct_table(owner)]
    lines += ["", "## Options of an agent", "", _AGENT_INTRO, ""]
    lines += _option_table(AgentOptions, _agent_allowed, _agent_defaults())
    lines += ["", "## Options of a run", "", _RUN_INTRO, ""]
    lines += _option_table(SubmitOptions, _submit_allowed)
    lines += ["", "## Options of a job", "", _JOB_INTRO, ""]
    lines += _option_table(JobFields, _job_allowed, _job_defaults())
    lines += _option_table(JobOptions, _job_allowed, _job_defaults())[2:]
    lines += ["", "## Options of a heartbeat", "", _HEARTBEAT_INTRO, ""]
    lines += _option_table(HeartbeatOptions, _heartbeat_allowed, _heartbeat_defaults())
    lines += ["", "## What a run gets when nothing is said", "", *_source_table(), ""]
    lines += [
        f"A run with a route and a firing have a timeout of `{span_text(CHANNEL_TIMEOUT)}` for each attempt,",
        "unless they or their agent say otherwise; other runs have none.",
    ]
    lines += ["", "## Words", "", "The closed lists that settings use.", ""]
    lines += _word_table(_QUEUE_WORDS)
    return "\n".join(lines) + "\n"


def _spans_from_environment() -> list[str]:
    """The settings that the environment can give as a duration, found by giving each of them."""
    usual = Settings()
    return [
        field.name
        for field in fields_of(Settings)
        if field.name != "tz" and settings_from({f"HEADWAY_{field.name.upper()}": "41m"}) != usual
    ]


def unused_meanings() -> list[str]:
    """Entries of `MEANINGS` for names that no page lists any more."""
    known = {event.__name__ for event in CATALOGUE}
    for owner in (
        Settings,
        LaneSettings,
        Budget,
        QueueSettings,
        Limits,
        AgentOptions,
        SubmitOptions,
        JobFields,
        JobOptions,
        HeartbeatOptions,
    ):
        known |= {f"{owner.__name__}.{field.name}" for field in fields_of(owner)}
    return sorted(MEANINGS.keys() - known)


def main() -> int:
    for path, text in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote {path.relative_to(ROOT)}\n")
    return 0


_SAMPLE = RunFinished(
    at=1_750_000_000_000_000,
    run_id=RunId("1k3f9a2xq-42"),
    agent=AgentName("support"),
    session=SessionKey("telegram:dm:42"),
    lane=LaneName("main"),
    attempt=1,
    state=State.CANCELLED,
    reason=Reason.STOPPED,
)


def _string(statement: ast.stmt | None) -> str | None:
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
        case _:
            return None


def _event_meaning(event: type[Event]) -> str:
    return meaning_of(event.__name__, vars(event).get("__doc__"))


def _first_line(owner: type) -> str:
    return (inspect.getdoc(owner) or "").partition("\n")[0]


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _default(owner: type[msgspec.Struct], field: Field) -> str:
    """The default as a person would write it; empty where the field must be given."""
    (info,) = (info for info in msgspec.structs.fields(owner) if info.name == field.name)
    if info.default_factory is not msgspec.NODEFAULT:
        return "see above" if info.default_factory() else "none"
    if info.default is msgspec.NODEFAULT:
        return ""
    return _shown(info.default, field.type)


def _shown(value: object, kind: str) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return f"`{value}`"
        case int() if kind.startswith(("Span", "Length", "Annotated[Span")):
            return f"`{span_text(value)}`"
        case Word():
            return f"`{value.value}`"
        case msgspec.Struct():
            return "see below" if value != Budget() else "none"
        case "":
            return "empty"
        case _:
            return f"`{value}`"


def struct_table(owner: type[msgspec.Struct]) -> list[str]:
    return _table(
        ("field", "type", "default", "meaning"),
        [
            (
                f"`{field.name}`",
                _code(field.type),
                _default(owner, field),
                meaning_of(f"{owner.__name__}.{field.name}", field.docstring),
            )
            for field in fields_of(owner)
        ],
    )


def _option_table(
    owner: type,
    allowed: Callable[[str], str],
    defaults: Mapping[str, str] | None = None,
) -> list[str]:
    columns = ["option", "type", "allowed", "meaning"]
    if defaults is not None:
        columns.insert(3, "default")
    rows = []
    for field in fields_of(owner):
        row = [
            f"`{field.name}`",
            _code(field.type),
            allowed(field.name),
            meaning_of(f"{owner.__name__}.{field.name}", field.docstring),
        ]
        if defaults is not None:
            row.insert(3, defaults[field.name])
        rows.append(row)
    return _table(columns, rows)


def _agent_defaults() -> dict[str, str]:
    return _defaults_of(Budget) | _defaults_of(AgentSettings)


def _job_defaults() -> dict[str, str]:
    """What a job has by default; what it must be given, or is worked out, has none."""
    worked_out = {"tz": "`Settings.tz`", "delete_after_run": "for `at`"}
    return {**dict.fromkeys(JobFields.__annotations__, ""), **_defaults_of(Job), **worked_out}


def _heartbeat_defaults() -> dict[str, str]:
    shown = _defaults_of(HeartbeatSettings)
    return {**shown, "every": shown["interval"], "tz": "`Settings.tz`"}


def _defaults_of(owner: type[msgspec.Struct]) -> dict[str, str]:
    return {field.name: _default(owner, field) for field in fields_of(owner)}


def _source_table() -> list[str]:
    return _table(
        ("source", "priority", "attempts", "retries", "lane", "deadline"),
        [
            (
                f"`{source.value}`",
                str(defaults.priority),
                str(defaults.max_attempts),
                str(defaults.retries),
                f"`{defaults.lane}`",
                _shown(defaults.deadline, "Span"),
            )
            for source, defaults in SOURCE_DEFAULTS.items()
        ],
    )


def _agent_allowed(name: str) -> str:
    return _allowed(lambda value: AGENT_CHECKS[name](value, name))


def _submit_allowed(name: str) -> str:
    return _allowed(lambda value: check_option(name, value))


def _job_allowed(name: str) -> str:
    said: dict[str, object] = {"name": "name", "agent": "agent"}
    if name not in {field.name for field in fields_of(JobFields)}:
        said["cron"] = "@daily"
    if name not in PAYLOADS:
        said["text"] = "text"
    return _allowed(lambda value: new_job(JobId("job"), {**said, name: value}, 0, "UTC"))


def _heartbeat_allowed(name: str) -> str:
    hours = {"hours": "09:00-17:00"} if name == "tz" else {}
    return _allowed(lambda value: read_heartbeat({**hours, name: value}, "UTC"))


def _allowed(check: Callable[[object], object]) -> str:
    """What a check says when it is given something that nothing allows."""
    try:
        check(object())
    except InvalidInput as refused:
        return refused.allowed.removeprefix("one of: ")
    raise AssertionError("a check allows anything")


def _word_table(words: Mapping[type[Word], str]) -> list[str]:
    return _table(
        ("list", "what it says", "words"),
        [
            (
                f"`{vocabulary.__name__}`",
                meaning,
                ", ".join(f"`{word.value}`" for word in vocabulary),
            )
            for vocabulary, meaning in words.items()
        ],
    )


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    head = list(columns)
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


if __name__ == "__main__":
    sys.exit(main())
