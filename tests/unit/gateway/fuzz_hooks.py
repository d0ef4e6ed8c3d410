"""What the fuzzer cannot know: which agents and zones there are, what lies ahead, and that streams go on."""

from typing import Any

import schemathesis
from hypothesis import strategies
from schemathesis import APIOperation, Case, HookContext

KNOWN = "support"
NOBODY = "http://127.0.0.1:9/"
"""Where a callback may go and nobody listens."""
FORMATS = {
    "time-zone": ["UTC", "Europe/Paris", "America/New_York", "Asia/Kolkata"],
    "cron": ["0 9 * * 1-5", "*/5 * * * *", "@daily", "@every 10m", "0 0 29 2 *"],
    "when": ["in 20 minutes", "tomorrow 9am", "2090-01-01T00:00:00Z"],
}
_LONGEST = 512
_AHEAD_MS = 4_070_908_800_000

for name, values in FORMATS.items():
    schemathesis.openapi.format(name, strategies.sampled_from(values))


@schemathesis.hook
def before_load_schema(context: HookContext, raw_schema: dict[str, Any]) -> None:
    """The fuzzer goes by lengths before it goes by formats."""
    _without_lengths(raw_schema)


def _without_lengths(told: object) -> None:
    if isinstance(told, dict):
        if told.get("format") in FORMATS:
            told.pop("minLength", None)
            told.pop("maxLength", None)
        for value in told.values():
            _without_lengths(value)
    elif isinstance(told, list):
        for value in told:
            _without_lengths(value)


@schemathesis.hook
def before_call(
    context: HookContext, case: "Case[APIOperation[Any, Any, Any, Any]]", kwargs: dict[str, object]
) -> None:
    """Ask an agent that exists wherever the fuzzer made up a good name, and never wait for the end of a stream."""
    for place in (case.body, case.path_parameters):
        if isinstance(place, dict) and _could_be_a_name(place.get("agentId")):
            place["agentId"] = KNOWN
    query = case.query
    if isinstance(query, dict):
        if case.operation.path == "/events" and query.get("follow", True) in (True, "true"):
            query["follow"] = "false"
        query.pop("wait", None)
    positive = case.meta is not None and case.meta.generation.mode.is_positive
    if positive and isinstance(case.body, dict):
        _make_sense(case.operation.path, case.body)


def _make_sense(path: str, body: dict[str, Any]) -> None:
    """What no schema can say: a file of jobs is JSON, and what is to happen lies ahead and not too often."""
    match path:
        case "/jobs/import":
            body.update(form="json", text="[]")
        case "/tasks/batch":
            # All or none can only be promised for what has not ended before it begins.
            body["atomic"] = False
        case "/heartbeats/{agentId}" if isinstance(body.get("checklist"), str):
            body["checklist"] = "x.md"
        case _:
            pass
    for task in (body, *body.get("tasks", ())):
        if isinstance(task, dict) and isinstance(task.get("callbackUrl"), str):
            task["callbackUrl"] = NOBODY
    if isinstance(body.get("every"), str):
        body["every"] = "1h"
    schedule = body.get("schedule")
    if isinstance(schedule, dict) and schedule.get("kind") == "at":
        schedule["atMs"] = _AHEAD_MS
    if isinstance(schedule, dict) and schedule.get("kind") == "every":
        schedule["everyMs"] = 3_600_000


def _could_be_a_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST and "\0" not in value
