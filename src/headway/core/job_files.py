"""Jobs as JSON, out and in again (C-12): an array of {id, name, agentId, enabled, schedule, payload, …}.

What is written and read again gives equal jobs. Read as well: the `jobs.json` of OpenClaw, with a report of what
Headway does not have.
"""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import assert_never

import msgspec

from headway.core import openclaw
from headway.core.job_fields import known, milliseconds
from headway.core.jobs import new_job
from headway.core.request import flag, name_text
from headway.model.errors import InvalidInput, UnknownOption
from headway.model.job import Job
from headway.model.payload import Ask, Execute, Gate, Payload, Say
from headway.model.run import JobId, Route
from headway.model.schedule import At, Cron, Every, Schedule
from headway.model.time import Instant, as_timedelta
from headway.model.value import Value

_PLAIN = {
    "name": "name",
    "agentId": "agent",
    "enabled": "enabled",
    "schedule": "schedule",
    "deleteAfterRun": "delete_after_run",
    "lane": "lane",
    "session": "session",
    "retries": "retries",
    "maxAttempts": "max_attempts",
    "priority": "priority",
    "overlap": "overlap",
    "misfire": "misfire",
    "deliver": "deliver",
    "gate": "gate",
}
"""Keys whose values are the fields of a job as they are."""
_SPANS = {"timeoutMs": "timeout", "misfireWindowMs": "misfire_window", "staggerMs": "stagger"}
_KEYS = frozenset({*_PLAIN, *_SPANS, "id", "payload", "createdAtMs", "declared"})
_PAYLOADS = {
    "message": ("text", ("text",)),
    "function": ("function", ("function",)),
    "command": ("command", ("argv", "folder", "environment", "stdin")),
}
"""Each kind of payload: the field that it is, and its keys."""
_PATHS = {field: key for key, field in (_PLAIN | _SPANS).items()} | {
    "text": "payload.text",
    "function": "payload.function",
    "command": "payload",
}
"""Where in the JSON a field of a job stands."""
_LATEST_CREATION: Instant = 253_000_000_000_000_000

_decode = msgspec.json.Decoder(float_hook=Decimal).decode
_encode = msgspec.json.Encoder(decimal_format="number").encode


class Problem(Value, frozen=True):
    """Something in a file that was not taken over as it stands."""

    path: str
    """Such as `jobs[3].schedule.expr`."""
    why: str
    taken: bool = False
    """Whether the job was taken all the same."""


class JobFile(Value, frozen=True):
    """What was read: the jobs, and what needs a person's eye."""

    jobs: tuple[Job, ...]
    problems: tuple[Problem, ...]


def write_jobs(jobs: Iterable[Job]) -> str:
    """Jobs as JSON. Heartbeats are settings of their agents, and are left out."""
    data = [job_data(job) for job in jobs if job.heartbeat is None]
    return msgspec.json.format(_encode(data), indent=2).decode() + "\n"


def read_jobs(
    text: str | bytes,
    now: Instant,
    zone: str,
    new_id: Callable[[], JobId],
    agent: str | None = None,
) -> JobFile:
    """Read jobs from JSON: an array, or an object with `jobs`.

    `zone`, `agent` and `new_id` stand in where a job names none. What is no list of jobs at all raises
    `InvalidInput`; a job that cannot be read is left out and reported, and so is what is wrong with it.
    A job whose only time has passed is taken over disabled: it neither fires late nor gets lost.
    """
    reading = _Reading(now, zone, new_id, agent)
    raw, foreign = _list(text)
    for number, data in enumerate(raw):
        reading.take(f"jobs[{number}]", data, foreign)
    return JobFile(tuple(reading.jobs.values()), tuple(reading.problems))


def job_data(job: Job) -> dict[str, object]:
    """A job as plain data, as it stands in JSON; what is at its default is left out."""
    data: dict[str, object] = {
        "id": job.id,
        "name": job.name,
        "agentId": job.agent,
        "enabled": job.enabled,
        "schedule": _schedule_data(job.schedule),
        "payload": _payload_data(job.payload),
        "deleteAfterRun": job.delete_after_run,
        "createdAtMs": _in_milliseconds(job.created_at),
    }
    plain = Job(job.id, job.name, job.agent, job.schedule, job.payload, job.created_at)
    for key, field in (_PLAIN | _SPANS).items():
        value = getattr(job, field)
        if key not in data and value != getattr(plain, field):
            data[key] = _in_milliseconds(value) if key in _SPANS else value
    if job.deliver is not None:
        data["deliver"] = _route_data(job.deliver)
    if job.gate is not None:
        data["gate"] = _gate_data(job.gate)
    if job.declared:
        data["declared"] = True
    return data


class _Reading:
    """How far a file has been read."""

    def __init__(
        self, now: Instant, zone: str, new_id: Callable[[], JobId], agent: str | None
    ) -> None:
        self.jobs: dict[JobId, Job] = {}
        self.problems: list[Problem] = []
        self._now = now
        self._zone = zone
        self._new_id = new_id
        self._agent = agent
        self._names: set[tuple[str, str]] = set()

    def take(self, path: str, data: object, foreign: bool) -> None:
        notes: list[tuple[str, str]] = []
        try:
            if not isinstance(data, Mapping):
                raise InvalidInput("", data, "an object")
            foreign = foreign or openclaw.is_like(data)
            if foreign:
                data = openclaw.translated(data, self._agent, lambda *note: notes.append(note))
            job = self._read(data, foreign, notes)
        except InvalidInput as error:
            self.problems.append(Problem(_joined(path, _path(error.field)), _why(error)))
            return
        self._names.add((job.agent, job.name))
        self.jobs[job.id] = job
        self.problems += [Problem(_joined(path, where), why, taken=True) for where, why in notes]

    def _read(self, data: Mapping[str, object], foreign: bool, notes: list[tuple[str, str]]) -> Job:
        known(data, _KEYS)
        job_id = data.get("id")
        job_id = self._new_id() if job_id is None else JobId(name_text(job_id, "id"))
        if job_id in self.jobs:
            raise InvalidInput("id", job_id, "another: a job above has it")
        fields = _fields(data)
        if fields.get("agent") is None:
            fields["agent"] = self._agent
        job = new_job(job_id, fields, self._now, self._zone, past=True)
        job = msgspec.structs.replace(
            job,
            created_at=_creation(data.get("createdAtMs"), self._now),
            declared=flag(data.get("declared", False), "declared"),
        )
        if (job.agent, job.name) in self._names:
            job = self._renamed(job, foreign, notes)
        if job.enabled and isinstance(job.schedule, At) and job.schedule.at <= self._now:
            notes.append(("schedule", "its time has passed: it is taken over disabled"))
            job = msgspec.structs.replace(job, enabled=False)
        return job

    def _renamed(self, job: Job, foreign: bool, notes: list[tuple[str, str]]) -> Job:
        if not foreign:
            raise InvalidInput("name", job.name, "another: a job of its agent above has it")
        number = 2
        while (job.agent, f"{job.name} ({number})") in self._names:
            number += 1
        notes.append(("name", f"a job above has this name: it is called {job.name} ({number})"))
        return msgspec.structs.replace(job, name=f"{job.name} ({number})")


def _list(text: str | bytes) -> tuple[list[object], bool]:
    """The jobs of a file as they stand, and whether it is in OpenClaw's form."""
    try:
        data = _decode(text.lstrip("\ufeff") if isinstance(text, str) else text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise InvalidInput("jobs", _shown(text), f"JSON: {error}") from None
    foreign = isinstance(data, dict) and "version" in data
    found = data.get("jobs") if isinstance(data, dict) else data
    if not isinstance(found, list):
        raise InvalidInput("jobs", found, "an array of jobs, or an object with one as `jobs`")
    return found, foreign


def _fields(data: Mapping[str, object]) -> dict[str, object]:
    """The fields of a job, as `new_job` takes them."""
    fields = {field: data[key] for key, field in _PLAIN.items() if key in data}
    for key, field in _SPANS.items():
        if data.get(key) is not None:
            fields[field] = as_timedelta(milliseconds(data[key], key))
    payload = data.get("payload")
    if not isinstance(payload, Mapping):
        raise InvalidInput(
            "payload", payload, "an object with a kind: message, function or command"
        )
    kind = payload.get("kind")
    if not isinstance(kind, str) or kind not in _PAYLOADS:
        raise InvalidInput("payload.kind", kind, f"one of: {', '.join(_PAYLOADS)}")
    field, keys = _PAYLOADS[kind]
    known(payload, ("kind", *keys), "payload")
    parts = {key: value for key, value in payload.items() if key != "kind"}
    fields[field] = parts if kind == "command" else parts.get(field, "")
    return fields


def _creation(value: object, now: Instant) -> Instant:
    instant = now if value is None else milliseconds(value, "createdAtMs")
    if not 0 <= instant < _LATEST_CREATION:
        raise InvalidInput("createdAtMs", value, "a number of milliseconds since 1970")
    return instant


def _schedule_data(schedule: Schedule) -> dict[str, object]:
    match schedule:
        case At():
            return {"kind": "at", "atMs": _in_milliseconds(schedule.at), "tz": schedule.zone}
        case Every():
            return {
                "kind": "every",
                "everyMs": _in_milliseconds(schedule.period),
                "anchorMs": _in_milliseconds(schedule.anchor),
                "tz": schedule.zone,
            }
        case Cron():
            return {"kind": "cron", "expr": schedule.expression, "tz": schedule.zone}
        case _:
            assert_never(schedule)


def _payload_data(payload: Payload) -> dict[str, object]:
    match payload:
        case Say():
            return {"kind": "message", "text": payload.text}
        case Ask():
            return {"kind": "function", "function": payload.function}
        case Execute():
            data: dict[str, object] = {"kind": "command", "argv": payload.argv}
            data |= {"folder": payload.folder} if payload.folder else {}
            data |= {"environment": dict(payload.environment)} if payload.environment else {}
            return data | ({"stdin": payload.stdin} if payload.stdin else {})
        case _:
            assert_never(payload)


def _route_data(route: Route) -> dict[str, object]:
    parts = {"to": route.peer, "thread": route.thread, "account": route.account}
    return {"channel": route.channel, **{key: part for key, part in parts.items() if part}}


def _gate_data(gate: Gate) -> dict[str, object]:
    return {"function": gate.function} if gate.function else {"command": gate.argv}


def _in_milliseconds(microseconds: int) -> int | Decimal:
    """Whole milliseconds where they are; else with the microseconds behind the point, exactly."""
    whole, rest = divmod(microseconds, 1_000)
    return Decimal(microseconds) / 1_000 if rest else whole


def _path(field: str) -> str:
    """Where in the JSON the field of a refusal stands."""
    first, dot, rest = field.partition(".")
    return f"{_PATHS.get(first, first)}{dot}{rest}"


def _joined(path: str, field: str) -> str:
    return f"{path}.{field}" if field else path


def _why(error: InvalidInput) -> str:
    if isinstance(error, UnknownOption):
        hint = f"; did you mean {_path(error.close[0])!r}?" if error.close else ""
        return f"this key is not known{hint}"
    return f"{_shown(error.value)} is not allowed; it must be {error.allowed}"


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
