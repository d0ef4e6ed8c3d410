"""Where each agent's latest message came from: what the target `last` of a heartbeat means (H-1).

Messages come often and the answer is asked for seldom, so it is written a moment later, once for many.
"""

import asyncio

from headway.model.errors import Unavailable
from headway.model.run import AgentName, Route
from headway.model.time import SECOND, Span
from headway.ports import Clock, Store

_PAUSE: Span = SECOND


class Routes:
    """Notes routes, and writes down those that have changed."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[AgentName, Route] = {}
        self._noted: dict[AgentName, Route] = {}
        self._woken = asyncio.Event()

    def note(self, agent: AgentName, route: Route) -> None:
        if self._known.get(agent) != route:
            self._known[agent] = self._noted[agent] = route
            self._woken.set()

    async def last(self, agent: AgentName) -> Route | None:
        """The latest that any node has seen, as far as it was written down."""
        await self.flush()
        return await self._store.last_route(agent)

    async def run(self) -> None:
        while True:
            await self._woken.wait()
            await asyncio.sleep(_PAUSE / SECOND)
            self._woken.clear()
            try:
                await self.flush()
            except Unavailable:
                self._woken.set()

    async def flush(self) -> None:
        noted, self._noted = self._noted, {}
        if not noted:
            return
        try:
            await self._store.note_routes(noted, self._clock.now())
        except BaseException:
            self._noted = noted | self._noted
            raise
