"""Jobs, their firings and their log, as JSON: the same over HTTP, in RPC and from `headway jobs --json` (C-12)."""

from typing import Annotated, assert_never

import msgspec
from msgspec import Meta

from headway.model.job import ISOLATED, Job
from headway.model.payload import Ask, Execute, Gate, Payload, Say
from headway.model.schedule import At, Cron, Every, Schedule
from headway.model.settings import MAX_NAME
from headway.model.time import DAY, MILLISECOND
from headway.model.views import JobView
from headway.model.words import Misfire, Overlap, State
from headway.wire.base import Answer, Limit, Moment, Request, maybe_moment
from headway.wire.names import (
    IS_NAME,
    NAME,
    AgentName,
    JobCursor,
    LaneName,
    Milliseconds,
    MomentMs,
    Name,
    Number,
    SessionName,
    SomeMilliseconds,
    in_milliseconds,
)
from headway.wire.places import RouteAnswer, route_answer
from headway.wire.schedules import (
    AtAnswer,
    CommandShown,
    CronAnswer,
    EveryAnswer,
    FunctionShown,
    GateAnswer,
    MessageShown,
    PayloadAnswer,
    ScheduleAnswer,
)

_DAY_MS = DAY // MILLISECOND
Session = Annotated[
    SessionName,
    Meta(
        description="`isolated`: a fresh one for each firing; `job`: one for all; else a session key."
    ),
]
JobNamed = Annotated[
    str,
    Meta(
        description="Its id, or `agent/name`.",
        min_length=1,
        max_length=2 * MAX_NAME + 1,
        pattern=NAME,
        extra=IS_NAME,
        examples=["support/morning brief"],
    ),
]
Priority = Annotated[int, Meta(ge=-100, le=100)]
Retries = Annotated[int, Meta(ge=0, le=1_000)]
MaxAttempts = Annotated[int, Meta(ge=1, le=1_000)]


class JobsQuery(Request, frozen=True, kw_only=True):
    """Which jobs to list."""

    agent_id: AgentName | None = None
    enabled: bool | None = None
    limit: Limit = 100
    cursor: JobCursor | None = None


class ExportQuery(Request, frozen=True, kw_only=True):
    """Which jobs to export."""

    agent_id: AgentName | None = None
    limit: Limit = 1_000
    cursor: JobCursor | None = None


class JobsStatusQuery(Request, frozen=True, kw_only=True):
    """Whose jobs."""

    agent_id: AgentName | None = None


class JobPath(Request, frozen=True, kw_only=True):
    """Which job: its id, or `agent/name`."""

    job: JobNamed


class JobRun(JobPath, frozen=True, kw_only=True):
    """How to fire a job now."""

    only_if_due: Annotated[
        bool, Meta(description="Only if it is due and nobody has fired it yet.")
    ] = False


class JobState(Answer, frozen=True, kw_only=True):
    """Where a job stands."""

    next_run_at: Moment | None
    last_run_at: Moment | None
    last_outcome: State | None
    last_error: str
    consecutive_failures: Number
    unfinished: Annotated[Number, Meta(description="How many of its runs wait or run just now.")]
    paused: Annotated[str, Meta(description="Why Headway has disabled it by itself, if it has.")]


class JobForm(Answer, frozen=True, kw_only=True, omit_defaults=True):
    """A job as in an export (C-12). What is at its default is left out."""

    id: str
    name: Name
    agent_id: AgentName
    enabled: bool
    schedule: ScheduleAnswer
    payload: PayloadAnswer
    delete_after_run: bool
    created_at_ms: MomentMs
    lane: LaneName | None = None
    session: Session = ISOLATED
    retries: Retries | None = None
    max_attempts: MaxAttempts | None = None
    priority: Priority | None = None
    overlap: Overlap = Overlap.QUEUE
    misfire: Misfire = Misfire.ONCE
    deliver: RouteAnswer | None = None
    gate: GateAnswer | None = None
    timeout_ms: SomeMilliseconds | None = None
    misfire_window_ms: Milliseconds = _DAY_MS
    stagger_ms: Milliseconds = 0
    declared: Annotated[
        bool, Meta(description="A program declares it in its code, and renews it at each start.")
    ] = False


class JobAnswer(JobForm, frozen=True, kw_only=True):
    """A job as in an export, and where it stands."""

    state: JobState


class JobPage(Answer, frozen=True, kw_only=True):
    """Jobs by agent and name."""

    jobs: tuple[JobAnswer, ...]
    cursor: JobCursor | None = None


class JobExport(Answer, frozen=True, kw_only=True):
    """Jobs by agent and name, to be imported again."""

    jobs: tuple[JobForm, ...]
    cursor: JobCursor | None = None


class JobRemoved(Answer, frozen=True, kw_only=True):
    """The job is gone; its log stays, under its id."""

    removed: str


class JobFired(Answer, frozen=True, kw_only=True):
    """The run that was made; null: it was to run only if due, and is not."""

    run_id: str | None


class JobsStatus(Answer, frozen=True, kw_only=True):
    """How the jobs are, all together."""

    jobs: Number
    enabled: Number
    paused: Annotated[Number, Meta(description="Those that Headway has disabled by itself.")]
    failing: Annotated[Number, Meta(description="Those whose latest run has failed.")]
    unfinished: Annotated[Number, Meta(description="How many runs of them wait or run.")]
    next_run_at: Moment | None


class ImportAnswer(Answer, frozen=True, kw_only=True):
    """The jobs that are there for it, and what needs a person's eye."""

    added: tuple[JobAnswer, ...]
    changed: tuple[JobAnswer, ...]
    problems: tuple[str, ...]


def job_answer(view: JobView) -> JobAnswer:
    form = msgspec.structs.asdict(job_form(view.job))
    return JobAnswer(**form, state=job_state(view))


def job_form(job: Job) -> JobForm:
    """What msgspec leaves out must be the very default, not only equal to it."""
    return JobForm(
        id=job.id,
        name=job.name,
        agent_id=job.agent,
        enabled=job.enabled,
        schedule=_schedule(job.schedule),
        payload=_payload(job.payload),
        delete_after_run=job.delete_after_run,
        created_at_ms=in_milliseconds(job.created_at),
        lane=job.lane,
        session=ISOLATED if job.session == ISOLATED else job.session,
        retries=job.retries,
        max_attempts=job.max_attempts,
        priority=job.priority,
        overlap=job.overlap,
        misfire=job.misfire,
        deliver=None if job.deliver is None else route_answer(job.deliver),
        gate=None if job.gate is None else _gate(job.gate),
        timeout_ms=None if job.timeout is None else in_milliseconds(job.timeout),
        misfire_window_ms=(
            _DAY_MS if job.misfire_window == DAY else in_milliseconds(job.misfire_window)
        ),
        stagger_ms=in_milliseconds(job.stagger),
        declared=job.declared,
    )


def job_state(view: JobView) -> JobState:
    return JobState(
        next_run_at=maybe_moment(view.next_run_at if view.enabled else None),
        last_run_at=maybe_moment(view.last_run_at),
        last_outcome=view.last_outcome,
        last_error=view.last_error,
        consecutive_failures=view.consecutive_failures,
        unfinished=view.unfinished,
        paused=view.paused,
    )


def _schedule(schedule: Schedule) -> ScheduleAnswer:
    match schedule:
        case At():
            return AtAnswer(at_ms=in_milliseconds(schedule.at), tz=schedule.zone)
        case Every():
            return EveryAnswer(
                every_ms=in_milliseconds(schedule.period),
                anchor_ms=in_milliseconds(schedule.anchor),
                tz=schedule.zone,
            )
        case Cron():
            return CronAnswer(expr=schedule.expression, tz=schedule.zone)
        case _:
            assert_never(schedule)


def _payload(payload: Payload) -> PayloadAnswer:
    match payload:
        case Say():
            return MessageShown(text=payload.text)
        case Ask():
            return FunctionShown(function=payload.function)
        case Execute():
            return CommandShown(
                argv=payload.argv,
                folder=payload.folder,
                environment=dict(payload.environment),
                stdin=payload.stdin,
            )
        case _:
            assert_never(payload)


def _gate(gate: Gate) -> GateAnswer:
    if gate.function:
        return GateAnswer(function=gate.function)
    return GateAnswer(command=gate.argv)
