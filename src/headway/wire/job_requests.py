"""What may be said about a job, as JSON: in full as an export has it (C-12), or short as people write it."""

from collections.abc import Sequence
from itertools import combinations
from typing import Annotated, ClassVar, Literal, assert_never

import msgspec
from msgspec import UNSET, Meta, UnsetType

from headway.core.job_fields import milliseconds
from headway.model.errors import InvalidInput
from headway.model.settings import MAX_TEXT
from headway.model.time import as_timedelta
from headway.model.words import Misfire, Overlap
from headway.wire.base import Length, Request
from headway.wire.jobs import JobNamed, MaxAttempts, Priority, Retries, Session
from headway.wire.names import (
    AgentName,
    LaneName,
    Milliseconds,
    Name,
    SomeLength,
    SomeMilliseconds,
    Zone,
)
from headway.wire.places import RouteRequest
from headway.wire.schedules import (
    Argv,
    CommandParts,
    CommandPayload,
    CommandText,
    Expression,
    FunctionPayload,
    GateRequest,
    JobText,
    MessagePayload,
    PayloadRequest,
    ScheduleRequest,
)

When = Annotated[
    str,
    Meta(
        description="Once: an instant, or what a person means by `tomorrow 9am` or `in 20m`.",
        min_length=1,
        max_length=200,
        examples=["in 20 minutes"],
        extra_json_schema={"format": "when"},
    ),
]
JobName = Annotated[
    Name,
    Meta(
        description="Unique among the jobs of its agent; not `heartbeat`.",
        examples=["morning brief"],
    ),
]
_SPANS = ("timeout", "misfire_window", "stagger")
_SCHEDULES = ("cron", "every", "at", "schedule")
_PAYLOADS = ("text", "command", "function")
_ALL_PAYLOADS = (*_PAYLOADS, "payload")


def _one_of(names: Sequence[str]) -> dict[str, object]:
    """That exactly one of these is said, as JSON Schema has it."""
    return {"anyOf": [_only(name, names) for name in names]}


def _only(name: str, names: Sequence[str]) -> dict[str, object]:
    others = [other for other in names if other != name]
    if name == "schedule":
        others.append("tz")
    return {"type": "object", "required": [name], "properties": dict.fromkeys(others, False)}


def _no_two_of(*groups: Sequence[str]) -> dict[str, object]:
    """That at most one of each group is said."""
    pairs = [pair for group in groups for pair in combinations(group, 2)]
    return {"not": {"anyOf": [{"required": list(pair)} for pair in pairs]}}


class JobChoices(Request, frozen=True, kw_only=True):
    """What may be said of a new job and of one that there is: at most one schedule, at most one payload.

    Durations are said in words or, as an export has them, in milliseconds, which count if both are said.
    """

    cron: Expression | UnsetType = UNSET
    every: SomeLength | UnsetType = UNSET
    at: When | UnsetType = UNSET
    schedule: ScheduleRequest | UnsetType = UNSET
    tz: Zone | UnsetType = UNSET
    text: JobText | UnsetType = UNSET
    command: CommandText | Argv | CommandParts | UnsetType = UNSET
    function: Name | UnsetType = UNSET
    payload: PayloadRequest | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    lane: LaneName | UnsetType | None = UNSET
    session: Session | UnsetType | None = UNSET
    timeout: SomeLength | UnsetType | None = UNSET
    timeout_ms: SomeMilliseconds | UnsetType | None = UNSET
    retries: Retries | UnsetType | None = UNSET
    max_attempts: MaxAttempts | UnsetType | None = UNSET
    priority: Priority | UnsetType | None = UNSET
    overlap: Overlap | UnsetType | None = UNSET
    misfire: Misfire | UnsetType | None = UNSET
    misfire_window: Length | UnsetType | None = UNSET
    misfire_window_ms: Milliseconds | UnsetType | None = UNSET
    stagger: Length | UnsetType | None = UNSET
    stagger_ms: Milliseconds | UnsetType | None = UNSET
    deliver: RouteRequest | UnsetType | None = UNSET
    delete_after_run: bool | UnsetType | None = UNSET
    gate: GateRequest | UnsetType | None = UNSET


class JobRequest(JobChoices, frozen=True, kw_only=True):
    """A new job: one of `cron`, `every`, `at`, `schedule`, and one of `text`, `command`, `function`, `payload`."""

    schema_extra: ClassVar[dict[str, object]] = {
        "allOf": [_one_of(_SCHEDULES), _one_of(_ALL_PAYLOADS)]
    }

    name: JobName
    agent_id: AgentName


class JobPatch(JobChoices, frozen=True, kw_only=True):
    """What to change of a job: what is named and nothing else. null sets an option back to its default."""

    schema_extra: ClassVar[dict[str, object]] = _no_two_of(
        _SCHEDULES, _ALL_PAYLOADS, ("tz", "schedule")
    )

    name: JobName | UnsetType = UNSET
    agent_id: AgentName | UnsetType = UNSET


class JobEdit(JobPatch, frozen=True, kw_only=True):
    """Which job, and what to change of it."""

    job: JobNamed


class ImportRequest(Request, frozen=True, kw_only=True):
    """A file of jobs: what an export gives, the jobs.json of OpenClaw, or a crontab."""

    text: Annotated[
        str,
        Meta(
            description="The file as it is.",
            max_length=MAX_TEXT,
            extra_json_schema={"format": "job-file"},
        ),
    ]
    form: Annotated[
        Literal["json", "crontab", "system-crontab"],
        Meta(description="A system's crontab has a column for users."),
    ] = "json"
    agent_id: Annotated[
        AgentName | None,
        Meta(description="For jobs that name none; of a crontab `command` unless said."),
    ] = None


def job_fields(request: JobChoices) -> dict[str, object]:
    """What was said, as `hw.jobs.add` and `hw.jobs.edit` take it."""
    said = {
        name: value
        for name, value in msgspec.structs.asdict(request).items()
        if value is not UNSET and name != "job"
    }
    for name in _SPANS:
        _span(said, name)
    if "tz" in said and "schedule" in said:
        raise InvalidInput("tz", said["tz"], "in the schedule, where one is given")
    if "agent_id" in said:
        said["agent"] = said.pop("agent_id")
    said.pop("payload", None)
    if not isinstance(request.payload, UnsetType):
        _payload(said, request.payload)
    for name in ("schedule", "deliver", "gate", "command"):
        if isinstance(said.get(name), msgspec.Struct):
            said[name] = msgspec.to_builtins(said[name])
    return said


def commands(request: JobChoices) -> bool:
    """Whether it makes the node run a program of the caller's choice."""
    gate = request.gate
    return (
        request.command is not UNSET
        or isinstance(request.payload, CommandPayload)
        or (isinstance(gate, GateRequest) and gate.command is not UNSET)
    )


def said_field(request: JobChoices, wrong: InvalidInput) -> InvalidInput:
    """The refusal, naming the field as it was said: in full or short."""
    first, dot, rest = wrong.field.partition(".")
    if first in _SPANS and getattr(request, f"{first}_ms") is not UNSET:
        first = f"{first}_ms"
    elif first in _PAYLOADS and request.payload is not UNSET:
        first = "payload" if first == "command" else f"payload.{first}"
    else:
        return wrong
    return InvalidInput(f"{first}{dot}{rest}", wrong.value, wrong.allowed)


def _span(said: dict[str, object], name: str) -> None:
    """A duration in milliseconds, as an export has it, goes before the same in words."""
    key = f"{name}_ms"
    if key in said:
        value = said.pop(key)
        said[name] = None if value is None else as_timedelta(milliseconds(value, key))


def _payload(said: dict[str, object], payload: PayloadRequest) -> None:
    both = [name for name in _PAYLOADS if name in said]
    if both:
        raise InvalidInput("payload", both, "exactly one of: text, command, function, payload")
    match payload:
        case MessagePayload():
            said["text"] = payload.text
        case FunctionPayload():
            said["function"] = payload.function
        case CommandPayload():
            parts = ("argv", "folder", "environment", "stdin")
            said["command"] = {part: getattr(payload, part) for part in parts}
        case _:
            assert_never(payload)
