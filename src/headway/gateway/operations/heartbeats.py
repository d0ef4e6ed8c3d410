"""What can be asked about heartbeats: the periodic wake-ups of agents, and their checklists."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from headway.gateway.access.caller import Caller
from headway.gateway.desk import Desk
from headway.gateway.errors import Conflict, NotThere
from headway.gateway.operations import operation
from headway.gateway.operations.pages import page_of
from headway.heartbeats import HeartbeatOptions
from headway.model.errors import InvalidInput
from headway.model.views import JobView
from headway.model.words import Scope
from headway.wire.firings import EntryPage, entry_page
from headway.wire.heartbeats import (
    ChecklistAnswer,
    ChecklistRequest,
    HeartbeatAnswer,
    HeartbeatLogQuery,
    HeartbeatPage,
    HeartbeatPath,
    HeartbeatRemoved,
    HeartbeatRequest,
    HeartbeatsQuery,
    WakeAnswer,
    WakeRequest,
    heartbeat_answer,
    heartbeat_options,
    wake_answer,
)


@operation(Scope.READ)
async def list_heartbeats(desk: Desk, caller: Caller, asked: HeartbeatsQuery) -> HeartbeatPage:
    """List which agents are woken from time to time, when next, and how it went."""
    found = [view for view in await desk.hw.heartbeats.list() if caller.sees(view.agent)]
    page, cursor = page_of(found, lambda view: view.agent, asked.limit, asked.cursor)
    return HeartbeatPage(heartbeats=tuple(map(heartbeat_answer, page)), cursor=cursor)


@operation(Scope.READ)
async def get_heartbeat(desk: Desk, caller: Caller, asked: HeartbeatPath) -> HeartbeatAnswer:
    """Show the heartbeat of an agent."""
    return heartbeat_answer(await _find(desk, caller, asked.agent_id))


@operation(Scope.CONTROL)
async def set_heartbeat(desk: Desk, caller: Caller, asked: HeartbeatRequest) -> HeartbeatAnswer:
    """Give an agent a heartbeat, or another one: what is not said is at its default (H-1).

    A checklist in a file needs the scope `admin`: whoever writes the checklist writes that file.
    """
    caller.need_agent(asked.agent_id)
    options = heartbeat_options(asked)
    if "checklist" in options:
        caller.need(Scope.ADMIN)
    view = await desk.hw.heartbeats.set(asked.agent_id, **cast("HeartbeatOptions", options))
    return heartbeat_answer(view)


@operation(Scope.CONTROL)
async def remove_heartbeat(desk: Desk, caller: Caller, asked: HeartbeatPath) -> HeartbeatRemoved:
    """Remove the heartbeat of an agent; its checklist stays."""
    await _find(desk, caller, asked.agent_id)
    await desk.hw.heartbeats.remove(asked.agent_id)
    return HeartbeatRemoved(removed=asked.agent_id)


@operation(Scope.CONTROL)
async def pause_heartbeat(desk: Desk, caller: Caller, asked: HeartbeatPath) -> HeartbeatAnswer:
    """Wake the agent no more, until its heartbeat is resumed."""
    await _find(desk, caller, asked.agent_id)
    return heartbeat_answer(await desk.hw.heartbeats.pause(asked.agent_id))


@operation(Scope.CONTROL)
async def resume_heartbeat(desk: Desk, caller: Caller, asked: HeartbeatPath) -> HeartbeatAnswer:
    """Wake the agent again from time to time."""
    await _find(desk, caller, asked.agent_id)
    return heartbeat_answer(await desk.hw.heartbeats.resume(asked.agent_id))


@operation(Scope.CONTROL)
async def wake(desk: Desk, caller: Caller, asked: WakeRequest) -> WakeAnswer:
    """Wake an agent now, beside its cadence; wakes that come together are one (H-4).

    All the same it is woken only in its hours and with something on its checklist: the log says which.
    """
    view = await _find(desk, caller, asked.agent_id)
    if not view.enabled:
        raise Conflict("its heartbeat is paused: resume it first", agentId=asked.agent_id)
    at = await desk.hw.heartbeats.wake(asked.agent_id, manual=asked.manual)
    return wake_answer(asked.agent_id, at)


@operation(Scope.READ)
async def heartbeat_log(desk: Desk, caller: Caller, asked: HeartbeatLogQuery) -> EntryPage:
    """Show what has become of an agent's wake-ups, the newest first: each skip with its one reason (H-2)."""
    await _find(desk, caller, asked.agent_id)
    page = await desk.hw.heartbeats.log(asked.agent_id, limit=asked.limit, cursor=asked.cursor)
    return entry_page(page.entries, page.cursor)


@operation(Scope.READ)
async def get_checklist(desk: Desk, caller: Caller, asked: HeartbeatPath) -> ChecklistAnswer:
    """Show what an agent looks after; null if there is no checklist."""
    _see(caller, asked.agent_id)
    with _file_trouble(asked.agent_id):
        text = await desk.hw.heartbeats.checklist(asked.agent_id)
    return ChecklistAnswer(agent_id=asked.agent_id, checklist=text)


@operation(Scope.CONTROL)
async def set_checklist(desk: Desk, caller: Caller, asked: ChecklistRequest) -> ChecklistAnswer:
    """Write an agent's checklist where it is kept: in its file, or in the store."""
    caller.need_agent(asked.agent_id)
    with _file_trouble(asked.agent_id):
        await desk.hw.heartbeats.set_checklist(asked.agent_id, asked.checklist)
    return ChecklistAnswer(agent_id=asked.agent_id, checklist=asked.checklist)


@contextmanager
def _file_trouble(agent: str) -> Iterator[None]:
    """The file of a checklist is on this machine, and may be anything."""
    try:
        yield
    except (OSError, UnicodeError) as trouble:
        why = f"the file of its checklist cannot be used: {trouble}"
        raise Conflict(why, agentId=agent) from None


async def _find(desk: Desk, caller: Caller, agent: str) -> JobView:
    _see(caller, agent)
    try:
        return await desk.hw.heartbeats.get(agent)
    except InvalidInput:
        raise NotThere("heartbeat", agent) from None


def _see(caller: Caller, agent: str) -> None:
    if not caller.sees(agent):
        raise NotThere("heartbeat", agent)
