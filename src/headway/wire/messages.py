"""Messages from people, as JSON: from any channel, to an agent."""

import re
from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType

from headway.model.errors import InvalidInput
from headway.model.outcome import Attachment
from headway.model.run import Route, Sender
from headway.model.time import Span, span
from headway.model.words import Drop, Mode, State, SteerFallback
from headway.wire.base import Answer, Length, Moment, Request
from headway.wire.moments import When
from headway.wire.names import AgentName, LaneName, Line, Name, SessionName
from headway.wire.runs import OutcomeAnswer, RunIdText
from headway.wire.tasks import Priority

MOST_ATTACHMENTS = 100
_WAIT = re.compile(r"[0-9]{1,6}(\.[0-9]{1,3})?(ms|s|m)?")

Wait = Annotated[
    str,
    Meta(
        description="How long to wait for the outcome: seconds or a duration. At most the server's wait_limit.",
        examples=["30"],
        max_length=16,
        extra_json_schema={"pattern": f"^{_WAIT.pattern}$"},
    ),
]


class SenderRequest(Request, frozen=True):
    """Who wrote a message, and with which authority: messages of different authority are never merged."""

    id: Name
    authority: Line = ""


class AttachmentRequest(Request, frozen=True):
    """Something that travels with a text; its bytes are where `url` says."""

    name: Name
    media_type: Line = "application/octet-stream"
    url: Line = ""


class MessageRequest(Request, frozen=True):
    """What somebody wrote to an agent, in a session, or on a channel from which the session follows."""

    schema_extra: ClassVar[dict[str, object]] = {
        "dependentRequired": {name: ["channel"] for name in ("account", "peer", "thread")}
    }

    agent_id: AgentName
    text: str = ""
    session: SessionName | None = None
    channel: Name | UnsetType = UNSET
    account: Line = ""
    peer: Line = ""
    thread: Line = ""
    sender: SenderRequest | None = None
    message_id: Name | None = None
    sent_at: Moment | None = None
    attachments: Annotated[tuple[AttachmentRequest, ...], Meta(max_length=MOST_ATTACHMENTS)] = ()
    mode: Mode | None = None
    cap: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    drop: Drop | None = None
    debounce: Length | None = None
    steer_fallback: SteerFallback | None = None
    max_concurrent: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    lane: LaneName | None = None
    priority: Priority | None = None
    deadline: When | None = None
    idempotency_key: Name | None = None
    on_repeat: Literal["replay", "retry"] = "replay"
    wait: Wait | None = None


class MessageAnswer(Answer, frozen=True):
    """A message that was taken, and how it ended if that was waited for; or the reply to a chat command."""

    command: Annotated[
        bool, Meta(description="It was a chat command, such as /stop; no run was made.")
    ]
    reply: Annotated[str | None, Meta(description="The reply to a chat command.")]
    run_id: RunIdText | None
    session: SessionName | None
    state: State | None
    outcome: OutcomeAnswer | None


def read_wait(text: str) -> Span:
    """How long to wait: a plain number is seconds."""
    if not _WAIT.fullmatch(text):
        raise InvalidInput("wait", text, "seconds, or a duration: 30, 500ms, 30s or 2m")
    return span(f"{text}s" if text[-1:].isdigit() else text, "wait")


def route_of(asked: MessageRequest) -> Route | None:
    if isinstance(asked.channel, UnsetType):
        return None
    return Route(asked.channel, asked.account, asked.peer, asked.thread)


def sender_of(asked: MessageRequest) -> Sender | None:
    return None if asked.sender is None else Sender(asked.sender.id, asked.sender.authority)


def attachments_of(asked: MessageRequest) -> tuple[Attachment, ...]:
    return tuple(Attachment(one.name, one.media_type, one.url) for one in asked.attachments)
