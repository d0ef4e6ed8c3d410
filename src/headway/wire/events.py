"""The stream of events, as it is asked for."""

from typing import Annotated

from msgspec import Meta

from headway.model.events import CATALOGUE
from headway.model.telling import kind_of
from headway.wire.base import ALLOWED, Answer, Request
from headway.wire.names import AgentName, SessionName
from headway.wire.runs import RunIdText

EventName = Annotated[
    str,
    Meta(
        description="A kind of event, from the catalogue.",
        min_length=1,
        max_length=1_000,
        examples=["RunFinished"],
        extra_json_schema={"enum": sorted(map(kind_of, CATALOGUE))},
    ),
]
EventNames = Annotated[
    tuple[EventName, ...], Meta(max_length=64, description="Only these kinds of events.")
]
EventId = Annotated[
    str,
    Meta(
        description="The id of an event of this server's stream.",
        pattern=r"^[0-9a-z]{1,32}-[0-9]{1,18}$",
        extra={ALLOWED: "the id of an event, such as 1k3f9a2x-42"},
        max_length=64,
        examples=["1k3f9a2x-42"],
    ),
]
SeenId = Annotated[
    str,
    Meta(
        description="An id that was seen last; one of another stream counts as one that is not remembered.",
        min_length=1,
        max_length=512,
    ),
]


class EventChoice(Request, frozen=True, kw_only=True):
    """Which events to tell. Each thing that is said narrows it."""

    agent_id: Annotated[AgentName | None, Meta(description="Only what names this agent.")] = None
    session: Annotated[SessionName | None, Meta(description="Only what names this session.")] = None
    run_id: Annotated[RunIdText | None, Meta(description="Only what names this run.")] = None
    after: Annotated[
        EventId | None,
        Meta(
            description="Begin behind this event. If that is not remembered any more, an EventsMissed comes first."
        ),
    ] = None
    last: Annotated[
        int,
        Meta(ge=0, le=1_000, description="Begin with so many of the latest events that match."),
    ] = 0


class EventQuery(EventChoice, frozen=True, kw_only=True):
    """Which events to stream, and for how long."""

    event: EventNames = ()
    follow: Annotated[
        bool, Meta(description="false: only what has happened by now; the stream then ends.")
    ] = True
    last_event_id: Annotated[
        SeenId | None,
        Meta(description="What a client has seen last that comes back; it goes before `after`."),
    ] = None


class SubscribeParams(EventChoice, frozen=True, kw_only=True):
    """Which events to send over this connection. A second subscription takes the place of the first."""

    events: EventNames = ()


class Subscribed(Answer, frozen=True, kw_only=True):
    """From now on events come as frames {event, id, data}."""

    after: Annotated[EventId, Meta(description="Frames come of the events behind this one.")]


class Unsubscribed(Answer, frozen=True, kw_only=True):
    """No more events come."""

    subscribed: Annotated[bool, Meta(description="Whether there was a subscription.")]
