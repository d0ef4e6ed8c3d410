"""Headway decides when each agent run may start.

This is what a user imports; everything else is internal and may change.
"""

from headway.core.actions import Stopped
from headway.facade import Headway
from headway.jobs import Loaded
from headway.model.errors import (
    Draining,
    HeadwayError,
    InvalidInput,
    InvariantBroken,
    JobNotFound,
    LaneCleared,
    MessageStale,
    NotFound,
    NotRunning,
    Permanent,
    QueueDropped,
    QueueFull,
    RateLimited,
    Refuse,
    Refused,
    RunCancelled,
    RunEnded,
    RunFailed,
    SessionBusy,
    StoreRefused,
    StoreUnavailable,
    TurnOver,
    Unavailable,
    WouldDeadlock,
)
from headway.model.job import Entry, Job
from headway.model.outcome import Attachment, Outcome, Reply
from headway.model.places import Delivery
from headway.model.run import QueueOptions, Route, Sender
from headway.model.settings import (
    AgentSettings,
    Budget,
    LaneSettings,
    Limits,
    QueueSettings,
    Settings,
)
from headway.model.task import Task
from headway.model.token import Token
from headway.model.views import (
    AgentLoad,
    JobView,
    JobViews,
    LaneView,
    NodeView,
    Reloaded,
    RunView,
    SessionView,
    Stats,
    Why,
)
from headway.model.words import Drop, Fired, Misfire, Mode, Overlap, Reason, Scope, Source, State
from headway.ports import Channel, LetterPage, LogPage, RunPage
from headway.runtime.handle import Handle
from headway.turn import Fence, Inbox, Message, Runner, Turn
from headway.wiring import run

__all__ = [
    "AgentLoad",
    "AgentSettings",
    "Attachment",
    "Budget",
    "Channel",
    "Delivery",
    "Draining",
    "Drop",
    "Entry",
    "Fence",
    "Fired",
    "Handle",
    "Headway",
    "HeadwayError",
    "Inbox",
    "InvalidInput",
    "InvariantBroken",
    "Job",
    "JobNotFound",
    "JobView",
    "JobViews",
    "LaneCleared",
    "LaneSettings",
    "LaneView",
    "LetterPage",
    "Limits",
    "Loaded",
    "LogPage",
    "Message",
    "MessageStale",
    "Misfire",
    "Mode",
    "NodeView",
    "NotFound",
    "NotRunning",
    "Outcome",
    "Overlap",
    "Permanent",
    "QueueDropped",
    "QueueFull",
    "QueueOptions",
    "QueueSettings",
    "RateLimited",
    "Reason",
    "Refuse",
    "Refused",
    "Reloaded",
    "Reply",
    "Route",
    "RunCancelled",
    "RunEnded",
    "RunFailed",
    "RunPage",
    "RunView",
    "Runner",
    "Scope",
    "Sender",
    "SessionBusy",
    "SessionView",
    "Settings",
    "Source",
    "State",
    "Stats",
    "Stopped",
    "StoreRefused",
    "StoreUnavailable",
    "Task",
    "Token",
    "Turn",
    "TurnOver",
    "Unavailable",
    "Why",
    "WouldDeadlock",
    "run",
]
