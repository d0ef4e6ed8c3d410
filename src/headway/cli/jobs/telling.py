"""Jobs, their firings and their log, as text for people and as JSON for programs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

import msgspec

from headway.cli.answers import LONGEST_CELL, NOTHING, lines_of, one_line
from headway.cli.tables import table
from headway.cli.views import instant
from headway.core.jobs import describe
from headway.core.schedule import next_firing, offset
from headway.core.schedule.oddities import oddity
from headway.core.spoken import show_time, show_wall
from headway.model.job import ISOLATED, Job
from headway.model.payload import Ask, Execute, Gate, Payload, Say
from headway.model.run import Route
from headway.model.schedule import UTC_ZONE, At, Schedule
from headway.model.time import DAY, MILLISECOND, SECOND, Instant, span_text
from headway.model.views import JobView
from headway.model.words import HeartbeatSkip
from headway.wire.base import maybe_moment
from headway.wire.firings import EntryAnswer, EntryOutcome, firing_answer, upcoming
from headway.wire.runs import OutcomeAnswer

_FIRINGS = 3
_OVERDUE = 10 * SECOND
"""Later than any node that has the agent would be."""
_SKIPS = frozenset(HeartbeatSkip)

firing_json = firing_answer
moment = maybe_moment
"""One form for programs, the same as over HTTP."""


# Jobs.


def job_lines(view: JobView, now: Instant, zone: str | None = None) -> str:
    """All about one job, with its next firings."""
    job = view.job
    rows: list[tuple[str, str]] = [
        ("job", f"{job.agent}/{one_line(job.name)}"),
        ("id", job.id),
        ("state", state_text(view, now)),
        ("schedule", schedule_text(job.schedule, zone)),
    ]
    firings = [
        firing_text(job.schedule, at, zone, now, late=offset(job.id, job.stagger))
        for at in _upcoming(view, now)
    ]
    rows += list(zip(["next", "", ""], firings or [NOTHING], strict=False))
    rows += [(name, text) for name, text in _options(job) if text]
    if view.last_run_at is not None:
        shown = show_time(view.last_run_at, zone or job.schedule.zone, now)
        outcome = f"{view.last_outcome}; " if view.last_outcome else ""
        rows.append(("last run", f"{outcome}{shown}"))
    if view.last_error:
        rows.append(("error", one_line(view.last_error)))
    if view.consecutive_failures:
        rows.append(("failures", f"{view.consecutive_failures} in a row"))
    return lines_of(rows)


def jobs_table(views: Sequence[JobView], now: Instant, zone: str | None = None) -> str:
    if not views:
        return "no jobs"
    head = ("name", "agent", "schedule", "next run", "last", "failures", "state")
    rows = [
        (
            one_line(view.name, LONGEST_CELL),
            view.agent,
            schedule_text(view.job.schedule, zone),
            next_text(view, now, zone),
            str(view.last_outcome or NOTHING),
            str(view.consecutive_failures),
            state_text(view, now),
        )
        for view in views
    ]
    return table(head, rows)


def state_text(view: JobView, now: Instant) -> str:
    if view.paused:
        return f"paused: {view.paused}"
    if not view.enabled:
        once = isinstance(view.job.schedule, At) and view.last_run_at is not None
        return "over" if once else "paused"
    if view.unfinished:
        return f"{view.unfinished} unfinished"
    if _is_overdue(view, now):
        return "overdue: no node fires it"
    return "enabled" if view.next_run_at is not None else "over"


def next_text(view: JobView, now: Instant, zone: str | None = None) -> str:
    if not view.enabled or view.next_run_at is None:
        return NOTHING
    return show_time(view.next_run_at, zone or view.job.schedule.zone, now)


def schedule_text(schedule: Schedule, zone: str | None = None) -> str:
    return describe(schedule, zone)


# Firings.


def _is_overdue(view: JobView, now: Instant) -> bool:
    return view.next_run_at is not None and now - view.next_run_at > _OVERDUE


def _upcoming(view: JobView, now: Instant) -> list[Instant]:
    """Its next firings. One that nobody has fired is still to come; those after it are counted from now."""
    if not view.enabled or view.next_run_at is None or not _is_overdue(view, now):
        return upcoming(view, _FIRINGS)
    job = view.job
    after = next_firing(job.schedule, job.stagger, job.id, now)
    later = msgspec.structs.replace(view, next_run_at=after)
    return [view.next_run_at, *upcoming(later, _FIRINGS - 1)]


def firing_text(
    schedule: Schedule, at: Instant, zone: str | None, now: Instant, late: int = 0
) -> str:
    """`Mon 16 Nov 09:00 Europe/Paris (in 2 hours)`, and what is odd about it. It is `late` by its stagger."""
    shown = show_time(at, zone or schedule.zone, now)
    odd = oddity(schedule, at - late)
    where = f" in {schedule.zone}" if odd and zone not in {None, schedule.zone} else ""
    return f"{shown}; {odd}{where}" if odd else shown


# The log.


def log_table(
    entries: Sequence[EntryAnswer],
    jobs: Mapping[str, Job],
    now: Instant,
    zone: str | None = None,
    *,
    with_job: bool = False,
) -> str:
    """Lines of the log, on the wall clock of each job; that of a job which is gone is not known any more."""
    if not entries:
        return "nothing has happened yet"
    head = ("due", "late", "fired", "outcome", "attempts", "tokens", "what")
    rows = [
        (
            *((_job_name(entry.job, jobs),) if with_job else ()),
            show_wall(instant(entry.due_at), zone or _zone_of(entry.job, jobs), now),
            NOTHING if entry.late_ms is None else span_text(math.ceil(entry.late_ms) * MILLISECOND),
            _fired(entry),
            _outcome_text(entry),
            str(entry.attempts) if entry.run_id else NOTHING,
            _tokens(entry.outcome),
            one_line(_what(entry), LONGEST_CELL),
        )
        for entry in entries
    ]
    return table((*(("job",) if with_job else ()), *head), rows)


def outcome_words(outcome: OutcomeAnswer | EntryOutcome) -> str:
    return f"{outcome.state}/{outcome.reason}" if outcome.reason else str(outcome.state)


# Pieces.


def payload_text(payload: Payload) -> str:
    match payload:
        case Say():
            return one_line(payload.text)
        case Ask():
            return f"what function {payload.function} returns"
        case Execute():
            return f"command {_command_text(payload.argv)}"
        case _:
            assert_never(payload)


def route_text(route: Route) -> str:
    return ":".join(part for part in (route.channel, route.peer, route.thread) if part)


def _options(job: Job) -> Iterator[tuple[str, str]]:
    """What else a person should see, each where it is said."""
    if job.heartbeat is None:
        yield "asks", payload_text(job.payload)
    yield "session", "" if job.session == ISOLATED else one_line(job.session)
    yield "lane", job.lane or ""
    yield "priority", "" if job.priority is None else str(job.priority)
    yield "timeout", "" if job.timeout is None else span_text(job.timeout)
    yield "retries", "" if job.retries is None else str(job.retries)
    yield "attempts", "" if job.max_attempts is None else f"at most {job.max_attempts}"
    yield "overlap", job.overlap
    window = "" if job.misfire_window == DAY else f", within {span_text(job.misfire_window)}"
    yield "misfire", f"{job.misfire}{window}"
    yield "stagger", "" if not job.stagger else f"up to {span_text(job.stagger)}"
    yield "deliver", "" if job.deliver is None else one_line(route_text(job.deliver))
    yield "gate", "" if job.gate is None else _gate_text(job.gate)
    yield "afterwards", "deleted" if job.delete_after_run else ""
    yield "declared", "in the code of a program" if job.declared else ""


def _gate_text(gate: Gate) -> str:
    return f"function {gate.function}" if gate.function else f"command {_command_text(gate.argv)}"


def _command_text(argv: Sequence[str]) -> str:
    import shlex

    return one_line(shlex.join(argv))


def _zone_of(job: str, jobs: Mapping[str, Job]) -> str:
    return jobs[job].schedule.zone if job in jobs else UTC_ZONE


def _job_name(job: str, jobs: Mapping[str, Job]) -> str:
    known = jobs.get(job)
    return f"{known.agent}/{one_line(known.name, LONGEST_CELL)}" if known else job


def _fired(entry: EntryAnswer) -> str:
    word = entry.fired.replace("_", " ")
    return f"{word} ×{entry.count}" if entry.count > 1 else word


def _outcome_text(entry: EntryAnswer) -> str:
    if entry.outcome is not None:
        return outcome_words(entry.outcome)
    if entry.state is not None:
        return str(entry.state)
    return "forgotten" if entry.run_id else NOTHING


def _tokens(outcome: EntryOutcome | None) -> str:
    if outcome is None or not (outcome.tokens_in or outcome.tokens_out):
        return NOTHING
    return f"{outcome.tokens_in}/{outcome.tokens_out}"


def _what(entry: EntryAnswer) -> str:
    if entry.reason:
        return entry.reason.replace("_", " ") if entry.reason in _SKIPS else entry.reason
    return "" if entry.outcome is None else entry.outcome.error or entry.outcome.text
