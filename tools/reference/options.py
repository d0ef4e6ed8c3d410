"""Tables of the options that calls take: of an agent, a run, a job and a heartbeat."""

from collections.abc import Callable, Mapping

import msgspec

from headway.core.job_fields import PAYLOADS
from headway.core.jobs import new_job
from headway.core.request import AGENT_CHECKS, CHANNEL_TIMEOUT, SubmitOptions, check_option
from headway.facade import AgentOptions
from headway.heartbeats import HeartbeatOptions, read_heartbeat
from headway.jobs import JobFields, JobOptions
from headway.model.errors import InvalidInput
from headway.model.heartbeat import HeartbeatSettings
from headway.model.job import Job
from headway.model.run import JobId
from headway.model.settings import SOURCE_DEFAULTS, AgentSettings, Budget
from headway.model.time import span_text
from tools.reference.meanings import meaning_of
from tools.reference.source import fields_of
from tools.reference.tables import code, default_of, shown, table

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


OWNERS = (AgentOptions, SubmitOptions, JobFields, JobOptions, HeartbeatOptions)


def option_lines() -> list[str]:
    """The sections on options, for the page on settings."""
    lines = ["## Options of an agent", "", _AGENT_INTRO, ""]
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
    return lines


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
            code(field.type),
            allowed(field.name),
            meaning_of(f"{owner.__name__}.{field.name}", field.docstring),
        ]
        if defaults is not None:
            row.insert(3, defaults[field.name])
        rows.append(row)
    return table(columns, rows)


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
    return {field.name: default_of(owner, field) for field in fields_of(owner)}


def _source_table() -> list[str]:
    return table(
        ("source", "priority", "attempts", "retries", "lane", "deadline"),
        [
            (
                f"`{source.value}`",
                str(defaults.priority),
                str(defaults.max_attempts),
                str(defaults.retries),
                f"`{defaults.lane}`",
                shown(defaults.deadline, "Span"),
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
