"""Jobs, their firings and their log, as text for people and as JSON for programs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

import msgspec

from headway.cli.jobs.oddities import oddity
from headway.cli.tables import table
from headway.core.job_files import job_data
from headway.core.jobs import describe
from headway.core.schedule import local, next_firing, offset
from headway.core.spoken import show_time, show_wall
from headway.model.job import ISOLATED, Entry, Job
from headway.model.outcome import Outcome
from headway.model.payload import Ask, Execute, Gate, Payload, Say
from headway.model.run import JobId, Route
from headway.model.schedule import UTC_ZONE, At, Schedule
from headway.model.time import DAY, MILLISECOND, Instant, instant_text, span_text
from headway.model.views import JobView
from headway.model.words import HeartbeatSkip

NOTHING = "-"
_FIRINGS = 3
_LONGEST_CELL = 60
_SKIPS = frozenset(HeartbeatSkip)

_encode = msgspec.json.Encoder(decimal_format="number").encode


def as_json(data: object) -> str:
    return msgspec.json.format(_encode(data), indent=2).decode()


# Jobs.


def job_lines(view: JobView, now: Instant, zone: str | None = None) -> str:
    """All about one job, with its next firings."""
    job = view.job
    rows: list[tuple[str, str]] = [
        ("job", f"{job.agent}/{one_line(job.name)}"),
        ("id", job.id),
        ("state", state_text(view)),
        ("schedule", schedule_text(job.schedule, zone)),
    ]
    upcoming = [
        firing_text(job.schedule, at, zone, now, late=offset(job.id, job.stagger))
        for at in firings_of(view, _FIRINGS)
    ]
    rows += list(zip(["next", "", ""], upcoming or [NOTHING], strict=False))
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


def lines_of(rows: Sequence[tuple[str, str]]) -> str:
    """Names on the left, texts on the right."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name.ljust(width)}  {text}" for name, text in rows)


def jobs_table(views: Sequence[JobView], now: Instant, zone: str | None = None) -> str:
    if not views:
        return "no jobs"
    head = ("name", "agent", "schedule", "next run", "last", "failures", "state")
    rows = [
        (
            one_line(view.name, _LONGEST_CELL),
            view.agent,
            schedule_text(view.job.schedule, zone),
            next_text(view, now, zone),
            str(view.last_outcome or NOTHING),
            str(view.consecutive_failures),
            state_text(view),
        )
        for view in views
    ]
    return table(head, rows)


def job_json(view: JobView) -> dict[str, object]:
    """As in an export, and where the job stands."""
    return {**job_data(view.job), "state": state_json(view)}


def state_json(view: JobView) -> dict[str, object]:
    return {
        "nextRunAt": moment(view.next_run_at if view.enabled else None),
        "lastRunAt": moment(view.last_run_at),
        "lastOutcome": view.last_outcome,
        "lastError": view.last_error,
        "consecutiveFailures": view.consecutive_failures,
        "unfinished": view.unfinished,
        "paused": view.paused,
    }


def state_text(view: JobView) -> str:
    if view.paused:
        return f"paused: {view.paused}"
    if not view.enabled:
        once = isinstance(view.job.schedule, At) and view.last_run_at is not None
        return "over" if once else "paused"
    if view.unfinished:
        return f"{view.unfinished} unfinished"
    return "enabled" if view.next_run_at is not None else "over"


def next_text(view: JobView, now: Instant, zone: str | None = None) -> str:
    if not view.enabled or view.next_run_at is None:
        return NOTHING
    return show_time(view.next_run_at, zone or view.job.schedule.zone, now)


def schedule_text(schedule: Schedule, zone: str | None = None) -> str:
    return describe(schedule, zone)


# Firings.


def firings_of(view: JobView, count: int) -> list[Instant]:
    """The next firings of a job."""
    job = view.job
    found: list[Instant] = []
    at = view.next_run_at if view.enabled else None
    while at is not None and len(found) < count:
        found.append(at)
        at = next_firing(job.schedule, job.stagger, job.id, at)
    return found


def firing_text(
    schedule: Schedule, at: Instant, zone: str | None, now: Instant, late: int = 0
) -> str:
    """`Mon 16 Nov 09:00 Europe/Paris (in 2 hours)`, and what is odd about it. It is `late` by its stagger."""
    shown = show_time(at, zone or schedule.zone, now)
    odd = oddity(schedule, at - late)
    where = f" in {schedule.zone}" if odd and zone not in {None, schedule.zone} else ""
    return f"{shown}; {odd}{where}" if odd else shown


def firing_json(
    schedule: Schedule, at: Instant, zone: str | None, late: int = 0
) -> dict[str, object]:
    shown_in = zone or schedule.zone
    return {
        "at": instant_text(at),
        "local": local(at, shown_in).isoformat(),
        "zone": shown_in,
        "note": oddity(schedule, at - late),
    }


# The log.


def log_table(
    entries: Sequence[Entry],
    jobs: Mapping[JobId, Job],
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
            show_wall(entry.due_at, zone or _zone_of(entry.job, jobs), now),
            NOTHING if entry.lateness is None else span_text(_rounded(entry.lateness)),
            _fired(entry),
            _outcome_text(entry),
            str(entry.attempts) if entry.run_id else NOTHING,
            _tokens(entry.outcome),
            one_line(_what(entry), _LONGEST_CELL),
        )
        for entry in entries
    ]
    return table((*(("job",) if with_job else ()), *head), rows)


def entry_json(entry: Entry) -> dict[str, object]:
    outcome = entry.outcome
    return {
        "number": entry.number,
        "job": entry.job,
        "dueAt": instant_text(entry.due_at),
        "fired": entry.kind,
        "count": entry.count,
        "reason": entry.reason,
        "decidedAt": instant_text(entry.at),
        "runId": entry.run_id,
        "state": entry.state,
        "attempts": entry.attempts,
        "startedAt": moment(entry.started_at),
        "finishedAt": moment(entry.finished_at),
        "lateMs": None if entry.lateness is None else entry.lateness / MILLISECOND,
        "outcome": None if outcome is None else outcome_json(outcome),
    }


def outcome_json(outcome: Outcome) -> dict[str, object]:
    return {
        "state": outcome.state,
        "reason": outcome.reason,
        "text": outcome.text,
        "error": outcome.error,
        "tokensIn": outcome.tokens_in,
        "tokensOut": outcome.tokens_out,
    }


def outcome_words(outcome: Outcome) -> str:
    return f"{outcome.state}/{outcome.reason}" if outcome.reason else str(outcome.state)


# Pieces.


def moment(at: Instant | None) -> str | None:
    return None if at is None else instant_text(at)


def one_line(text: str, longest: int | None = None) -> str:
    """A text that cannot break a table or a terminal: one line, without control characters."""
    lines = " ".join(line.strip() for line in text.splitlines() if line.strip())
    plain = "".join(sign if sign.isprintable() else " " for sign in lines)
    return plain if longest is None or len(plain) <= longest else f"{plain[: longest - 1]}…"


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


def _zone_of(job: JobId, jobs: Mapping[JobId, Job]) -> str:
    return jobs[job].schedule.zone if job in jobs else UTC_ZONE


def _job_name(job: JobId, jobs: Mapping[JobId, Job]) -> str:
    known = jobs.get(job)
    return f"{known.agent}/{one_line(known.name, _LONGEST_CELL)}" if known else job


def _rounded(span: int) -> int:
    """To the millisecond: nobody reads microseconds of lateness."""
    return -(-span // MILLISECOND) * MILLISECOND


def _fired(entry: Entry) -> str:
    word = entry.kind.replace("_", " ")
    return f"{word} ×{entry.count}" if entry.count > 1 else word


def _outcome_text(entry: Entry) -> str:
    if entry.outcome is not None:
        return outcome_words(entry.outcome)
    if entry.state is not None:
        return str(entry.state)
    return "forgotten" if entry.run_id else NOTHING


def _tokens(outcome: Outcome | None) -> str:
    if outcome is None or not (outcome.tokens_in or outcome.tokens_out):
        return NOTHING
    return f"{outcome.tokens_in}/{outcome.tokens_out}"


def _what(entry: Entry) -> str:
    if entry.reason:
        return entry.reason.replace("_", " ") if entry.reason in _SKIPS else entry.reason
    return "" if entry.outcome is None else entry.outcome.error or entry.outcome.text
