"""What RPC methods take where that differs from the routes: no path names anything here."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from headway.model.words import Drop, Mode, SteerFallback
from headway.wire.base import Cursor, Length, Limit, Request
from headway.wire.chat import ChatRoute
from headway.wire.heartbeats import HeartbeatPath
from headway.wire.job_requests import JobPatch
from headway.wire.jobs import JobNamed, JobPath
from headway.wire.sessions import Cap, MaxConcurrent


class CronUpdateParams(JobPath, frozen=True, kw_only=True):
    """Which job, and what to change of it."""

    patch: JobPatch


class CronToggleParams(JobPath, frozen=True, kw_only=True):
    """Which job, and whether it fires."""

    enabled: bool


class CronRunsParams(Request, frozen=True, kw_only=True):
    """Which lines of which log."""

    job: Annotated[JobNamed | None, Meta(description="Without one: the log of all jobs.")] = None
    limit: Limit = 100
    cursor: Cursor | None = None


class HeartbeatToggleParams(HeartbeatPath, frozen=True, kw_only=True):
    """Which agent's heartbeat, and whether it beats."""

    enabled: bool


class QueueSetParams(ChatRoute, frozen=True, kw_only=True):
    """Which session, and its queue options. What is not said stays as it is."""

    reset: Annotated[
        bool, Meta(description="First follow the wider settings again, as /queue reset does.")
    ] = False
    mode: Mode | UnsetType = UNSET
    cap: Cap | UnsetType = UNSET
    drop: Drop | UnsetType = UNSET
    debounce: Length | UnsetType = UNSET
    steer_fallback: SteerFallback | UnsetType = UNSET
    max_concurrent: MaxConcurrent | UnsetType = UNSET
