"""Answers of the wire, turned back into the library's own views: what people read is drawn from them."""

from datetime import datetime
from typing import assert_never

import msgspec

from headway.core.heartbeat import read_hours
from headway.core.jobs import HEARTBEAT
from headway.core.schedule import next_firing
from headway.model.heartbeat import HeartbeatSettings
from headway.model.job import Job
from headway.model.payload import Ask, Execute, Gate, Payload, Say
from headway.model.run import AgentName, JobId, LaneName, Route
from headway.model.schedule import UTC_ZONE, At, Cron, Every, Schedule
from headway.model.time import MILLISECOND, Instant, Span, instant_of, span
from headway.model.views import JobView
from headway.wire.heartbeats import HeartbeatAnswer
from headway.wire.jobs import JobAnswer, JobForm, JobState
from headway.wire.places import RouteAnswer
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


def instant(moment: str) -> Instant:
    """The instant of a moment of the wire."""
    return instant_of(datetime.fromisoformat(moment), "moment")


def maybe_instant(moment: str | None) -> Instant | None:
    return None if moment is None else instant(moment)


def job_view(answer: JobAnswer) -> JobView:
    view = _view(job_of(answer), answer.state)
    return msgspec.structs.replace(view, next_run_at=_exact(view))


def job_of(form: JobForm) -> Job:
    return Job(
        JobId(form.id),
        form.name,
        AgentName(form.agent_id),
        _schedule(form.schedule),
        _payload(form.payload),
        _span(form.created_at_ms),
        enabled=form.enabled,
        lane=None if form.lane is None else LaneName(form.lane),
        session=form.session,
        timeout=None if form.timeout_ms is None else _span(form.timeout_ms),
        retries=form.retries,
        max_attempts=form.max_attempts,
        priority=form.priority,
        overlap=form.overlap,
        misfire=form.misfire,
        misfire_window=_span(form.misfire_window_ms),
        stagger=_span(form.stagger_ms),
        deliver=None if form.deliver is None else _route(form.deliver),
        delete_after_run=form.delete_after_run,
        gate=None if form.gate is None else _gate(form.gate),
        declared=form.declared,
    )


def heartbeat_view(answer: HeartbeatAnswer) -> JobView:
    """A heartbeat is a job of its agent; what it asks is in its settings."""
    hours = answer.hours
    settings = HeartbeatSettings(
        interval=span(answer.every, "every"),
        prompt=answer.prompt or "",
        hours=None if hours is None else read_hours(hours.hours, hours.tz),
        target=answer.target if isinstance(answer.target, str) else _route(answer.target),
        checklist=answer.checklist or "",
        ack_max_chars=answer.ack_max_chars,
        lane=None if answer.lane is None else LaneName(answer.lane),
        session=answer.session,
        timeout=None if answer.timeout is None else span(answer.timeout, "timeout"),
    )
    created_at = instant(answer.created_at)
    zone = UTC_ZONE if hours is None else hours.tz
    job = Job(
        JobId(answer.id),
        HEARTBEAT,
        AgentName(answer.agent_id),
        Every(settings.interval, created_at, zone),
        Say(settings.prompt),
        created_at,
        enabled=answer.enabled,
        heartbeat=settings,
    )
    return _view(job, answer.state)


def _view(job: Job, state: JobState) -> JobView:
    return JobView(
        job,
        next_run_at=maybe_instant(state.next_run_at),
        last_run_at=maybe_instant(state.last_run_at),
        last_outcome=state.last_outcome,
        last_error=state.last_error,
        consecutive_failures=state.consecutive_failures,
        unfinished=state.unfinished,
        paused=state.paused,
    )


def _exact(view: JobView) -> Instant | None:
    """The next firing by its schedule: the wire cuts it to the millisecond, so that it would come once more."""
    told, job = view.next_run_at, view.job
    if told is None:
        return None
    exact = next_firing(job.schedule, job.stagger, job.id, told - 1)
    return told if exact is None or exact - told >= MILLISECOND else exact


def _span(milliseconds: float) -> Span:
    return round(milliseconds * 1_000)


def _schedule(schedule: ScheduleAnswer) -> Schedule:
    match schedule:
        case AtAnswer():
            return At(_span(schedule.at_ms), schedule.tz)
        case EveryAnswer():
            return Every(_span(schedule.every_ms), _span(schedule.anchor_ms), schedule.tz)
        case CronAnswer():
            return Cron(schedule.expr, schedule.tz)
        case _:
            assert_never(schedule)


def _payload(payload: PayloadAnswer) -> Payload:
    match payload:
        case MessageShown():
            return Say(payload.text)
        case FunctionShown():
            return Ask(payload.function)
        case CommandShown():
            environment = tuple(payload.environment.items())
            return Execute(payload.argv, payload.folder, environment, payload.stdin)
        case _:
            assert_never(payload)


def _route(route: RouteAnswer) -> Route:
    return Route(route.channel, route.account, route.to, route.thread)


def _gate(gate: GateAnswer) -> Gate:
    return Gate(function=gate.function or "", argv=gate.command or ())
