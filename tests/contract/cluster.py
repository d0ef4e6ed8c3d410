"""Several nodes on one database, each with a store of its own, as an engine would use it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Concatenate, ParamSpec, TypeVar

from headway import Settings
from headway.model.places import Holding
from headway.model.run import Run, SessionKey
from headway.model.views import NodeView
from headway.ports import Admission, Granted, Hint, Peer, Renewal
from headway.store.postgres import PostgresStore
from headway.testing import VirtualClock
from tests.contract.world import Maker, Suite, World, ask

Given = ParamSpec("Given")
Tests = TypeVar("Tests", bound=Suite)

_HINT_WITHIN_S = 60.0


def over_the_nodes(
    test: Callable[Concatenate[Tests, "Cluster", Given], Coroutine[object, object, None]],
) -> Callable[Concatenate[Tests, Given], None]:
    """Run an async test of the suite with an empty database, on a plain event loop."""

    def run(self: Tests, /, *args: Given.args, **kwargs: Given.kwargs) -> None:
        async def main(make: Maker) -> None:
            cluster = Cluster(make, self.settings)
            try:
                await test(self, cluster, *args, **kwargs)
            finally:
                await cluster.close()

        with self.database() as make:
            asyncio.run(main(make))

    # Not functools.wraps: pytest would then look for a fixture of the name `cluster`.
    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


class Node(World):
    """One node: its store, what it was told, and short ways to say what its engine would."""

    def __init__(self, make: Maker, settings: Settings, clock: VirtualClock, name: str) -> None:
        super().__init__(make, settings, clock, name)
        self.hints: list[Hint] = []
        self._told = asyncio.Event()

    def hear(self, hint: Hint) -> None:
        self.hints.append(hint)
        self._told.set()

    async def begin(self) -> None:
        await self.store.open(self.hear)
        self.node = await self.store.enlist(self.name, self.settings.lease, self.host)
        if isinstance(self.store, PostgresStore):
            async with asyncio.timeout(_HINT_WITHIN_S):
                await self.store._hints.working.wait()

    async def heard(self, hint: Hint) -> None:
        """Wait for this hint; all that was heard until then is forgotten."""
        async with asyncio.timeout(_HINT_WITHIN_S):
            while hint not in self.hints:
                self._told.clear()
                await self._told.wait()
        self.hints.clear()

    async def send(
        self, session: str = "s", *, claim: bool = True, retry: bool = False, **fields: object
    ) -> tuple[Run, Admission]:
        """A new run, and whatever the store says to it."""
        run = self.run(session, **fields)
        answer = await ask(self.store, run, retry=retry, claim=claim)
        if isinstance(answer, Granted):
            self.hold(run, answer)
        return run, answer

    def take(self, holding: Holding) -> None:
        """Act for what was claimed."""
        for place in holding.places:
            self.hold(place.run, Granted(holding.epoch, holding.seen))

    async def take_over(self, session: str = "s") -> Holding:
        holding = await self.claim_one(session)
        self.take(holding)
        return holding

    async def news(self, session: str, seen: int) -> Holding:
        (holding,) = await self.store.news({SessionKey(session): seen})
        return holding

    async def renew(self) -> Renewal:
        return await self.store.renew()

    async def sees(self, other: World) -> Peer:
        (peer,) = [peer for peer in (await self.renew()).peers if peer.id == other.node]
        return peer

    async def bury(self, other: World) -> None:
        """Declare a node dead that does not renew."""
        assert await self.store.bury(await self.sees(other))

    async def view(self, other: World) -> NodeView:
        (view,) = [view for view in await self.store.nodes() if view.id == other.node]
        return view


class Cluster:
    """A database, and the nodes that were started on it."""

    def __init__(self, make: Maker, settings: Settings) -> None:
        self._make = make
        self._settings = settings
        self._open: list[World] = []
        self._nodes: list[Node] = []
        self.clock = VirtualClock()

    async def node(self, name: str, host: str = "", settings: Settings | None = None) -> Node:
        """A node that is open, enlisted and knows the others, as they know it."""
        node = Node(self._make, settings or self._settings, self.clock, name)
        node.host = host
        self._open.append(node)
        await node.begin()
        self._nodes.append(node)
        for other in self._nodes:
            await other.renew()
        node.hints.clear()
        return node

    async def pair(self) -> tuple[Node, Node]:
        return await self.node("a"), await self.node("b")

    async def guest(self, name: str = "guest") -> Node:
        """A process that is no node: it adds and reads, and decides for nothing."""
        guest = Node(self._make, self._settings, self.clock, name)
        self._open.append(guest)
        await guest.store.open(guest.hear)
        return guest

    async def close(self) -> None:
        for world in self._open:
            await world.store.close()
