"""Chats over RPC: what is asked about them, and what comes of a message that was sent."""

from typing import Annotated

from msgspec import Meta

from headway.model.views import RunView
from headway.model.words import Source, State
from headway.wire.base import Answer, Cursor, Limit, Moment, Request, maybe_moment, moment
from headway.wire.names import AgentName, Line, Name, Number, SessionName
from headway.wire.places import AttachmentAnswer, attachment_answers
from headway.wire.runs import OutcomeAnswer, RunIdText, outcome_answer


class ChatRoute(Request, frozen=True, kw_only=True):
    """A chat: by its session, or by the agent and where the other side is."""

    session: Annotated[SessionName | None, Meta(description="The session's key.")] = None
    agent_id: AgentName | None = None
    channel: Name | None = None
    account: Line = ""
    peer: Line = ""
    thread: Line = ""


class ChatAbortParams(ChatRoute, frozen=True, kw_only=True):
    """What to stop: one run, a chat's oldest running turn, or all of a chat."""

    run_id: RunIdText | None = None
    all: Annotated[bool, Meta(description="All that runs and waits there, as /stopall does.")] = (
        False
    )


class ChatAborted(Answer, frozen=True, kw_only=True):
    """What a stop has reached."""

    running: Annotated[Number, Meta(description="Attempts that were told to end.")]
    waiting: Annotated[Number, Meta(description="Runs that had not begun, and ended.")]
    text: Annotated[
        str, Meta(description="The same for people.", examples=["2 running and 3 waiting stopped"])
    ]


class ChatHistoryParams(ChatRoute, frozen=True, kw_only=True):
    """Which chat, and how much of it."""

    limit: Limit = 50
    cursor: Cursor | None = None


class ChatTurn(Answer, frozen=True, kw_only=True):
    """A message and what became of it."""

    run_id: RunIdText
    agent_id: AgentName
    source: Source
    created_at: Annotated[Moment, Meta(description="When it was taken in.")]
    sent_at: Moment | None
    sender: Annotated[str | None, Meta(description="Who wrote it, where that was said.")]
    text: str
    attachments: tuple[AttachmentAnswer, ...]
    state: State
    started_at: Moment | None
    finished_at: Moment | None
    outcome: Annotated[
        OutcomeAnswer | None,
        Meta(description="With the reply. Of a merged message `into` says which run has it."),
    ]


class ChatHistory(Answer, frozen=True, kw_only=True):
    """A page of a chat, the newest turn first."""

    session: SessionName
    turns: tuple[ChatTurn, ...]
    cursor: Cursor | None


class ChatTyping(Answer, frozen=True, kw_only=True):
    """An agent has begun to work on a message that this connection sent, or has stopped."""

    run_id: RunIdText
    session: SessionName
    typing: bool


class ChatOutput(Answer, frozen=True, kw_only=True):
    """A piece of what an agent emits while it works."""

    run_id: RunIdText
    session: SessionName
    text: str


class ChatReply(Answer, frozen=True, kw_only=True):
    """How a message ended that this connection sent: with the agent's reply, or without."""

    run_id: RunIdText
    session: SessionName
    outcome: OutcomeAnswer
    into: Annotated[
        str | None, Meta(description="The run that took this one over, whose outcome this is.")
    ]
    echo: Annotated[
        bool, Meta(description="Several messages became one turn, and another of them tells this.")
    ]


def chat_turn(view: RunView) -> ChatTurn:
    run = view.run
    return ChatTurn(
        run_id=run.id,
        agent_id=run.agent,
        source=run.source,
        created_at=moment(run.submitted_at),
        sent_at=maybe_moment(run.sent_at),
        sender=None if run.sender is None else run.sender.id,
        text=run.text,
        attachments=attachment_answers(run.attachments),
        state=view.state,
        started_at=maybe_moment(view.started_at),
        finished_at=maybe_moment(view.finished_at),
        outcome=None if view.outcome is None else outcome_answer(view.outcome),
    )
