"""Heartbeats on a server: the same methods as `hw.heartbeats`, with the answers of the wire."""

from collections.abc import Mapping

import msgspec

from headway.client.line import Line
from headway.core.job_fields import read_route
from headway.model.errors import InvalidInput
from headway.wire.errors import invalid
from headway.wire.firings import EntryPage
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
)
from headway.wire.places import RouteRequest


class Heartbeats:
    """The periodic wake-ups of agents."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def list(self, *, limit: int = 100, cursor: str | None = None) -> HeartbeatPage:
        query = HeartbeatsQuery(limit=limit, cursor=cursor)
        return await self._line.ask("GET", "/heartbeats", HeartbeatPage, query)

    async def get(self, agent: str) -> HeartbeatAnswer:
        path = HeartbeatPath(agent_id=agent)
        return await self._line.ask("GET", "/heartbeats/{agentId}", HeartbeatAnswer, path)

    async def set(self, agent: str, **options: object) -> HeartbeatAnswer:
        """Give an agent a heartbeat, or another one; what is not said is at its default."""
        asked = _request(agent, options)
        return await self._line.ask("PUT", "/heartbeats/{agentId}", HeartbeatAnswer, asked)

    async def pause(self, agent: str) -> HeartbeatAnswer:
        path = HeartbeatPath(agent_id=agent)
        return await self._line.ask("POST", "/heartbeats/{agentId}/pause", HeartbeatAnswer, path)

    async def resume(self, agent: str) -> HeartbeatAnswer:
        path = HeartbeatPath(agent_id=agent)
        return await self._line.ask("POST", "/heartbeats/{agentId}/resume", HeartbeatAnswer, path)

    async def remove(self, agent: str) -> HeartbeatRemoved:
        path = HeartbeatPath(agent_id=agent)
        return await self._line.ask("DELETE", "/heartbeats/{agentId}", HeartbeatRemoved, path)

    async def wake(self, agent: str, *, manual: bool = True) -> WakeAnswer:
        asked = WakeRequest(agent_id=agent, manual=manual)
        return await self._line.ask("POST", "/heartbeats/{agentId}/wake", WakeAnswer, asked)

    async def log(self, agent: str, *, limit: int = 100, cursor: str | None = None) -> EntryPage:
        query = HeartbeatLogQuery(agent_id=agent, limit=limit, cursor=cursor)
        return await self._line.ask("GET", "/heartbeats/{agentId}/log", EntryPage, query)

    async def checklist(self, agent: str) -> ChecklistAnswer:
        path = HeartbeatPath(agent_id=agent)
        return await self._line.ask("GET", "/heartbeats/{agentId}/checklist", ChecklistAnswer, path)

    async def set_checklist(self, agent: str, text: str) -> ChecklistAnswer:
        asked = ChecklistRequest(agent_id=agent, checklist=text)
        return await self._line.ask(
            "PUT", "/heartbeats/{agentId}/checklist", ChecklistAnswer, asked
        )


def _request(agent: str, options: Mapping[str, object]) -> HeartbeatRequest:
    """What was said as the library takes it, as the wire has it."""
    said = {name: value for name, value in options.items() if value is not None}
    tz = said.pop("tz", None)
    if "hours" in said:
        said["hours"] = {"hours": said["hours"], **({} if tz is None else {"tz": tz})}
    elif tz is not None:
        raise InvalidInput("tz", tz, "given together with `hours`, which it is for")
    if not isinstance(said.get("target", ""), str):
        route = read_route(said["target"], "target")
        said["target"] = RouteRequest(
            channel=route.channel, to=route.peer, thread=route.thread, account=route.account
        )
    names = {field.name: field.encode_name for field in msgspec.structs.fields(HeartbeatRequest)}
    plain = {names.get(name, name): msgspec.to_builtins(value) for name, value in said.items()}
    plain["agentId"] = agent
    try:
        return msgspec.convert(plain, HeartbeatRequest)
    except msgspec.ValidationError as wrong:
        told = invalid(wrong, HeartbeatRequest, plain)
        if told.field == "hours.hours":
            # Who calls has said no more than `hours`.
            told = InvalidInput("hours", told.value, told.allowed)
        raise told from None
