"""Heartbeats, as JSON: the same over HTTP, in RPC and from `headway heartbeat --json`."""

from typing import Annotated, Literal, cast

import msgspec
from msgspec import UNSET, Meta, UnsetType

from headway.model.heartbeat import HeartbeatSettings
from headway.model.hours import ActiveHours
from headway.model.run import Route
from headway.model.settings import MAX_TEXT
from headway.model.time import Instant, instant_text, span_text
from headway.model.views import JobView
from headway.wire.base import (
    ALLOWED,
    Answer,
    Cursor,
    Limit,
    Moment,
    Request,
    maybe_length,
    maybe_moment,
)
from headway.wire.jobs import JobState, job_state
from headway.wire.names import (
    IS_TEXT,
    TEXT,
    AgentName,
    LaneName,
    Line,
    Name,
    Number,
    NumberCursor,
    SessionName,
    ShownLength,
    SomeLength,
    Zone,
)
from headway.wire.places import RouteAnswer, RouteRequest, route_answer

_TIME = "([01][0-9]|2[0-3]):[0-5][0-9]"
Hours = Annotated[
    str,
    Meta(
        description="From the first minute to the one before the last; over midnight where the end is earlier.",
        pattern=rf"^(?!(.{{5}})-\1$){_TIME}-({_TIME}|24:00)$",
        extra={ALLOWED: "two times of day that differ, such as 09:00-17:30 or 22:00-06:00"},
        examples=["08:00-22:00"],
    ),
]
AckMaxChars = Annotated[
    int,
    Meta(
        ge=0, le=1_000_000, description="What is said beside HEARTBEAT_OK is told if it is longer."
    ),
]
Session = Annotated[
    SessionName,
    Meta(description="`main`: the agent's own; `isolated`: a fresh one each time; else a key."),
]
Text = Annotated[str, Meta(max_length=MAX_TEXT, pattern=TEXT, extra=IS_TEXT)]


class HeartbeatsQuery(Request, frozen=True, kw_only=True):
    """Which heartbeats to list."""

    limit: Limit = 100
    cursor: Cursor | None = None


class HeartbeatPath(Request, frozen=True, kw_only=True):
    """Whose heartbeat."""

    agent_id: AgentName


class HeartbeatLogQuery(HeartbeatPath, frozen=True, kw_only=True):
    """Which lines of its log."""

    limit: Limit = 100
    cursor: NumberCursor | None = None


class HoursRequest(Request, frozen=True, kw_only=True):
    """The part of the day in which the agent may be woken."""

    hours: Hours
    tz: Zone | UnsetType = UNSET


class HeartbeatRequest(HeartbeatPath, frozen=True, kw_only=True):
    """The whole heartbeat of an agent: what is not said is at its default (H-1)."""

    every: Annotated[SomeLength | UnsetType, Meta(description="How often; 30m unless said.")] = (
        UNSET
    )
    prompt: Annotated[
        Text | UnsetType | None,
        Meta(
            description="What the agent is told, with its checklist below; null: a built-in text."
        ),
    ] = UNSET
    hours: HoursRequest | UnsetType | None = UNSET
    target: Annotated[
        RouteRequest | Literal["last", "none"] | UnsetType,
        Meta(description="Who is told: where its latest message came from, nobody, or a route."),
    ] = UNSET
    checklist: Annotated[
        Line | UnsetType | None,
        Meta(description="The path of HEARTBEAT.md where the agent runs; null: kept in the store."),
    ] = UNSET
    ack_max_chars: AckMaxChars | UnsetType = UNSET
    lane: LaneName | UnsetType | None = UNSET
    session: Session | UnsetType = UNSET
    timeout: SomeLength | UnsetType | None = UNSET


class HoursAnswer(Answer, frozen=True, kw_only=True):
    """The part of the day in which the agent may be woken."""

    hours: Hours
    tz: str


class HeartbeatAnswer(Answer, frozen=True, kw_only=True):
    """The heartbeat of an agent, and where it stands."""

    agent_id: AgentName
    id: str
    enabled: bool
    every: ShownLength
    hours: HoursAnswer | None
    target: RouteAnswer | Literal["last", "none"]
    checklist: str | None
    prompt: str | None
    session: Name
    lane: LaneName | None
    timeout: ShownLength | None
    ack_max_chars: Number
    created_at: Moment
    state: JobState


class HeartbeatPage(Answer, frozen=True, kw_only=True):
    """Heartbeats by agent."""

    heartbeats: tuple[HeartbeatAnswer, ...]
    cursor: Cursor | None = None


class HeartbeatRemoved(Answer, frozen=True, kw_only=True):
    """The agent has no heartbeat any more; its checklist stays."""

    removed: AgentName


class WakeRequest(HeartbeatPath, frozen=True, kw_only=True):
    """How to wake an agent."""

    manual: Annotated[
        bool,
        Meta(description="A person asks: at once. Else at least 30 s after the latest wake-up."),
    ] = True


class WakeAnswer(Answer, frozen=True, kw_only=True):
    """When the agent will be woken, if its hours and its checklist allow."""

    agent_id: AgentName
    wake_at: Annotated[
        Moment | None, Meta(description="null: its own heartbeat asks, and cannot wake it again.")
    ]


class ChecklistRequest(HeartbeatPath, frozen=True, kw_only=True):
    """A checklist to be written, where it is kept."""

    checklist: Text


class ChecklistAnswer(Answer, frozen=True, kw_only=True):
    """What an agent looks after; null: there is none."""

    agent_id: AgentName
    checklist: str | None


def heartbeat_answer(view: JobView) -> HeartbeatAnswer:
    settings = settings_of(view)
    hours, target = settings.hours, settings.target
    return HeartbeatAnswer(
        agent_id=view.agent,
        id=view.id,
        enabled=view.enabled,
        every=span_text(settings.interval),
        hours=None if hours is None else HoursAnswer(hours=hours_text(hours), tz=hours.zone),
        target=(
            route_answer(target)
            if isinstance(target, Route)
            else cast("Literal['last', 'none']", target)
        ),
        checklist=settings.checklist or None,
        prompt=settings.prompt or None,
        session=settings.session,
        lane=settings.lane,
        timeout=maybe_length(settings.timeout),
        ack_max_chars=settings.ack_max_chars,
        created_at=instant_text(view.job.created_at),
        state=job_state(view),
    )


def wake_answer(agent: str, at: Instant | None) -> WakeAnswer:
    return WakeAnswer(agent_id=agent, wake_at=maybe_moment(at))


def heartbeat_options(request: HeartbeatRequest) -> dict[str, object]:
    """What was said, as `hw.heartbeats.set` takes it."""
    said = {
        name: value
        for name, value in msgspec.structs.asdict(request).items()
        if value is not UNSET and value is not None and name != "agent_id"
    }
    hours = said.get("hours")
    if isinstance(hours, HoursRequest):
        said["hours"] = hours.hours
        if hours.tz is not UNSET:
            said["tz"] = hours.tz
    if isinstance(said.get("target"), RouteRequest):
        said["target"] = msgspec.to_builtins(said["target"])
    if not said.get("checklist", True):
        del said["checklist"]
    return said


def settings_of(view: JobView) -> HeartbeatSettings:
    assert view.job.heartbeat is not None
    return view.job.heartbeat


def hours_text(hours: ActiveHours) -> str:
    return "-".join(f"{at // 60:02}:{at % 60:02}" for at in (hours.start, hours.end))
