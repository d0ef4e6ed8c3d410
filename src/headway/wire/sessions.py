"""Sessions and their queue options, as JSON."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from headway.core.actions import Stopped
from headway.core.request import QUEUE_OPTIONS
from headway.model.run import QueueOptions
from headway.model.views import SessionView
from headway.model.words import Drop, Mode, SteerFallback
from headway.wire.base import Answer, Cursor, Length, Limit, Request, maybe_length
from headway.wire.names import AgentName, Number, SessionName, ShownLength

MOST_RUNS = 1_000
"""So many ids of each kind are shown; `GET /runs?session=` pages through all."""

Cap = Annotated[int, Meta(ge=1, le=100_000)]
MaxConcurrent = Annotated[int, Meta(ge=1, le=10_000)]
RunIds = Annotated[tuple[str, ...], Meta(max_length=MOST_RUNS)]


class SessionsQuery(Request, frozen=True, kw_only=True):
    """Which sessions to list."""

    agent_id: AgentName | None = None
    limit: Limit = 100
    cursor: Cursor | None = None


class SessionPath(Request, frozen=True, kw_only=True):
    """Which session."""

    key: SessionName


class QueueRequest(SessionPath, frozen=True, kw_only=True):
    """Options of a session's queue (S-5). What is not said stays as it is."""

    mode: Mode | UnsetType = UNSET
    cap: Cap | UnsetType = UNSET
    drop: Drop | UnsetType = UNSET
    debounce: Length | UnsetType = UNSET
    steer_fallback: SteerFallback | UnsetType = UNSET
    max_concurrent: MaxConcurrent | UnsetType = UNSET


class QueueAnswer(Answer, frozen=True, kw_only=True):
    """What is set for this session alone; null: the wider settings hold."""

    mode: Mode | None = None
    cap: Cap | None = None
    drop: Drop | None = None
    debounce: ShownLength | None = None
    steer_fallback: SteerFallback | None = None
    max_concurrent: MaxConcurrent | None = None


class SessionSummary(Answer, frozen=True, kw_only=True):
    """How much is in a session."""

    key: SessionName
    running_count: Number
    waiting_count: Number
    debouncing_count: Annotated[
        Number, Meta(description="Messages that may still be joined by more (S-7).")
    ]
    agents: Annotated[tuple[AgentName, ...], Meta(description="Whose unfinished runs are in it.")]


class SessionPage(Answer, frozen=True, kw_only=True):
    """Sessions that have work on this node, by key."""

    sessions: tuple[SessionSummary, ...]
    cursor: Cursor | None = None


class SessionAnswer(SessionSummary, frozen=True, kw_only=True):
    """What a session is at, whichever node decides for it. One that nothing is known of is idle."""

    running: Annotated[RunIds, Meta(description="Run ids, the oldest first; at most 1000.")]
    waiting: Annotated[RunIds, Meta(description="Run ids in their order; at most 1000.")]
    debouncing: RunIds
    queue: QueueAnswer


class StoppedAnswer(Answer, frozen=True, kw_only=True):
    """What a stop has reached."""

    key: SessionName
    running: Annotated[Number, Meta(description="Attempts that were told to end.")]
    waiting: Annotated[Number, Meta(description="Runs that had not begun, and ended.")]
    text: Annotated[
        str, Meta(description="The same for people.", examples=["2 running and 3 waiting stopped"])
    ]


class SessionCleared(Answer, frozen=True, kw_only=True):
    """How many waiting messages ended `cancelled/cleared`."""

    key: SessionName
    cleared: Number


def session_summary(view: SessionView) -> SessionSummary:
    return SessionSummary(
        key=view.key,
        running_count=len(view.running),
        waiting_count=len(view.waiting),
        debouncing_count=len(view.debouncing),
        agents=view.agents,
    )


def session_answer(view: SessionView) -> SessionAnswer:
    return SessionAnswer(
        key=view.key,
        running_count=len(view.running),
        waiting_count=len(view.waiting),
        debouncing_count=len(view.debouncing),
        agents=view.agents,
        running=view.running[:MOST_RUNS],
        waiting=view.waiting[:MOST_RUNS],
        debouncing=view.debouncing[:MOST_RUNS],
        queue=queue_answer(view.options),
    )


def queue_answer(options: QueueOptions | None) -> QueueAnswer:
    if options is None:
        return QueueAnswer()
    return QueueAnswer(
        mode=options.mode,
        cap=options.cap,
        drop=options.drop,
        debounce=maybe_length(options.debounce),
        steer_fallback=options.steer_fallback,
        max_concurrent=options.max_concurrent,
    )


def queue_choices(request: QueueRequest) -> Mapping[str, object]:
    """What was said, by the names that the library uses."""
    said = msgspec.structs.asdict(request)
    return {name: said[name] for name in QUEUE_OPTIONS if said[name] is not UNSET}


def stopped_answer(key: str, stopped: Stopped) -> StoppedAnswer:
    return StoppedAnswer(
        key=key, running=stopped.running, waiting=stopped.waiting, text=str(stopped)
    )
