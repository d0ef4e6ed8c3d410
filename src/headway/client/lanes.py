"""Lanes on a server."""

from headway.client.line import Line
from headway.wire.lanes import (
    LaneAnswer,
    LaneCleared,
    LanePage,
    LanePath,
    LaneRequest,
    LanesQuery,
)


class Lanes:
    """What bounds how many runs go at once, on the node that is asked."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def list(self, query: LanesQuery) -> LanePage:
        return await self._line.ask("GET", "/lanes", LanePage, query)

    async def get(self, name: str) -> LaneAnswer:
        return await self._line.ask("GET", "/lanes/{name}", LaneAnswer, LanePath(name=name))

    async def set(self, lane: LaneRequest) -> LaneAnswer:
        """Change a lane, or make one; what is not said stays."""
        return await self._line.ask("PUT", "/lanes/{name}", LaneAnswer, lane)

    async def clear(self, name: str) -> LaneCleared:
        return await self._line.ask("POST", "/lanes/{name}/clear", LaneCleared, LanePath(name=name))

    async def pause(self, name: str) -> LaneAnswer:
        return await self._line.ask("POST", "/lanes/{name}/pause", LaneAnswer, LanePath(name=name))

    async def resume(self, name: str) -> LaneAnswer:
        return await self._line.ask("POST", "/lanes/{name}/resume", LaneAnswer, LanePath(name=name))
