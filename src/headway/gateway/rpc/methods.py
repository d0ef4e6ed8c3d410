"""The table of methods: what each is called, and which operation it is."""

from headway.core.request import QUEUE_OPTIONS
from headway.gateway.access.caller import Caller
from headway.gateway.operations import (
    chat,
    health,
    heartbeats,
    jobs,
    lanes,
    machine,
    sessions,
    stats,
    tasks,
    workers,
)
from headway.gateway.operations.chat import key_of
from headway.gateway.rpc.bound import BOUND
from headway.gateway.rpc.connection import Connection, Methods
from headway.gateway.rpc.discover import discovery
from headway.gateway.rpc.method import adapted, method, of_operation
from headway.model.words import Scope
from headway.wire.calls import (
    CronRunsParams,
    CronToggleParams,
    CronUpdateParams,
    HeartbeatToggleParams,
    QueueSetParams,
)
from headway.wire.chat import ChatRoute
from headway.wire.firings import EntryPage, JobLogQuery, LogQuery
from headway.wire.health import NothingAsked
from headway.wire.heartbeats import HeartbeatAnswer, HeartbeatPath
from headway.wire.job_requests import JobEdit
from headway.wire.jobs import JobAnswer, JobPath
from headway.wire.rpc import DiscoverAnswer
from headway.wire.sessions import QueueRequest, SessionAnswer, SessionPath


def _edit(params: CronUpdateParams) -> JobEdit:
    said = {name: getattr(params.patch, name) for name in params.patch.__struct_fields__}
    return JobEdit(job=params.job, **said)


def _session(params: ChatRoute) -> SessionPath:
    return SessionPath(key=key_of(params))


@method("cron.toggle", Scope.CONTROL)
async def _toggle_job(line: Connection, caller: Caller, params: CronToggleParams) -> JobAnswer:
    """Enable a job, or disable it: firings that have not started end then (C-10)."""
    toggle = jobs.resume_job if params.enabled else jobs.pause_job
    return await toggle(line.desk, caller, JobPath(job=params.job))


@method("heartbeat.toggle", Scope.CONTROL)
async def _toggle_heartbeat(
    line: Connection, caller: Caller, params: HeartbeatToggleParams
) -> HeartbeatAnswer:
    """Let an agent's heartbeat beat again, or pause it."""
    toggle = heartbeats.resume_heartbeat if params.enabled else heartbeats.pause_heartbeat
    return await toggle(line.desk, caller, HeartbeatPath(agent_id=params.agent_id))


@method("cron.runs", Scope.READ)
async def _runs_of_jobs(line: Connection, caller: Caller, params: CronRunsParams) -> EntryPage:
    """Show what has become of a job's firings, or of all jobs', the newest first (C-11)."""
    if params.job is None:
        every = LogQuery(limit=params.limit, cursor=params.cursor)
        return await jobs.all_jobs_log(line.desk, caller, every)
    one = JobLogQuery(job=params.job, limit=params.limit, cursor=params.cursor)
    return await jobs.job_log(line.desk, caller, one)


@method("queue.set", Scope.CONTROL)
async def _set_queue(line: Connection, caller: Caller, params: QueueSetParams) -> SessionAnswer:
    """Give a session queue options of its own, as `/queue …` does, or with `reset` none (S-5)."""
    key = key_of(params)
    if params.reset:
        await sessions.reset_queue(line.desk, caller, SessionPath(key=key))
    said = {name: getattr(params, name) for name in QUEUE_OPTIONS}
    return await sessions.set_queue(line.desk, caller, QueueRequest(key=key, **said))


@method("rpc.discover", None)
async def _discover(
    line: Connection,  # noqa: ARG001
    caller: Caller,  # noqa: ARG001
    params: NothingAsked,  # noqa: ARG001
) -> DiscoverAnswer:
    """Show all methods and frames, each with its JSON Schemas."""
    return discovery(METHODS.values())


_TABLE = (
    of_operation("cron.list", jobs.list_jobs),
    of_operation("cron.get", jobs.get_job),
    of_operation("cron.create", jobs.create_job),
    adapted("cron.update", CronUpdateParams, jobs.edit_job, _edit),
    of_operation("cron.delete", jobs.remove_job),
    _toggle_job,
    of_operation("cron.run", jobs.run_job),
    _runs_of_jobs,
    of_operation("cron.status", jobs.jobs_status),
    of_operation("chat.abort", chat.abort),
    of_operation("chat.history", chat.history),
    adapted("queue.status", ChatRoute, sessions.get_session, _session),
    _set_queue,
    adapted("queue.clear", ChatRoute, sessions.clear_session, _session),
    of_operation("lanes.list", lanes.list_lanes),
    of_operation("lanes.set", lanes.set_lane),
    of_operation("lanes.clear", lanes.clear_lane),
    of_operation("lanes.pause", lanes.pause_lane),
    of_operation("lanes.resume", lanes.resume_lane),
    of_operation("tasks.submit", tasks.submit),
    of_operation("tasks.batch", tasks.submit_batch),
    of_operation("tasks.list", tasks.list_tasks),
    of_operation("tasks.get", tasks.get),
    of_operation("tasks.cancel", tasks.cancel),
    of_operation("tasks.stats", stats.scheduler_stats),
    of_operation("heartbeat.list", heartbeats.list_heartbeats),
    of_operation("heartbeat.get", heartbeats.get_heartbeat),
    of_operation("heartbeat.set", heartbeats.set_heartbeat),
    of_operation("heartbeat.delete", heartbeats.remove_heartbeat),
    _toggle_heartbeat,
    of_operation("heartbeat.wake", heartbeats.wake),
    of_operation("heartbeat.log", heartbeats.heartbeat_log),
    of_operation("wake", heartbeats.wake),
    of_operation("workers.list", workers.list_workers),
    of_operation("machine.get", machine.get_machines),
    of_operation("health", health.readiness),
    _discover,
)

METHODS: Methods = {each.name: each for each in (*BOUND, *_TABLE)}  # type: ignore[misc]
