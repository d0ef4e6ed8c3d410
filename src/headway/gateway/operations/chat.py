"""Chats: what was said in one, and how to stop it. Messages are sent by `messages.send`."""

from headway.core.session_key import session_key
from headway.gateway.access.caller import Caller
from headway.gateway.desk import Desk
from headway.gateway.operations import operation
from headway.gateway.operations import sessions as of_sessions
from headway.gateway.operations.runs import find
from headway.model.errors import InvalidInput
from headway.model.run import AgentName, Route
from headway.model.words import Scope
from headway.wire.chat import (
    ChatAborted,
    ChatAbortParams,
    ChatHistory,
    ChatHistoryParams,
    ChatRoute,
    chat_turn,
)
from headway.wire.errors import Missing
from headway.wire.sessions import SessionPath


@operation(Scope.SUBMIT)
async def abort(desk: Desk, caller: Caller, asked: ChatAbortParams) -> ChatAborted:
    """Stop a chat's oldest running turn, or with `all` everything of it, or one run wherever it is."""
    if asked.run_id is not None:
        view = await find(desk, caller, asked.run_id)
        stopped = await desk.hw.cancel(view.id)
        return ChatAborted(running=stopped.running, waiting=stopped.waiting, text=str(stopped))
    stop = of_sessions.stop_all if asked.all else of_sessions.stop
    answer = await stop(desk, caller, SessionPath(key=key_of(asked)))
    return ChatAborted(running=answer.running, waiting=answer.waiting, text=answer.text)


@operation(Scope.READ)
async def history(desk: Desk, caller: Caller, asked: ChatHistoryParams) -> ChatHistory:
    """Show what was said in a chat: each message with its reply, the newest first, a page at a time."""
    key = key_of(asked)
    page = await desk.hw.runs(
        agent=caller.agent, session=key, limit=asked.limit, cursor=asked.cursor
    )
    return ChatHistory(session=key, turns=tuple(map(chat_turn, page.runs)), cursor=page.cursor)


def key_of(asked: ChatRoute) -> str:
    """The session of a chat: as it is named, or as its place makes it."""
    if asked.session is not None:
        return asked.session
    if asked.channel is None:
        for field in ("account", "peer", "thread"):
            if getattr(asked, field):
                raise InvalidInput(field, getattr(asked, field), "given together with a channel")
        raise Missing("session")
    if asked.agent_id is None:
        raise Missing("agentId")
    route = Route(asked.channel, asked.account, asked.peer, asked.thread)
    return session_key(AgentName(asked.agent_id), route)
