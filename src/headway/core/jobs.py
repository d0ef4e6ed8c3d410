"""From what a person or program says about a job to the job, and from a job and a patch to the changed one.

Both read the same fields (C-1): a name, an agent, one of `cron`, `every`, `at` or `schedule`, a zone `tz`, one of
`text`, `command` or `function`, and options. Every refusal names the field, and a key that does not exist is
refused with the one that was probably meant (C-13).
"""

from collections.abc import Callable, Mapping
from typing import assert_never

import msgspec

from headway.core import schedule as schedules
from headway.core.job_fields import (
    PAYLOADS,
    at,
    every,
    known,
    read_gate,
    read_route,
    read_schedule,
)
from headway.core.request import agent_name, check_option, check_text, flag, name_text, word_of
from headway.model.errors import InvalidInput
from headway.model.job import ISOLATED, Job, Ticking
from headway.model.payload import Payload
from headway.model.run import JobId
from headway.model.schedule import UTC_ZONE, At, Cron, Every, Schedule
from headway.model.time import DAY, Instant, Span, span, span_text
from headway.model.words import Misfire, Overlap

HEARTBEAT = "heartbeat"
"""The name of an agent's heartbeat among its jobs."""
_SCHEDULES = ("cron", "every", "at", "schedule")
_A_SCHEDULE = "exactly one of: cron, every, at, schedule"
_A_PAYLOAD = "exactly one of: text, command, function"


def _name(value: object, field: str) -> str:
    name = name_text(value, field)
    try:
        check_text(name)
    except InvalidInput as error:
        raise InvalidInput(field, value, error.allowed) from None
    return name


def _job_name(value: object) -> str:
    name = _name(value, "name")
    if name == HEARTBEAT:
        what = (
            "one that is not kept for the agent's heartbeat (see hw.heartbeat, `headway heartbeat`)"
        )
        raise InvalidInput("name", name, what)
    return name


def _as_asked(value: object, field: str) -> object:
    """An option that a job has in common with a request."""
    return check_option(field, value)


def _timeout(value: object, field: str) -> Span:
    timeout = span(value, field)
    if not timeout:
        raise InvalidInput(field, value, "a duration longer than 0")
    return timeout


OPTIONS: Mapping[str, tuple[Callable[[object, str], object], object]] = {
    "lane": (_name, None),
    "session": (_name, ISOLATED),
    "timeout": (_timeout, None),
    "retries": (_as_asked, None),
    "max_attempts": (_as_asked, None),
    "priority": (_as_asked, None),
    "overlap": (word_of(Overlap), Overlap.QUEUE),
    "misfire": (word_of(Misfire), Misfire.ONCE),
    "misfire_window": (span, DAY),
    "stagger": (span, 0),
    "deliver": (read_route, None),
    "gate": (read_gate, None),
    "enabled": (flag, True),
}
"""Each option with its check, and what it is where nothing is said."""

JOB_FIELDS = frozenset(
    {"name", "agent", "tz", "delete_after_run", *_SCHEDULES, *PAYLOADS, *OPTIONS}
)
"""All that can be said about a job."""


def new_job(
    job_id: JobId, fields: Mapping[str, object], now: Instant, zone: str, past: bool = False
) -> Job:
    """The job that was asked for. A field that is None was not said; `zone` is that of who says no `tz`.

    With `past`, a `schedule` whose only time has gone by is taken too: it was some other clock's future.
    """
    known(fields, JOB_FIELDS)
    said = {name: value for name, value in fields.items() if value is not None}
    schedule = _new_schedule(said, now, zone, past=past)
    if schedule is None:
        raise InvalidInput("schedule", None, _A_SCHEDULE)
    payload = _payload(said)
    if payload is None:
        raise InvalidInput("text", None, _A_PAYLOAD)
    job = Job(
        id=job_id,
        name=_job_name(said.get("name")),
        agent=agent_name(_name(said.get("agent"), "agent")),
        schedule=schedule,
        payload=payload,
        created_at=now,
        delete_after_run=isinstance(schedule, At),
    )
    return msgspec.structs.replace(job, **_options(said))


def patched(job: Job, patch: Mapping[str, object], now: Instant) -> Job:
    """The job with what the patch says; all else stays, the zone too unless `tz` is among it (C-2).

    None sets an option back to what it is where nothing is said. Where a job that fires once becomes one that
    fires again and again, or the other way round, `delete_after_run` follows unless the patch says it.
    """
    said = dict(patch)
    for name, fixed in (("id", job.id), ("created_at", job.created_at)):
        if said.pop(name, fixed) != fixed:
            raise InvalidInput(name, patch[name], "left as it is: it cannot be changed")
    known(said, JOB_FIELDS)
    changes: dict[str, object] = {}
    if "name" in said:
        changes["name"] = _job_name(said["name"])
    if "agent" in said:
        changes["agent"] = agent_name(_name(said["agent"], "agent"))
    schedule = _new_schedule(said, now, job.schedule.zone, job.schedule)
    if schedule is not None:
        changes["schedule"] = schedule
        if isinstance(schedule, At) is not isinstance(job.schedule, At):
            changes["delete_after_run"] = isinstance(schedule, At)
    payload = _payload(said)
    if payload is not None:
        changes["payload"] = payload
    changes |= _options(said)
    if said.get("delete_after_run", False) is None:
        changes["delete_after_run"] = isinstance(schedule or job.schedule, At)
    changed = msgspec.structs.replace(job, **changes)
    if changed.enabled and not job.enabled and _next(changed, now) is None:
        raise InvalidInput("enabled", True, "False, or given with a new time: its own has passed")
    return changed


def first_ticking(job: Job, now: Instant) -> Ticking:
    """Where a new job stands. An `at` that comes while the job is being made is due at once, not lost (C-6)."""
    if not job.enabled:
        return Ticking(since=now)
    after = job.schedule.at - 1 if isinstance(job.schedule, At) else now
    return Ticking(next_at=_next(job, after), since=now)


def reticked(before: Job, after: Job, ticking: Ticking, now: Instant) -> Ticking:
    """Where a changed job stands: its next firing is another one only if its schedule, stagger or `enabled` is.

    A node that looks for the job just now is refused by the new version, so nobody waits for it.
    """
    stands = msgspec.structs.replace(ticking, claimed_until=None)
    if not after.enabled:
        return msgspec.structs.replace(stands, next_at=None, wake_at=None)
    if not before.enabled:
        return msgspec.structs.replace(
            stands, next_at=_next(after, now), wake_at=None, since=now, paused=""
        )
    if (_beat(before.schedule), before.stagger) != (_beat(after.schedule), after.stagger):
        next_at = _next(after, now)
        if next_at is None and _beat(before.schedule) == _beat(after.schedule):
            # Its only time has come, and nobody was there: it is due still (C-6).
            return stands
        return msgspec.structs.replace(stands, next_at=next_at)
    return stands


def describe(schedule: Schedule, zone: str | None = None) -> str:
    """A schedule for people; an instant is shown on the wall clock of `zone`, or of its own."""
    match schedule:
        case Every():
            return f"every {span_text(schedule.period)}"
        case Cron():
            return f"{schedule.expression} ({schedule.zone})"
        case At():
            shown_in = zone or schedule.zone
            shown = schedules.local(schedule.at, shown_in)
            seconds = ":%S" if shown.second else ""
            return f"at {shown:%Y-%m-%d %H:%M{seconds}} ({shown_in})"
        case _:
            assert_never(schedule)


def _beat(schedule: Schedule) -> Schedule:
    """What decides when it fires: the zone does so for cron expressions only."""
    if isinstance(schedule, Cron):
        return schedule
    return msgspec.structs.replace(schedule, zone=UTC_ZONE)


def _next(job: Job, after: Instant) -> Instant | None:
    return schedules.next_firing(job.schedule, job.stagger, job.id, after)


def _options(said: Mapping[str, object]) -> dict[str, object]:
    """The options that were said, checked; one that is None is what it is where nothing is said."""
    options: dict[str, object] = {}
    for name, (check, plain) in OPTIONS.items():
        if name in said:
            value = said[name]
            options[name] = plain if value is None else check(value, name)
    if said.get("delete_after_run") is not None:
        options["delete_after_run"] = flag(said["delete_after_run"], "delete_after_run")
    return options


def _payload(said: Mapping[str, object]) -> Payload | None:
    keys = [key for key in PAYLOADS if key in said]
    if not keys:
        return None
    if len(keys) > 1:
        raise InvalidInput(keys[1], said[keys[1]], _A_PAYLOAD)
    (key,) = keys
    return PAYLOADS[key](said[key], key)


def _new_schedule(
    said: Mapping[str, object],
    now: Instant,
    zone: str,
    before: Schedule | None = None,
    past: bool = False,
) -> Schedule | None:
    """The schedule that was said, in its own zone or else in `zone`; None if nothing was said about it."""
    keys = [key for key in _SCHEDULES if key in said]
    if len(keys) > 1:
        raise InvalidInput(keys[1], said[keys[1]], _A_SCHEDULE)
    named = schedules.zone_name(said["tz"]) if "tz" in said else None
    if not keys:
        if before is None or named is None:
            return None
        return msgspec.structs.replace(before, zone=named)
    (key,) = keys
    value = said[key]
    if value is None:
        raise InvalidInput(key, None, _A_SCHEDULE)
    zone = named or zone
    schedule: Schedule
    match key:
        case "cron":
            schedule = schedules.cron(value, zone, now, "cron")
        case "every":
            schedule = every(value, zone, now)
        case "at":
            schedule = at(value, zone, now)
        case _:
            # What a job already has may be said again, also when its time has passed.
            if before is not None and read_schedule(value, now, zone, past=True) == before:
                return before
            schedule = read_schedule(value, now, zone, past=past)
    if named is not None and schedule.zone != named:
        raise InvalidInput("tz", named, f"{schedule.zone}, which the schedule names, or left out")
    return _on_beat(schedule, before, value)


def _on_beat(schedule: Schedule, before: Schedule | None, said: object) -> Schedule:
    """The same period said again, without an anchor, keeps the firings where they are."""
    if not isinstance(schedule, Every) or not isinstance(before, Every):
        return schedule
    anchored = isinstance(said, Every) or (isinstance(said, Mapping) and "anchorMs" in said)
    if anchored or schedule.period != before.period:
        return schedule
    return msgspec.structs.replace(before, zone=schedule.zone)
