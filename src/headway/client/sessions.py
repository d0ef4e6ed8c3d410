"""Sessions on a server."""

from headway.client.line import Line
from headway.wire.sessions import (
    QueueRequest,
    SessionAnswer,
    SessionCleared,
    SessionPage,
    SessionPath,
    SessionsQuery,
    StoppedAnswer,
)


class Sessions:
    """What orders runs: looked at, configured, cleared and stopped."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def list(self, query: SessionsQuery) -> SessionPage:
        """Those that have work on the node that is asked."""
        return await self._line.ask("GET", "/sessions", SessionPage, query)

    async def get(self, key: str) -> SessionAnswer:
        return await self._line.ask("GET", "/sessions/{key}", SessionAnswer, SessionPath(key=key))

    async def set_queue(self, options: QueueRequest) -> SessionAnswer:
        """Give it queue options of its own; what is not said stays."""
        return await self._line.ask("PATCH", "/sessions/{key}/queue", SessionAnswer, options)

    async def reset_queue(self, key: str) -> SessionAnswer:
        path = SessionPath(key=key)
        return await self._line.ask("DELETE", "/sessions/{key}/queue", SessionAnswer, path)

    async def clear(self, key: str) -> SessionCleared:
        path = SessionPath(key=key)
        return await self._line.ask("POST", "/sessions/{key}/clear", SessionCleared, path)

    async def stop(self, key: str) -> StoppedAnswer:
        """As `/stop` does: the oldest running turn (S-9)."""
        path = SessionPath(key=key)
        return await self._line.ask("POST", "/sessions/{key}/stop", StoppedAnswer, path)

    async def stop_all(self, key: str) -> StoppedAnswer:
        """As `/stopall` does: all of it (S-9)."""
        path = SessionPath(key=key)
        return await self._line.ask("POST", "/sessions/{key}/stopall", StoppedAnswer, path)
