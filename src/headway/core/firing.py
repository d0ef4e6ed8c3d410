"""What becomes of a job whose time has come (C-5 to C-10): its runs, the lines of its log, its next instant.

Pure: a job is read, this decides, and the store keeps the decision only if the job is still what was read. The
next firing never depends on what becomes of the runs made here.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from headway.core.heartbeat import SPACING, in_hours, wake_in_hours
from headway.core.request import Composer
from headway.core.schedule import count, latest, next_firing, offset
from headway.model.job import ISOLATED, JOB, MAX_RECENT, Advance, Entry, Job, JobRecord, Ticking
from headway.model.payload import Ask, Execute, Say
from headway.model.places import Delivery
from headway.model.run import Firing, Route, Run, RunId, SessionKey
from headway.model.schedule import At
from headway.model.time import MINUTE, SECOND, Instant, Span
from headway.model.value import Value
from headway.model.views import JobView
from headway.model.words import WAITING_STATES, Fired, Misfire, Overlap, Source, State

GRACE: Span = MINUTE
"""A firing that is late by no more was not missed."""
ON_TIME: Span = SECOND
"""A heartbeat that began so soon after its instant counts from that where the next one keeps its distance."""
LOOKS_LAST: Span = 3 * MINUTE
"""So much later may it be if somebody looks before: the one who did may have died on the way."""
MAX_FAILURES = 10
"""After so many failures in a row a job is paused (C-9)."""
MAX_CAUGHT_UP = 1_000
"""So many missed firings of one job are run at most (misfire `all`)."""
MAX_LINES = 100
"""So many missed firings have a line of their own; those before them share one."""
FAILED_TOO_OFTEN = f"failed {MAX_FAILURES} times in a row"
_UNBOUNDED = 10_000

OVERLAPS = "an earlier firing is not finished"
TOO_MANY = "too many firings wait already"
REPLACED = "a later firing took its place"
FIRED = "it has fired at this time before"
TOO_SOON = "the agent was woken less than 30 s before"
TOO_OLD = "older than the misfire window"
MISSED = "nobody was there to run it"


class Go(Value, frozen=True):
    """Somebody has looked: the agent is to be woken."""

    text: str | None = None
    """What it is told, where that is not the job's own text."""
    route: Route | None = None
    """Where the reply goes, where that is not the job's own."""


class Skip(Value, frozen=True):
    """Somebody has looked: the agent sleeps on."""

    reason: str


Look: TypeAlias = Go | Skip
GO = Go()


class Decision(Value, frozen=True):
    """What is to be kept, and the earlier runs that give way to a new one."""

    job: Job
    advance: Advance
    supersedes: tuple[RunId, ...] = ()
    ends: tuple[RunId, ...] = ()
    """Runs that end unless they have begun: the job was paused."""
    paused: str = ""


def is_late(record: JobRecord, now: Instant) -> bool:
    """Whether nobody was there when it was due."""
    next_at = record.ticking.next_at
    return next_at is not None and now - next_at > _grace(record.job)


def _grace(job: Job) -> Span:
    return GRACE + LOOKS_LAST if job.looks else GRACE


class _Planned(Value, frozen=True):
    due_at: Instant
    kind: Fired


def decide(
    record: JobRecord,
    now: Instant,
    composer: Composer,
    next_id: Callable[[], RunId],
    *,
    look: Look = GO,
    catch_up_at: Instant | None = None,
) -> Decision:
    """What a due job does now. What makes up for missed firings starts at `catch_up_at`."""
    job, ticking = record.job, record.ticking
    if failures(record) >= MAX_FAILURES:
        return pause(record, now, FAILED_TOO_OFTEN)
    planned, lines = _due(job, ticking, now)
    planned = _not_yet_fired(record, planned)
    if isinstance(look, Skip):
        lines += [_skipped(job, plan, now, look.reason) for plan in planned]
        planned = []
    planned, overlapping, supersedes = _without_overlaps(record, planned, now)
    lines += overlapping
    runs: list[Run] = []
    for plan in planned:
        starts_at = catch_up_at if plan.kind is Fired.LATE else None
        run = firing_run(job, plan.due_at, now, composer, next_id(), look=look, starts_at=starts_at)
        runs.append(run)
        lines.append(Entry(job.id, plan.due_at, plan.kind, now, run.id))
    next_at, wake_at = ticking.next_at, ticking.wake_at
    if next_at is not None and next_at <= now:
        next_at = None if runs and job.delete_after_run else _after(job, now)
    if wake_at is not None and wake_at <= now:
        wake_at = None
    hours = None if job.heartbeat is None else job.heartbeat.hours
    if (
        isinstance(look, Skip)
        and wake_at is None
        and hours is not None
        and not in_hours(hours, now)
    ):
        wake_at = wake_in_hours(hours, job.agent, now, next_at)
    advance = Advance(
        job.id,
        ticking.version,
        msgspec.structs.replace(
            ticking,
            next_at=next_at,
            wake_at=wake_at,
            claimed_until=None,
        ),
        runs=tuple(runs),
        entries=tuple(sorted(lines, key=lambda entry: entry.due_at)),
    )
    return Decision(job, advance, supersedes)


def run_now(
    record: JobRecord, now: Instant, composer: Composer, run_id: RunId, look: Look = GO
) -> Decision:
    """A firing that somebody asked for; the natural cadence stays as it is (C-10)."""
    job, ticking = record.job, record.ticking
    run = firing_run(job, now, now, composer, run_id, look=look)
    entry = Entry(job.id, now, Fired.MANUAL, now, run.id)
    # A node that looks for what is due is refused by the new version, so nobody waits for it.
    stands = msgspec.structs.replace(ticking, claimed_until=None)
    return Decision(
        job,
        Advance(
            job.id,
            ticking.version,
            stands,
            enabled=job.enabled,
            runs=(run,),
            entries=(entry,),
        ),
    )


def settle(record: JobRecord, now: Instant, route: Route | None = None) -> Decision | None:
    """What a job does when one of its runs has ended: too many failures pause it, a job that is over goes.

    `route` is for the notice of a job that names none.
    """
    job, ticking = record.job, record.ticking
    if not job.enabled:
        return None
    if failures(record) >= MAX_FAILURES:
        return pause(record, now, FAILED_TOO_OFTEN, route)
    if ticking.due_at is not None or any(past.unfinished for past in record.recent):
        return None
    ended_well = bool(record.recent) and record.recent[0].state is State.DONE
    if not record.recent and record.tally is not None:
        ended_well = record.tally.state is State.DONE
    delete = job.delete_after_run and ended_well
    return Decision(job, Advance(job.id, ticking.version, ticking, enabled=False, delete=delete))


def put_off(record: JobRecord, until: Instant) -> Decision:
    """Nothing happens to it for a while: it is left to other nodes."""
    job, ticking = record.job, record.ticking
    stands = msgspec.structs.replace(ticking, claimed_until=until)
    return Decision(job, Advance(job.id, ticking.version, stands))


def sooner(record: JobRecord, after: Instant) -> Decision | None:
    """Its next instant by a clock that was far ahead and was set right: None, if that is right."""
    job, ticking = record.job, record.ticking
    next_at = _after(job, after)
    if ticking.next_at is None or next_at is None or next_at >= ticking.next_at:
        return None
    stands = msgspec.structs.replace(ticking, next_at=next_at)
    return Decision(job, Advance(job.id, ticking.version, stands))


def pause(record: JobRecord, now: Instant, reason: str, route: Route | None = None) -> Decision:
    """Nothing more happens until a person has looked: it failed too often (C-9), or cannot be fired at all."""
    job, ticking = record.job, record.ticking
    notices: tuple[Delivery, ...] = ()
    route = job.deliver or route
    if route is not None:
        text = _notice(job, reason)
        newest = record.recent[0].run_id if record.recent else RunId("")
        notices = (
            Delivery(
                f"{job.id}.paused.{ticking.version}",
                route,
                text,
                newest,
                ordering_session(job, newest),
                0,
                first_at=now,
            ),
        )
    stands = msgspec.structs.replace(
        ticking, next_at=None, wake_at=None, claimed_until=None, paused=reason
    )
    advance = Advance(job.id, ticking.version, stands, enabled=False, notices=notices)
    waiting = tuple(past.run_id for past in record.recent if past.state in WAITING_STATES)
    return Decision(job, advance, ends=waiting, paused=reason)


def _notice(job: Job, reason: str) -> str:
    if job.heartbeat is not None:
        what, resume = f"The heartbeat of agent {job.agent}", f"heartbeat resume {job.agent}"
    else:
        what, resume = f"Job {job.name!r} of agent {job.agent}", f"jobs resume {job.id}"
    return f"{what} was paused: it {reason}. Once that is mended: headway {resume}"


def failures(record: JobRecord) -> int:
    """How many of its runs failed in a row, since it was enabled; a stopped one counts neither way."""
    tally = record.tally
    return tally.failed if tally is not None and tally.since == record.ticking.since else 0


def job_view(record: JobRecord) -> JobView:
    """A job for readers: what of it is derived is worked out here."""
    recent, tally = record.recent, record.tally
    last_run_at = recent[0].made_at if recent else None
    if last_run_at is None and tally is not None:
        last_run_at = tally.at if tally.started_at is None else tally.started_at
    # What has just ended is counted a moment later.
    last = record.last
    is_newer = last is not None and (tally is None or (last.finished_at or 0) >= tally.at)
    ended = last.outcome if last is not None and is_newer else None
    return JobView(
        record.job,
        next_run_at=record.ticking.next_at,
        last_run_at=last_run_at,
        last_outcome=ended.state if ended is not None else None if tally is None else tally.state,
        last_error=ended.error if ended is not None else "" if tally is None else tally.error,
        consecutive_failures=failures(record),
        unfinished=sum(past.unfinished for past in recent),
        paused=record.ticking.paused,
    )


def latest_start(record: JobRecord) -> Instant | None:
    """When its latest run was made or, if it had to wait, began."""
    made_at = record.recent[0].made_at if record.recent else None
    started_at = None if record.tally is None else record.tally.started_at
    known = [at for at in (made_at, started_at) if at is not None]
    return max(known, default=None)


def ordering_session(job: Job, run_id: RunId) -> SessionKey:
    """The session that keeps the job's firings apart; its agent may see another (see `firing_run`)."""
    if job.session not in {ISOLATED, JOB}:
        return SessionKey(job.session)
    if job.session == ISOLATED and job.overlap is Overlap.ALLOW:
        return SessionKey(f"job:{job.id}:{run_id}")
    return SessionKey(f"job:{job.id}")


def firing_run(
    job: Job,
    due_at: Instant,
    now: Instant,
    composer: Composer,
    run_id: RunId,
    *,
    look: Look = GO,
    starts_at: Instant | None = None,
) -> Run:
    """The run of one firing."""
    text, route = "", job.deliver
    match job.payload:
        case Say(said):
            text = said
        case Ask() | Execute():
            pass
    if isinstance(look, Go):
        text = text if look.text is None else look.text
        route = route if look.route is None else look.route
    options: dict[str, object] = {
        "source": job.source,
        "session": ordering_session(job, run_id),
        "lane": job.lane,
        "priority": job.priority,
        "max_attempts": job.max_attempts,
        "retries": job.retries,
        "route": route,
    }
    if job.session == JOB and job.overlap is Overlap.ALLOW:
        options["max_concurrent"] = _UNBOUNDED
    run = composer.compose(run_id, text, options, now)
    fresh = job.session == ISOLATED
    firing = Firing(
        job.id,
        due_at,
        name=job.name,
        session=f"agent:{job.agent}:{job.source}:{job.id}:{run_id}" if fresh else "",
        function=job.payload.function if isinstance(job.payload, Ask) else "",
        command=job.payload if isinstance(job.payload, Execute) else None,
        ack_max_chars=None if job.heartbeat is None else job.heartbeat.ack_max_chars,
        hours=None if job.heartbeat is None else job.heartbeat.hours,
        final=job.delete_after_run or isinstance(job.schedule, At),
    )
    timeout = run.timeout if job.timeout is None else job.timeout
    return msgspec.structs.replace(run, firing=firing, due_at=starts_at, timeout=timeout)


def _after(job: Job, now: Instant) -> Instant | None:
    return next_firing(job.schedule, job.stagger, job.id, now)


def _due(job: Job, ticking: Ticking, now: Instant) -> tuple[list[_Planned], list[Entry]]:
    """What is to be run of all that has come due, in order, and lines for the firings that were missed."""
    planned: list[_Planned] = []
    lines: list[Entry] = []
    if ticking.next_at is not None and ticking.next_at <= now:
        planned, lines = _by_schedule(job, ticking.next_at, now)
    wake_at = ticking.wake_at
    if wake_at is not None and wake_at <= now and all(plan.due_at != wake_at for plan in planned):
        planned.append(_Planned(wake_at, Fired.MANUAL))
    return planned, lines


def _not_yet_fired(record: JobRecord, planned: Sequence[_Planned]) -> list[_Planned]:
    """Where the clock was set back and the job changed since, what is due may have its run already (C-5)."""
    fired = {past.due_at for past in record.recent}
    return [plan for plan in planned if plan.due_at not in fired]


def _by_schedule(job: Job, first: Instant, now: Instant) -> tuple[list[_Planned], list[Entry]]:
    """Of the firings from the first one that was not dealt with: what runs, and what was missed (C-6)."""
    last = _latest(job, now)
    # What was promised is due, also where the schedule would not give it any more.
    last = first if last is None else max(last, first)
    window = now - job.misfire_window
    planned: list[_Planned] = []
    lines = _missed_lines(job, first, min(window, last) - 1, TOO_OLD, now)
    in_window = max(first, window)
    if job.misfire is Misfire.ALL:
        caught_up = _back(job, in_window, last - 1, MAX_CAUGHT_UP)
        planned = [_Planned(at, Fired.LATE) for at in caught_up]
        lines += _missed_lines(job, in_window, caught_up[0] - 1 if caught_up else 0, MISSED, now)
    else:
        lines += _missed_lines(job, in_window, last - 1, MISSED, now)
    if now - last <= _grace(job):
        planned.append(_Planned(last, Fired.ON_TIME))
    elif job.misfire is not Misfire.SKIP and last >= window:
        planned.append(_Planned(last, Fired.LATE))
    else:
        reason = MISSED if last >= window else TOO_OLD
        lines.append(Entry(job.id, last, Fired.MISSED, now, reason=reason))
    return planned, lines


def _missed_lines(
    job: Job, first: Instant, last: Instant, reason: str, now: Instant
) -> list[Entry]:
    """The latest ones have a line each, those before them share one."""
    missed = _back(job, first, last, MAX_LINES)
    lines = [Entry(job.id, at, Fired.MISSED, now, reason=reason) for at in missed]
    if len(missed) == MAX_LINES:
        shift = offset(job.id, job.stagger)
        older = count(job.schedule, first - shift, missed[0] - 1 - shift)
        if older:
            lines.insert(0, Entry(job.id, first, Fired.MISSED, now, reason=reason, count=older))
    return lines


def _back(job: Job, first: Instant, last: Instant, most: int) -> list[Instant]:
    """The last firings of those from `first` to `last`, in their order."""
    found: list[Instant] = []
    at = _latest(job, last) if first <= last else None
    while at is not None and at >= first and len(found) < most:
        found.append(at)
        at = _latest(job, at - 1)
    return found[::-1]


def _latest(job: Job, until: Instant) -> Instant | None:
    shift = offset(job.id, job.stagger)
    at = latest(job.schedule, until - shift)
    return None if at is None else at + shift


def _without_overlaps(
    record: JobRecord, planned: Sequence[_Planned], now: Instant
) -> tuple[list[_Planned], list[Entry], tuple[RunId, ...]]:
    """What of it may run beside, behind or instead of the firings that are not finished (C-7)."""
    job = record.job
    unfinished = [past for past in record.recent if past.unfinished]
    run: list[_Planned] = []
    lines: list[Entry] = []
    supersedes: tuple[RunId, ...] = ()
    for plan in planned:
        reason = ""
        match job.overlap:
            case Overlap.SKIP:
                reason = OVERLAPS if unfinished or run else ""
            case Overlap.QUEUE:
                late = plan.kind is Fired.LATE
                reason = TOO_MANY if len(unfinished) >= MAX_RECENT and not late else ""
            case Overlap.INTERRUPT:
                reason = REPLACED if plan is not planned[-1] else ""
            case Overlap.ALLOW:
                pass
        if not reason and _too_soon(record, plan, now):
            reason = TOO_SOON
        if reason:
            lines.append(_skipped(job, plan, now, reason))
        else:
            run.append(plan)
    if job.overlap is Overlap.INTERRUPT and run:
        supersedes = tuple(past.run_id for past in unfinished)
    return run, lines, supersedes


def _too_soon(record: JobRecord, plan: _Planned, now: Instant) -> bool:
    """Heartbeats of one agent keep a distance; one that was asked for by hand need not (H-4)."""
    if record.job.source is not Source.HEARTBEAT or plan.kind is Fired.MANUAL:
        return False
    started_at = latest_start(record)
    if started_at is None:
        return False
    # A start comes a moment after it was due, and the next one may follow that instant at the very distance.
    due_at = _latest(record.job, started_at)
    if due_at is not None and started_at - due_at <= ON_TIME:
        started_at = due_at
    return now - started_at < SPACING


def _skipped(job: Job, plan: _Planned, now: Instant, reason: str) -> Entry:
    return Entry(job.id, plan.due_at, Fired.SKIPPED, now, reason=reason)


def catch_up_pace(late: int, spread: Span) -> Span:
    """How far apart runs start that make up for missed firings, so that many together are no stampede (C-6)."""
    return min(SECOND, spread // max(late, 1))
