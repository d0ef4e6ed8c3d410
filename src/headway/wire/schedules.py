"""Schedules and what a job asks of its agent, as JSON (C-12)."""

from typing import Annotated, ClassVar, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from headway.model.settings import MAX_TEXT
from headway.wire.base import ALLOWED, Answer, Request
from headway.wire.names import IS_TEXT, TEXT, Line, MomentMs, Name, SomeMilliseconds, Zone

Expression = Annotated[
    str,
    Meta(
        description="Five fields of cron, @daily and friends, or `@every 10m`.",
        min_length=1,
        max_length=1_000,
        examples=["0 9 * * 1-5"],
        extra_json_schema={"format": "cron"},
    ),
]
JobText = Annotated[
    str,
    Meta(
        description="What the agent is told; not only blanks.",
        min_length=1,
        max_length=MAX_TEXT,
        pattern=r"\S",
        extra={ALLOWED: "a text, not only blanks"},
        examples=["What is new?"],
    ),
]
Word = Annotated[str, Meta(max_length=MAX_TEXT, pattern=TEXT, extra=IS_TEXT)]
CommandText = Annotated[
    str,
    Meta(
        description="A program and its arguments, without quotes and without what only a shell could read.",
        min_length=1,
        max_length=10_000,
        examples=["backup --all"],
        # For the document only, the façade checks it: msgspec 0.22 crashes when it frees a text with a pattern
        # that stands in one union with a list.
        extra_json_schema={
            "pattern": r"""^[ \t]*[^|&;<>()$`*?~#{}\[\]\s'"\\\u0000][^|&;<>()$`*?~#{}\[\]\n'"\\\u0000]*$""",
        },
    ),
]
Argv = Annotated[
    tuple[Word, ...],
    Meta(
        description="A program and its arguments. No shell reads them.",
        min_length=1,
        max_length=10_000,
        examples=[["backup", "--all"]],
        extra_json_schema={
            "prefixItems": [
                {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": MAX_TEXT,
                    "pattern": r"^[^\u0000]*$",
                }
            ]
        },
    ),
]
VariableName = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z_][A-Za-z0-9_]*$",
        max_length=512,
        extra={ALLOWED: "letters, digits and _ of ASCII, and no digit first"},
    ),
]
Variables = Annotated[
    dict[VariableName, Word],
    Meta(description="Variables of its environment.", max_length=1_000),
]


# Schedules.


class AtRequest(Request, frozen=True, kw_only=True, tag_field="kind", tag="at", omit_defaults=True):
    """Once, at an instant."""

    at_ms: MomentMs
    tz: Zone | None = None


class EveryRequest(
    Request, frozen=True, kw_only=True, tag_field="kind", tag="every", omit_defaults=True
):
    """Again and again: the n-th time at anchor + n × period."""

    every_ms: SomeMilliseconds
    anchor_ms: MomentMs | None = None
    tz: Zone | None = None


class CronRequest(
    Request, frozen=True, kw_only=True, tag_field="kind", tag="cron", omit_defaults=True
):
    """When the wall clock of a zone matches."""

    expr: Expression
    tz: Zone | None = None


class AtAnswer(Answer, frozen=True, kw_only=True, tag_field="kind", tag="at"):
    """Once, at an instant."""

    at_ms: MomentMs
    tz: str


class EveryAnswer(Answer, frozen=True, kw_only=True, tag_field="kind", tag="every"):
    """Again and again: the n-th time at anchor + n × period."""

    every_ms: SomeMilliseconds
    anchor_ms: MomentMs
    tz: str


class CronAnswer(Answer, frozen=True, kw_only=True, tag_field="kind", tag="cron"):
    """When the wall clock of a zone matches."""

    expr: str
    tz: str


ScheduleRequest: TypeAlias = AtRequest | EveryRequest | CronRequest
ScheduleAnswer: TypeAlias = AtAnswer | EveryAnswer | CronAnswer


# What is asked.


class MessagePayload(Request, frozen=True, kw_only=True, tag_field="kind", tag="message"):
    """The agent is told a text."""

    text: JobText


class FunctionPayload(Request, frozen=True, kw_only=True, tag_field="kind", tag="function"):
    """The agent is told what a function of its program returns when the firing starts."""

    function: Name


class CommandParts(Request, frozen=True, kw_only=True, omit_defaults=True):
    """A command, run without a shell."""

    argv: Argv
    folder: Line = ""
    environment: Variables = {}  # noqa: RUF012 - msgspec copies it
    stdin: Word = ""


class CommandPayload(CommandParts, frozen=True, kw_only=True, tag_field="kind", tag="command"):
    """A command, run without a shell; the agent must be one that runs commands."""


class MessageShown(Answer, frozen=True, kw_only=True, tag_field="kind", tag="message"):
    """The agent is told a text."""

    text: str


class FunctionShown(Answer, frozen=True, kw_only=True, tag_field="kind", tag="function"):
    """The agent is told what a function of its program returns when the firing starts."""

    function: str


class CommandShown(
    Answer, frozen=True, kw_only=True, tag_field="kind", tag="command", omit_defaults=True
):
    """A command, run without a shell."""

    argv: tuple[str, ...]
    folder: str = ""
    environment: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it
    stdin: str = ""


PayloadRequest: TypeAlias = MessagePayload | FunctionPayload | CommandPayload
PayloadAnswer: TypeAlias = MessageShown | FunctionShown | CommandShown


class GateRequest(Request, frozen=True, kw_only=True, omit_defaults=True):
    """A cheap look before the agent is woken (X-7): either a function of the program or a command."""

    schema_extra: ClassVar[dict[str, object]] = {"minProperties": 1, "maxProperties": 1}

    function: Name | UnsetType = UNSET
    command: Argv | UnsetType = UNSET


class GateAnswer(Answer, frozen=True, kw_only=True, omit_defaults=True):
    """A cheap look before the agent is woken (X-7)."""

    function: str | None = None
    command: tuple[str, ...] | None = None
