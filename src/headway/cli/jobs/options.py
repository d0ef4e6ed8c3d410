"""What can be said about a job on the command line: one option for each field, the same for `add` and `edit`."""

import json
from typing import Annotated

import typer

COMMAND_AGENT = "command"
"""The agent that runs commands, unless it was given another name."""

_WHEN = "When"
_WHAT = "What"
_HOW = "How"

JobName = Annotated[
    str,
    typer.Argument(
        metavar="JOB", help="Its id, or agent/name, or its name alone if no other job has it."
    ),
]
ShownIn = Annotated[
    str | None,
    typer.Option("--tz", metavar="ZONE", help="Show times in this zone instead of each job's own."),
]
CronOption = Annotated[
    str | None,
    typer.Option(
        "--cron",
        metavar="EXPR",
        rich_help_panel=_WHEN,
        help="Again and again: '0 9 * * 1-5', @daily, '@every 10m'.",
    ),
]
EveryOption = Annotated[
    str | None,
    typer.Option(
        "--every", metavar="DURATION", rich_help_panel=_WHEN, help="Once in each: 30s, 10m, 1h30m."
    ),
]
AtOption = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="WHEN",
        rich_help_panel=_WHEN,
        help="Once: 'tomorrow 9am', 'in 20 minutes', '2026-12-24 18:00'.",
    ),
]
ZoneOption = Annotated[
    str | None,
    typer.Option(
        "--tz",
        metavar="ZONE",
        rich_help_panel=_WHEN,
        help="The job's own time zone, such as Europe/Paris (HEADWAY_TZ or UTC unless set).",
    ),
]
StaggerOption = Annotated[
    str | None,
    typer.Option(
        "--stagger",
        metavar="DURATION",
        rich_help_panel=_WHEN,
        help="Fire up to so much later, always by the same amount: spreads many jobs.",
    ),
]
MisfireOption = Annotated[
    str | None,
    typer.Option(
        "--misfire",
        metavar="once|skip|all",
        rich_help_panel=_WHEN,
        help="What becomes of firings missed while nobody was there (once).",
    ),
]
MisfireWindowOption = Annotated[
    str | None,
    typer.Option(
        "--misfire-window",
        metavar="DURATION",
        rich_help_panel=_WHEN,
        help="What was missed longer ago is not made up for (1d).",
    ),
]
TextOption = Annotated[
    str | None,
    typer.Option("--text", metavar="TEXT", rich_help_panel=_WHAT, help="What the agent is told."),
]
CommandOption = Annotated[
    str | None,
    typer.Option(
        "--command",
        metavar="COMMAND",
        rich_help_panel=_WHAT,
        help="""A command, run without a shell; or as JSON: '["sh", "-c", "…"]', '{"argv": […], "folder": …}'.""",
    ),
]
FunctionOption = Annotated[
    str | None,
    typer.Option(
        "--function",
        metavar="NAME",
        rich_help_panel=_WHAT,
        help="A function of your program, asked for the text when a firing starts.",
    ),
]
DeliverOption = Annotated[
    str | None,
    typer.Option(
        "--deliver",
        metavar="CHANNEL:TO[:THREAD]",
        rich_help_panel=_WHAT,
        help="""Where the reply goes; or as JSON: '{"channel": "matrix", "to": "!room:example.org"}'.""",
    ),
]
GateCommandOption = Annotated[
    str | None,
    typer.Option(
        "--gate-command",
        metavar="COMMAND",
        rich_help_panel=_WHAT,
        help="Look first: if it ends with a code other than 0, no agent is woken.",
    ),
]
GateFunctionOption = Annotated[
    str | None,
    typer.Option(
        "--gate-function",
        metavar="NAME",
        rich_help_panel=_WHAT,
        help="Look first: if this function of your program says no, no agent is woken.",
    ),
]
SessionOption = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="isolated|job|KEY",
        rich_help_panel=_HOW,
        help="A fresh session each time (isolated), one for the job, or one of your own.",
    ),
]
LaneOption = Annotated[
    str | None,
    typer.Option("--lane", metavar="NAME", rich_help_panel=_HOW, help="Its lane (cron)."),
]
PriorityOption = Annotated[
    int | None,
    typer.Option("--priority", rich_help_panel=_HOW, help="Lower goes first (10)."),
]
TimeoutOption = Annotated[
    str | None,
    typer.Option(
        "--timeout", metavar="DURATION", rich_help_panel=_HOW, help="The bound on one attempt (1h)."
    ),
]
RetriesOption = Annotated[
    int | None,
    typer.Option("--retries", rich_help_panel=_HOW, help="Tries after an error, 0 for none (3)."),
]
MaxAttemptsOption = Annotated[
    int | None,
    typer.Option(
        "--max-attempts", rich_help_panel=_HOW, help="Starts, if nodes die on the way (1)."
    ),
]
OverlapOption = Annotated[
    str | None,
    typer.Option(
        "--overlap",
        metavar="queue|skip|allow|interrupt",
        rich_help_panel=_HOW,
        help="What a firing does while an earlier one is not finished (queue).",
    ),
]
DeleteOption = Annotated[
    bool | None,
    typer.Option(
        "--delete-after-run/--keep-after-run",
        rich_help_panel=_HOW,
        help="Whether the job goes once it is done (only with --at, unless said).",
    ),
]


def command_of(text: str | None, field: str) -> object:
    """A command as it was written: plain, or as JSON."""
    return text if text is None or text.lstrip()[:1] not in {"[", "{"} else _json(text, field)


def route_of(text: str | None, field: str = "--deliver") -> object:
    """Where replies go: `channel:to`, `channel:to:thread`, or as JSON. An address with `://` is never cut."""
    if text is None or text.lstrip()[:1] == "{":
        return None if text is None else _json(text, field)
    channel, _, rest = text.partition(":")
    to, _, thread = (rest, "", "") if "://" in rest else rest.partition(":")
    parts = {"to": to, "thread": thread}
    return {"channel": channel, **{key: part for key, part in parts.items() if part}}


def gate_of(command: str | None, function: str | None) -> object:
    """The look before an agent is woken, if one was named."""
    if command is None and function is None:
        return None
    return {"command": command_of(command, "--gate-command"), "function": function}


def _json(text: str, field: str) -> object:
    from headway.model.errors import InvalidInput

    try:
        return json.loads(text)
    except ValueError as wrong:
        raise InvalidInput(field, text, f"JSON, as it begins like it ({wrong})") from None
