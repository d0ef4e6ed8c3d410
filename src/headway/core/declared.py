"""Jobs that a program declares in its code: made at its first start, renewed where the code has changed since."""

from collections.abc import Mapping

import msgspec

from headway.core.heartbeat import cadence
from headway.core.jobs import HEARTBEAT, OPTIONS, patched
from headway.model.errors import InvalidInput
from headway.model.heartbeat import HeartbeatSettings
from headway.model.job import ISOLATED, Job
from headway.model.payload import Say
from headway.model.run import AgentName, JobId
from headway.model.time import Instant
from headway.model.words import Misfire, Overlap

_MAIN = "main"


def redeclared(job: Job, fields: Mapping[str, object], now: Instant, zone: str) -> Job:
    """The job as the code has it by now: what the code no longer says is as if it never had.

    Whether it is enabled is not the code's business: who has paused it wants it paused after a restart too. Nor
    is the past: an `at` that has come stays as it was.
    """
    unsaid: dict[str, object] = dict.fromkeys(OPTIONS)
    said = {name: value for name, value in fields.items() if value is not None}
    patch = {**unsaid, "delete_after_run": None, "tz": zone, **said, "enabled": job.enabled}
    try:
        changed = patched(job, patch, now)
    except InvalidInput as wrong:
        if wrong.field == "at":
            return job
        raise
    return msgspec.structs.replace(changed, declared=True)


def heartbeat_job(
    job_id: JobId, agent: AgentName, settings: HeartbeatSettings, now: Instant
) -> Job:
    """The heartbeat of an agent: a job with a look before it, and an ear for what is worth telling (H-1)."""
    session = settings.session
    if session == _MAIN:
        session = f"agent:{agent}:{_MAIN}"
    return Job(
        job_id,
        HEARTBEAT,
        agent,
        cadence(agent, settings),
        Say(""),
        now,
        lane=settings.lane,
        session=session or ISOLATED,
        timeout=settings.timeout,
        overlap=Overlap.SKIP,
        misfire=Misfire.SKIP,
        heartbeat=settings,
        declared=True,
    )
