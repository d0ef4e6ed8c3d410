"""The server itself: whether it lives, who shares its work, and its config."""

from headway.client.line import Line
from headway.wire.config import ConfigAnswer, ReloadAnswer
from headway.wire.health import Health, Readiness
from headway.wire.nodes import NodePage, NodesQuery


class ServerSide:
    """One process, and the nodes beside it."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def health(self) -> Health:
        return await self._line.ask("GET", "/healthz", Health)

    async def readiness(self) -> Readiness:
        """Whether it may be asked; if not, why."""
        return await self._line.ask("GET", "/readyz", Readiness)

    async def nodes(self, query: NodesQuery) -> NodePage:
        return await self._line.ask("GET", "/nodes", NodePage, query)

    async def config(self) -> ConfigAnswer:
        return await self._line.ask("GET", "/config", ConfigAnswer)

    async def reload(self) -> ReloadAnswer:
        """Read the config again, and apply what can be applied without a new start."""
        return await self._line.ask("POST", "/config/reload", ReloadAnswer)
