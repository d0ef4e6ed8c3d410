"""When a job fires, and what has become of its firings, as JSON."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from headway.core.jobs import describe
from headway.core.schedule import local, next_firing
from headway.core.schedule.oddities import oddity
from headway.model.job import Entry
from headway.model.outcome import Outcome
from headway.model.schedule import Schedule
from headway.model.time import Instant, Span, instant_text
from headway.model.views import JobView
from headway.model.words import Fired, Reason, State
from headway.wire.base import Answer, Limit, Moment, Request, maybe_moment
from headway.wire.jobs import JobPath
from headway.wire.names import Milliseconds, Number, NumberCursor, Zone, in_milliseconds


class LogQuery(Request, frozen=True, kw_only=True):
    """Which lines of the log of all jobs."""

    limit: Limit = 100
    cursor: NumberCursor | None = None


class JobLogQuery(JobPath, frozen=True, kw_only=True):
    """Which lines of the log of a job; one that was removed is named by its id."""

    limit: Limit = 100
    cursor: NumberCursor | None = None


class NextQuery(JobPath, frozen=True, kw_only=True):
    """How many of its next firings, and how they are shown."""

    count: Annotated[int, Meta(ge=1, le=1_000)] = 5
    tz: Zone | None = None


class FiringAnswer(Answer, frozen=True, kw_only=True):
    """When a job fires."""

    at: Moment
    local: Annotated[str, Meta(description="The same on the wall clock of the zone.")]
    zone: str
    note: Annotated[str, Meta(description="What is odd about it where the clocks change.")]


class NextFirings(Answer, frozen=True, kw_only=True):
    """The next firings of a job."""

    schedule: Annotated[str, Meta(description="For people.", examples=["0 9 * * 1-5 (UTC)"])]
    firings: tuple[FiringAnswer, ...]


class EntryOutcome(Answer, frozen=True, kw_only=True):
    """How the run of a firing ended."""

    state: State
    reason: Reason | None
    text: Annotated[str, Meta(description="The reply, cut at 16 KiB.")]
    error: str
    tokens_in: Number
    tokens_out: Number


class EntryAnswer(Answer, frozen=True, kw_only=True):
    """One line of a log: a firing, or one that was missed or skipped (C-11)."""

    number: Annotated[Number, Meta(description="Its place in the log.")]
    job: str
    due_at: Moment
    fired: Fired
    count: Annotated[int, Meta(ge=1, description="How many firings the line stands for.")]
    reason: Annotated[str, Meta(description="Why it was skipped or missed.")]
    decided_at: Moment
    run_id: str | None
    state: State | None
    attempts: Number
    started_at: Moment | None
    finished_at: Moment | None
    late_ms: Milliseconds | None
    outcome: EntryOutcome | None


class EntryPage(Answer, frozen=True, kw_only=True):
    """Lines of a log, the newest first."""

    entries: tuple[EntryAnswer, ...]
    cursor: NumberCursor | None = None


def firing_answer(
    schedule: Schedule, at: Instant, zone: str | None, late: Span = 0
) -> FiringAnswer:
    """One firing, shown in a zone or in that of its schedule. It is `late` by the stagger of its job."""
    shown_in = zone or schedule.zone
    return FiringAnswer(
        at=instant_text(at),
        local=local(at, shown_in).isoformat(),
        zone=shown_in,
        note=oddity(schedule, at - late),
    )


def upcoming(view: JobView, count: int) -> list[Instant]:
    """The next firings of a job."""
    job = view.job
    found: list[Instant] = []
    at = view.next_run_at if view.enabled else None
    while at is not None and len(found) < count:
        found.append(at)
        at = next_firing(job.schedule, job.stagger, job.id, at)
    return found


def next_firings(
    schedule: Schedule, firings: Iterable[Instant], zone: str | None = None, late: Span = 0
) -> NextFirings:
    return NextFirings(
        schedule=describe(schedule),
        firings=tuple(firing_answer(schedule, at, zone, late) for at in firings),
    )


def entry_answer(entry: Entry) -> EntryAnswer:
    return EntryAnswer(
        number=entry.number,
        job=entry.job,
        due_at=instant_text(entry.due_at),
        fired=entry.kind,
        count=entry.count,
        reason=entry.reason,
        decided_at=instant_text(entry.at),
        run_id=entry.run_id,
        state=entry.state,
        attempts=entry.attempts,
        started_at=maybe_moment(entry.started_at),
        finished_at=maybe_moment(entry.finished_at),
        late_ms=None if entry.lateness is None else in_milliseconds(entry.lateness),
        outcome=None if entry.outcome is None else entry_outcome(entry.outcome),
    )


def entry_page(entries: Iterable[Entry], cursor: str | None) -> EntryPage:
    return EntryPage(entries=tuple(map(entry_answer, entries)), cursor=cursor)


def entry_outcome(outcome: Outcome) -> EntryOutcome:
    return EntryOutcome(
        state=outcome.state,
        reason=outcome.reason,
        text=outcome.text,
        error=outcome.error,
        tokens_in=outcome.tokens_in,
        tokens_out=outcome.tokens_out,
    )
