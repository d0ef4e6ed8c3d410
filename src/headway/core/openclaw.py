"""A job of OpenClaw's `jobs.json`, in the form that Headway writes, with what Headway does not have.

A job that would do something else without what is missing is refused. What was only an extra is reported.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from headway.model.errors import InvalidInput
from headway.model.job import ISOLATED

Data: TypeAlias = Mapping[str, object]
Report: TypeAlias = Callable[[str, str], None]
"""Told the path of something that is not taken over, and why."""

_MARKS = frozenset({"sessionTarget", "wakeMode", "state", "delivery", "jobId", "updatedAtMs"})
_SAYS = frozenset({"agentturn", "systemevent"})
_SAME = ("name", "agentId", "enabled", "deleteAfterRun", "createdAtMs")
_READ = frozenset(
    {*_SAME, "id", "jobId", "schedule", "payload", "delivery", "sessionTarget", "sessionKey"}
)
_UNNEEDED = frozenset({"state", "updatedAtMs", "wakeMode"})
_NOTHING: tuple[object, ...] = (None, False, "", [], {})
_GONE = "is not taken over"
_LONGEST_NAME = 60


def is_like(data: Data) -> bool:
    """Whether a job is in OpenClaw's form rather than in Headway's own."""
    payload = data.get("payload")
    kind = payload.get("kind") if isinstance(payload, Mapping) else None
    return bool(_MARKS & data.keys()) or _plain(kind) in _SAYS


def translated(data: Data, agent: str | None, report: Report) -> dict[str, object]:
    """The job in Headway's form, or `InvalidInput` naming what it cannot do without."""
    if "trigger" in data and data["trigger"] not in _NOTHING:
        raise InvalidInput("trigger", data["trigger"], "left out: Headway has no trigger scripts")
    job: dict[str, object] = {key: data[key] for key in _SAME if data.get(key) not in (None, "")}
    job.setdefault("agentId", agent)
    job["id"] = data.get("id") or data.get("jobId")
    payload = _mapping(data, "payload")
    job |= _schedule(data, report) | _payload(payload, report)
    job.setdefault("name", _name(job))
    job["session"] = _session(data, job["agentId"], report)
    if (route := _route(data, payload, report)) is not None:
        job["deliver"] = route
    if data.get("wakeMode") == "next-heartbeat":
        report("wakeMode", "it starts when it is due, and does not wait for a heartbeat")
    for key, value in data.items():
        if key not in _READ | _UNNEEDED and value not in _NOTHING:
            report(key, _GONE)
    return job


def _schedule(data: Data, report: Report) -> dict[str, object]:
    """The schedule, and the stagger that OpenClaw keeps in it."""
    said = data.get("schedule")
    if isinstance(said, str):
        said = {"kind": "cron", "expr": said}
    if not isinstance(said, Mapping):
        raise InvalidInput("schedule", said, "an object with a kind: at, every or cron")
    schedule = dict(said)
    kind = schedule.get("kind") or _kind(schedule)
    if kind not in {"at", "every", "cron"}:
        raise InvalidInput("schedule.kind", kind, "one of: at, every, cron")
    stagger = schedule.pop("staggerMs", None)
    schedule["kind"] = kind
    match kind:
        case "at":
            # A time without an offset is one of UTC there.
            schedule.setdefault("tz", "UTC")
            if schedule.get("atMs") is not None:
                schedule.pop("at", None)
        case "every":
            if schedule.get("anchorMs") is None:
                schedule["anchorMs"] = data.get("createdAtMs")
        case _:
            legacy = schedule.pop("cron", None)
            schedule["expr"] = _five_fields(schedule.get("expr") or legacy, report)
    return {"schedule": schedule} | ({"staggerMs": stagger} if stagger else {})


def _kind(schedule: Data) -> str | None:
    """What a schedule must be that does not say its kind."""
    keys = {"at": "at", "atMs": "at", "everyMs": "every", "expr": "cron", "cron": "cron"}
    return next((kind for key, kind in keys.items() if schedule.get(key) is not None), None)


def _five_fields(expression: object, report: Report) -> object:
    """An expression without its seconds, if they are 0; with others it is refused like any bad expression."""
    if isinstance(expression, str) and len(fields := expression.split()) == 6 and fields[0] == "0":
        report("schedule.expr", "the seconds in front, 0, are left out")
        return " ".join(fields[1:])
    return expression


def _payload(payload: Data, report: Report) -> dict[str, object]:
    """The payload, and the bound on one attempt that OpenClaw keeps in it."""
    kind = _plain(payload.get("kind"))
    if not kind:
        kind = "agentturn" if payload.get("message") else "systemevent"
    job: dict[str, object] = {}
    taken = {"kind", "timeoutSeconds", "deliver", "channel", "to", "accountId", "provider"}
    match kind:
        case "agentturn" | "systemevent":
            key = "message" if kind == "agentturn" else "text"
            text = payload.get(key)
            if not isinstance(text, str) or not text.strip():
                raise InvalidInput(f"payload.{key}", text, "a text that is not empty")
            taken.add(key)
            job["payload"] = {"kind": "message", "text": text}
        case "command":
            parts = {"argv": "argv", "folder": "cwd", "environment": "env", "stdin": "input"}
            taken |= set(parts.values())
            command = {ours: payload[key] for ours, key in parts.items() if payload.get(key)}
            job["payload"] = {"kind": "command", **command}
        case _:
            allowed = "one of: systemEvent, agentTurn, command"
            raise InvalidInput("payload.kind", payload.get("kind"), allowed)
    for key, value in payload.items():
        if key not in taken and value not in _NOTHING:
            report(f"payload.{key}", _GONE)
    seconds = payload.get("timeoutSeconds")
    if isinstance(seconds, int) and not isinstance(seconds, bool) and seconds > 0:
        job["timeoutMs"] = seconds * 1_000
    elif seconds is not None:
        report("payload.timeoutSeconds", "every attempt has a bound: it gets the usual one")
    return job


def _session(data: Data, agent: object, report: Report) -> str:
    target, key = data.get("sessionTarget"), data.get("sessionKey")
    main = key if isinstance(key, str) and key else f"agent:{agent}:main"
    if target is None:
        target = "main" if _plain(_mapping(data, "payload").get("kind")) == "systemevent" else ""
    match target:
        case "main":
            return main
        case "current" if isinstance(key, str) and key:
            return key
        case str() if target.startswith("session:") and len(target) > len("session:"):
            return target.removeprefix("session:")
        case "isolated" | "":
            return ISOLATED
        case _:
            report("sessionTarget", "the session is not known: each firing gets a fresh one")
            return ISOLATED


def _route(data: Data, payload: Data, report: Report) -> dict[str, object] | None:
    """Where the reply goes: `delivery`, or what stood in the payload before there was one."""
    said, path = data.get("delivery"), "delivery"
    if not isinstance(said, Mapping):
        wants = payload.get("deliver")
        if wants is False or not (wants or payload.get("channel") or payload.get("to")):
            return None
        channel = payload.get("channel") or payload.get("provider")
        said, path = {**payload, "channel": channel}, "payload"
    mode = said.get("mode") or "announce"
    if mode == "none":
        return None
    if path == "delivery":
        read = {"mode", "channel", "to", "accountId", "threadId"}
        for key, value in said.items():
            if key not in read and value not in _NOTHING:
                report(f"delivery.{key}", _GONE)
    channel = "webhook" if mode == "webhook" else said.get("channel")
    if not isinstance(channel, str) or channel in {"", "last"}:
        report(f"{path}.channel", "replies are in the log only: a job names the channel it tells")
        return None
    parts = {"to": "to", "thread": "threadId", "account": "accountId"}
    named = {ours: str(said[key]) for ours, key in parts.items() if said.get(key)}
    return {"channel": channel, **named}


def _name(job: Data) -> str:
    """What a job without a name is called: the beginning of what it asks."""
    payload = job["payload"]
    assert isinstance(payload, Mapping)
    text = str(payload.get("text") or "command").strip().partition("\n")[0]
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


def _mapping(data: Data, key: str) -> Data:
    value = data.get(key)
    if not isinstance(value, Mapping):
        raise InvalidInput(key, value, "an object")
    return value


def _plain(kind: object) -> str:
    """A kind however it is spelt: agentTurn, agent_turn."""
    return kind.replace("_", "").lower() if isinstance(kind, str) else ""
