"""What can be asked about sessions: what they are at, their queue options, and their end."""

from typing import cast

from headway.core.session_key import is_named_after, is_of_a_place
from headway.facade import QueueChoices
from headway.gateway.access.caller import Caller
from headway.gateway.desk import Desk
from headway.gateway.errors import Forbidden, NotThere
from headway.gateway.operations import operation
from headway.gateway.operations.pages import page_of
from headway.model.views import SessionView
from headway.model.words import Scope
from headway.wire.sessions import (
    QueueRequest,
    SessionAnswer,
    SessionCleared,
    SessionPage,
    SessionPath,
    SessionsQuery,
    StoppedAnswer,
    queue_choices,
    session_answer,
    session_summary,
    stopped_answer,
)


@operation(Scope.READ)
async def list_sessions(desk: Desk, caller: Caller, asked: SessionsQuery) -> SessionPage:
    """List the sessions that have work on this node, by key.

    Idle ones are not listed: they cost nothing and are nowhere.
    """
    agent = caller.only(asked.agent_id)
    views = desk.hw.sessions().values()
    if caller.agent is not None:
        found = [view for view in views if view.agents == (caller.agent,)]
    else:
        found = [view for view in views if agent is None or agent in view.agents]
    page, cursor = page_of(found, lambda view: view.key, asked.limit, asked.cursor)
    return SessionPage(sessions=tuple(map(session_summary, page)), cursor=cursor)


@operation(Scope.READ)
async def get_session(desk: Desk, caller: Caller, asked: SessionPath) -> SessionAnswer:
    """Show what a session is at: what runs, what waits, and its own queue options.

    Whichever node decides for it is asked. A session that nothing is known of is idle, not missing.
    """
    view = await desk.hw.session(asked.key)
    await _see(caller, view, desk)
    return session_answer(view)


@operation(Scope.CONTROL)
async def set_queue(desk: Desk, caller: Caller, asked: QueueRequest) -> SessionAnswer:
    """Give a session queue options of its own, as `/queue …` does (S-5). What is not said stays."""
    await need_session(desk, caller, asked.key)
    said = queue_choices(asked)
    if said:
        await desk.hw.change_queue(asked.key, **cast("QueueChoices", said))
    return session_answer(await desk.hw.session(asked.key))


@operation(Scope.CONTROL)
async def reset_queue(desk: Desk, caller: Caller, asked: SessionPath) -> SessionAnswer:
    """Let a session follow the wider settings again, as `/queue reset` does."""
    await need_session(desk, caller, asked.key)
    await desk.hw.set_queue(asked.key)
    return session_answer(await desk.hw.session(asked.key))


@operation(Scope.SUBMIT)
async def clear_session(desk: Desk, caller: Caller, asked: SessionPath) -> SessionCleared:
    """End all messages that wait in a session, as `/queue clear` does; what runs goes on."""
    await need_session(desk, caller, asked.key)
    return SessionCleared(key=asked.key, cleared=await desk.hw.clear_session(asked.key))


@operation(Scope.SUBMIT)
async def stop(desk: Desk, caller: Caller, asked: SessionPath) -> StoppedAnswer:
    """Stop the oldest running turn of a session, as `/stop` does (S-9)."""
    await need_session(desk, caller, asked.key)
    return stopped_answer(asked.key, await desk.hw.stop(asked.key))


@operation(Scope.SUBMIT)
async def stop_all(desk: Desk, caller: Caller, asked: SessionPath) -> StoppedAnswer:
    """End all of a session, as `/stopall` does: what was sent before it and arrives later is stale (S-9)."""
    await need_session(desk, caller, asked.key)
    return stopped_answer(asked.key, await desk.hw.stop_all(asked.key))


async def need_session(desk: Desk, caller: Caller, key: str, *, unused: bool = False) -> None:
    """Refuse who would see or touch runs of an agent that is not his; with `unused`, a new session will do."""
    if caller.agent is not None:
        await _see(caller, await desk.hw.session(key), desk, unused=unused)


async def need_place(desk: Desk, caller: Caller, key: str | None) -> None:
    """Refuse who would put runs among those of an agent that is not his.

    In a session runs wait for each other, and a message may end all of them. A session that is named after his
    agent is his, and so is one that nobody has used.
    """
    if caller.agent is not None and key is not None and not is_named_after(caller.agent, key):
        await need_session(desk, caller, key, unused=True)


async def _see(caller: Caller, view: SessionView, desk: Desk, *, unused: bool = False) -> None:
    """By the runs in it a session is an agent's; an idle one by its last run, or by its key.

    With `unused`, also one that nobody has used and that is named after no agent.
    """
    agent = caller.agent
    if agent is None or view.agents == (agent,):
        return
    if agent in view.agents:
        raise Forbidden(f"runs of other agents than {agent!r} are in this session too")
    if view.agents or not await _is_free(desk, agent, view.key, unused=unused):
        raise NotThere("session", view.key)


async def _is_free(desk: Desk, agent: str, key: str, *, unused: bool) -> bool:
    """Whether an idle session is this agent's."""
    page = await desk.hw.runs(session=key, limit=1)
    if page.runs:
        return page.runs[0].run.agent == agent
    return is_named_after(agent, key) or (unused and not is_of_a_place(key))
