"""What can be asked about jobs (C-13): list, get, create, update, delete, toggle, run, and how they are."""

from typing import cast

import msgspec

from headway.core.schedule import offset, zone_name
from headway.gateway.access.caller import Caller
from headway.gateway.desk import Desk
from headway.gateway.errors import Conflict
from headway.gateway.operations import operation
from headway.gateway.operations.sessions import need_place
from headway.jobs import JobFields
from headway.jobs import JobPatch as Patch
from headway.model.errors import InvalidInput, JobNotFound
from headway.model.job import ISOLATED, JOB
from headway.model.views import JobView
from headway.model.words import Scope, State
from headway.wire.base import maybe_moment
from headway.wire.firings import (
    EntryPage,
    JobLogQuery,
    LogQuery,
    NextFirings,
    NextQuery,
    entry_page,
    next_firings,
    upcoming,
)
from headway.wire.job_requests import (
    JobChoices,
    JobEdit,
    JobRequest,
    commands,
    job_fields,
    said_field,
)
from headway.wire.jobs import (
    JobAnswer,
    JobFired,
    JobPage,
    JobPath,
    JobRemoved,
    JobRun,
    JobsQuery,
    JobsStatus,
    JobsStatusQuery,
    job_answer,
)
from headway.wire.schedules import CommandShown

_AT_ONCE = 1_000
_HIDDEN = "***"
_OVER = "its only time has passed: give it a new one"


@operation(Scope.READ)
async def list_jobs(desk: Desk, caller: Caller, asked: JobsQuery) -> JobPage:
    """List jobs by agent and name, with their next firing and how they went. Heartbeats are at `/heartbeats`."""
    page = await desk.hw.jobs.list(
        agent=caller.only(asked.agent_id),
        enabled=asked.enabled,
        limit=asked.limit,
        cursor=asked.cursor,
    )
    return JobPage(jobs=tuple(shown(caller, view) for view in page.jobs), cursor=page.cursor)


@operation(Scope.READ)
async def get_job(desk: Desk, caller: Caller, asked: JobPath) -> JobAnswer:
    """Show one job."""
    return shown(caller, await find(desk, caller, asked.job))


@operation(Scope.CONTROL)
async def create_job(desk: Desk, caller: Caller, asked: JobRequest) -> JobAnswer:
    """Add a job: one of `cron`, `every`, `at`, `schedule`, and one of `text`, `command`, `function`, `payload`.

    A job with a command, or with a command for its gate, needs the scope `admin`: it makes a node run a program.
    """
    caller.need_agent(asked.agent_id)
    _may_command(caller, asked)
    await _need_session(desk, caller, asked)
    fields = job_fields(asked)
    del fields["name"], fields["agent"]
    try:
        view = await desk.hw.jobs.add(asked.name, asked.agent_id, **cast("JobFields", fields))
    except InvalidInput as wrong:
        await _refuse_taken(desk, asked.agent_id, asked.name, wrong)
        raise said_field(asked, wrong) from None
    return job_answer(view)


@operation(Scope.CONTROL)
async def edit_job(desk: Desk, caller: Caller, asked: JobEdit) -> JobAnswer:
    """Change what is named and nothing else; the time zone stays unless `tz` names another (C-13).

    null sets an option back to its default. A command needs the scope `admin`.
    """
    view = await find(desk, caller, asked.job)
    fields = job_fields(asked)
    agent = str(fields.get("agent", view.agent))
    caller.need_agent(agent)
    _may_command(caller, asked)
    await _need_session(desk, caller, asked)
    try:
        changed = await desk.hw.jobs.edit(view.id, **cast("Patch", fields))
    except InvalidInput as wrong:
        if wrong.field == "enabled":
            raise Conflict(_OVER, job=view.id) from None
        await _refuse_taken(desk, agent, str(fields.get("name", view.name)), wrong)
        raise said_field(asked, wrong) from None
    return shown(caller, changed)


@operation(Scope.CONTROL)
async def remove_job(desk: Desk, caller: Caller, asked: JobPath) -> JobRemoved:
    """Remove a job. Its log stays, under its id; firings that wait end, one that runs goes on (C-10)."""
    view = await find(desk, caller, asked.job)
    await desk.hw.jobs.remove(view.id)
    return JobRemoved(removed=view.id)


@operation(Scope.CONTROL)
async def pause_job(desk: Desk, caller: Caller, asked: JobPath) -> JobAnswer:
    """Disable a job: firings that have not started end, and no more come until it is resumed (C-10)."""
    view = await find(desk, caller, asked.job)
    return shown(caller, await desk.hw.jobs.pause(view.id))


@operation(Scope.CONTROL)
async def resume_job(desk: Desk, caller: Caller, asked: JobPath) -> JobAnswer:
    """Enable a job: its next firing is worked out from now on (C-10)."""
    view = await find(desk, caller, asked.job)
    try:
        return shown(caller, await desk.hw.jobs.resume(view.id))
    except InvalidInput:
        raise Conflict(_OVER, job=view.id) from None


@operation(Scope.CONTROL)
async def run_job(desk: Desk, caller: Caller, asked: JobRun) -> JobFired:
    """Fire a job now, paused or not; its schedule goes on as it was (C-10)."""
    view = await find(desk, caller, asked.job)
    handle = await desk.hw.jobs.run(view.id, only_if_due=asked.only_if_due)
    return JobFired(run_id=None if handle is None else handle.id)


@operation(Scope.READ)
async def job_log(desk: Desk, caller: Caller, asked: JobLogQuery) -> EntryPage:
    """Show what has become of a job's firings, the newest first (C-11). A removed job is named by its id."""
    view: JobView | None = None
    try:
        view = await find(desk, caller, asked.job)
    except JobNotFound:
        # Of a job that is gone nobody knows any more whose it was.
        if caller.agent is not None:
            raise
    page = await desk.hw.jobs.log(
        asked.job if view is None else view.id, limit=asked.limit, cursor=asked.cursor
    )
    if view is None and not page.entries:
        raise JobNotFound(asked.job)
    return entry_page(page.entries, page.cursor)


@operation(Scope.READ)
async def all_jobs_log(desk: Desk, caller: Caller, asked: LogQuery) -> EntryPage:
    """Show what has become of the firings of all jobs and heartbeats, the newest first."""
    caller.need_all_agents()
    page = await desk.hw.jobs.log(limit=asked.limit, cursor=asked.cursor)
    return entry_page(page.entries, page.cursor)


@operation(Scope.READ)
async def next_of_job(desk: Desk, caller: Caller, asked: NextQuery) -> NextFirings:
    """Show when a job fires next, and what is odd about it where the clocks change (C-4)."""
    view = await find(desk, caller, asked.job)
    zone = None if asked.tz is None else zone_name(asked.tz)
    late = offset(view.id, view.job.stagger)
    return next_firings(view.job.schedule, upcoming(view, asked.count), zone, late)


@operation(Scope.READ)
async def jobs_status(desk: Desk, caller: Caller, asked: JobsStatusQuery) -> JobsStatus:
    """Show how the jobs are, all together: how many, how many fail, and when the next one fires."""
    views: list[JobView] = []
    cursor: str | None = None
    agent = caller.only(asked.agent_id)
    while True:
        page = await desk.hw.jobs.list(agent=agent, limit=_AT_ONCE, cursor=cursor)
        views += page.jobs
        cursor = page.cursor
        if cursor is None:
            return _status(views)


async def find(desk: Desk, caller: Caller, job: str) -> JobView:
    """A job that the caller may know of; heartbeats are no jobs here."""
    view = await desk.hw.jobs.get(job)
    if not caller.sees(view.agent) or view.job.heartbeat is not None:
        raise JobNotFound(job)
    return view


def shown(caller: Caller, view: JobView) -> JobAnswer:
    """A job as this caller may see it: what a command is told in secret is for those who may give commands."""
    answer = job_answer(view)
    payload = answer.payload
    if caller.may(Scope.ADMIN) or not isinstance(payload, CommandShown):
        return answer
    return msgspec.structs.replace(answer, payload=without_secrets(payload))


def without_secrets(command: CommandShown) -> CommandShown:
    """The names of its variables without their values, and not what it reads."""
    return msgspec.structs.replace(
        command,
        environment=dict.fromkeys(command.environment, _HIDDEN),
        stdin=_HIDDEN if command.stdin else "",
    )


def _may_command(caller: Caller, asked: JobChoices) -> None:
    if commands(asked):
        caller.need(Scope.ADMIN)


async def _need_session(desk: Desk, caller: Caller, asked: JobChoices) -> None:
    if isinstance(asked.session, str) and asked.session not in {ISOLATED, JOB}:
        await need_place(desk, caller, asked.session)


async def _refuse_taken(desk: Desk, agent: str, name: str, wrong: InvalidInput) -> None:
    """A name that another job has is not wrong in itself."""
    if wrong.field != "name":
        return
    page = await desk.hw.jobs.list(agent=agent, limit=_AT_ONCE)
    while True:
        if any(view.name == name for view in page.jobs):
            raise Conflict(f"agent {agent!r} has a job {name!r} already", name=name) from None
        if page.cursor is None:
            return
        page = await desk.hw.jobs.list(agent=agent, limit=_AT_ONCE, cursor=page.cursor)


def _status(views: list[JobView]) -> JobsStatus:
    dates = [view.next_run_at for view in views if view.enabled and view.next_run_at is not None]
    return JobsStatus(
        jobs=len(views),
        enabled=sum(view.enabled for view in views),
        paused=sum(bool(view.paused) for view in views),
        failing=sum(view.last_outcome is State.FAILED for view in views),
        unfinished=sum(view.unfinished for view in views),
        next_run_at=maybe_moment(min(dates, default=None)),
    )
