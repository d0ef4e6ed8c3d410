"""How the suites talk to a store: as the engine does, by admissions, orders, batches of actions and reads."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from inspect import isawaitable
from typing import Concatenate, ParamSpec, TypeAlias, TypeVar

from headway import Outcome, Reply, Route, Settings, State
from headway.core.actions import (
    Action,
    Finish,
    Merge,
    Release,
    Start,
)
from headway.core.merge import merged
from headway.model.places import (
    Cancel,
    Clear,
    Configure,
    Delivery,
    Holding,
    Order,
    Stop,
    StopAll,
)
from headway.model.run import (
    AgentName,
    LaneName,
    Run,
    RunId,
    SessionKey,
)
from headway.model.time import MINUTE, SECOND
from headway.model.views import NodeView, RunView
from headway.model.words import Reason, Source
from headway.ports import (
    KEPT,
    Admission,
    Clock,
    Elsewhere,
    Granted,
    RunQuery,
    Store,
)
from headway.testing import VirtualClock

Given = ParamSpec("Given")
Tests = TypeVar("Tests", bound="Suite")
Maker: TypeAlias = Callable[[Settings, Clock], Store]
"""Makes a store on the test's database, as a process that starts would; it is not opened yet."""

CHAT = Route("telegram", account="bot", peer="42", thread="7")
DONE = Outcome(State.DONE, reply=Reply("hello"))
STOPPED = Outcome(State.CANCELLED, Reason.STOPPED)
MAIN = LaneName("main")
LEASE = 30 * SECOND
ODD = "a\x00b\x1f\\u0000 \N{GRINNING FACE} \u202e'\"%s\n"
"""What a person may well send, and a database may well choke on."""


class Suite(ABC):
    """Tests of a store, whichever it is: those who derive from it say how to make the store."""

    settings = Settings(retention=60 * MINUTE, task_retention=5 * MINUTE, retained_runs=1_000)

    @abstractmethod
    def database(self) -> AbstractContextManager[Maker]:
        """A new, empty database for the block, and how a process makes its store on it."""


def over_the_store(
    test: Callable[Concatenate[Tests, "World", Given], Coroutine[object, object, None]],
) -> Callable[Concatenate[Tests, Given], None]:
    """Run an async test of the suite with an open store, on a plain event loop."""

    def run(self: Tests, /, *args: Given.args, **kwargs: Given.kwargs) -> None:
        async def main(make: Maker) -> None:
            clock = VirtualClock()
            world = World(make, self.settings, clock)
            await world.begin()
            try:
                await test(self, world, *args, **kwargs)
            finally:
                await world.store.close()

        with self.database() as make:
            asyncio.run(main(make))

    # Not functools.wraps: pytest would then look for a fixture of the name `world`.
    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def a_run(name: str, session: str, clock: Clock, fields: Mapping[str, object]) -> Run:
    """A run as intake would make it; `fields` says what is special about it."""
    said: dict[str, object] = {
        "id": RunId(name),
        "agent": AgentName("a"),
        "session": SessionKey(session),
        "source": Source.MESSAGE,
        "lane": MAIN,
        "priority": 0,
        "submitted_at": clock.now(),
        **fields,
    }
    return Run(**said)  # type: ignore[arg-type]


async def ask(store: Store, run: Run, *, retry: bool = False, claim: bool = True) -> Admission:
    """A store in this process answers at once, a database later."""
    answer = store.admit(run, retry=retry, claim=claim)
    if isawaitable(answer):
        answer = await answer
    assert not isawaitable(answer)
    return answer


async def view_of(store: Store, run: Run) -> RunView:
    view = await store.find(run.id)
    assert view is not None, f"{run.id} is not known"
    return view


class World:
    """An open store, and short ways to say what an engine would tell it."""

    def __init__(
        self, make: Maker, settings: Settings, clock: VirtualClock, name: str = "one"
    ) -> None:
        self._make = make
        self.settings = settings
        self.store = make(settings, clock)
        self.clock = clock
        self.name = name
        self.host = ""
        """The machine that it runs on."""
        self.node = 0
        self._numbers = 0
        self._tickets = 0
        self._grants: dict[RunId, Granted] = {}

    async def begin(self) -> None:
        await self.store.open()
        self.node = await self.store.enlist(self.name, LEASE, self.host)

    async def restart(self, host: str | None = None) -> None:
        """The process ends without a word, and the next one takes over what it left behind."""
        self.host = self.host if host is None else host
        await self.store.close()
        self.store = self._make(self.settings, self.clock)
        await self.begin()
        for peer in (await self.store.renew()).peers:
            assert await self.store.bury(peer)

    def run(self, session: str = "s", **fields: object) -> Run:
        self._numbers += 1
        return a_run(f"{self.name}-{self._numbers}", session, self.clock, fields)

    async def admit(self, session: str = "s", *, retry: bool = False, **fields: object) -> Run:
        """A new run that the store must take."""
        run = self.run(session, **fields)
        granted = await ask(self.store, run, retry=retry)
        assert isinstance(granted, Granted), granted
        self._grants[run.id] = granted
        return run

    async def try_admit(
        self, session: str = "s", *, retry: bool = False, **fields: object
    ) -> Admission:
        return await ask(self.store, self.run(session, **fields), retry=retry)

    async def leave(self, session: str = "s", **fields: object) -> Run:
        """A new run that is stored but not taken, in a session that nobody has."""
        run = self.run(session, **fields)
        answer = await ask(self.store, run, claim=False)
        assert isinstance(answer, Elsewhere), answer
        assert not answer.owned
        return run

    def granted(self, run: Run) -> Granted:
        return self._grants[run.id]

    def hold(self, run: Run, granted: Granted) -> None:
        """Act for this run under another grant than that of its admission."""
        self._grants[run.id] = granted

    def start(self, run: Run, attempt: int = 1, slot: int = 0, *, outlives: bool = False) -> Start:
        self._tickets += 1
        epoch = self._grants[run.id].epoch
        return Start(run, self._tickets, attempt, epoch, self.clock.now(), slot, outlives)

    def finish(self, run: Run, outcome: Outcome = DONE, attempt: int = 1) -> Finish:
        return Finish(run, outcome, attempt, self._grants[run.id].epoch, self.clock.now())

    def release(self, run: Run) -> Release:
        granted = self._grants[run.id]
        return Release(run.session, granted.epoch, granted.seq)

    def delivery(self, run: Run, number: int = 1, channel: str = "telegram") -> Delivery:
        return Delivery(
            f"{run.id}-{number}",
            Route(channel, peer="42"),
            f"text {number}",
            run.id,
            run.session,
            self._grants[run.id].epoch,
            first_at=self.clock.now(),
        )

    async def order(self, command: Stop | StopAll | Cancel | Clear | Configure) -> Granted:
        """An order to session `s` that the store must take."""
        granted = await self.try_order("o-1", command)
        assert isinstance(granted, Granted), granted
        return granted

    async def try_order(
        self,
        name: str,
        command: Stop | StopAll | Cancel | Clear | Configure,
        session: str = "s",
    ) -> Granted | Elsewhere | None:
        return await self.store.order(Order(name, SessionKey(session), command))

    async def record(self, *actions: Action) -> None:
        """Keep these, as a node that still owns all of its sessions."""
        assert await self.store.record(actions) == KEPT

    async def carry_through(self, run: Run, outcome: Outcome = DONE) -> None:
        await self.record(self.start(run))
        await self.record(self.finish(run, outcome))

    async def merge(self, parts: Sequence[Run]) -> Run:
        whole = merged(parts)
        granted = self.granted(parts[-1])
        self._grants[whole.id] = granted
        taken_over = Outcome(State.CANCELLED, Reason.MERGED, into=whole.id)
        await self.record(
            Merge(whole, granted.epoch, granted.seq),
            *(self.finish(part, taken_over, attempt=0) for part in parts),
        )
        return whole

    async def claim_all(self, *agents: str) -> dict[SessionKey, Holding]:
        """All that is ready now, by session."""
        names = [AgentName(agent) for agent in agents or ("a",)]
        claims = await self.store.claim({MAIN: 100}, names, self.clock.now())
        return {holding.session: holding for holding in claims.holdings}

    async def claim_one(self, session: str = "s") -> Holding:
        holdings = await self.claim_all()
        assert list(holdings) == [SessionKey(session)]
        return holdings[SessionKey(session)]

    async def state(self, run: Run) -> State:
        return (await view_of(self.store, run)).state

    async def listed(self, **query: object) -> list[str]:
        page = await self.store.list(RunQuery(**query))  # type: ignore[arg-type]
        return [view.id for view in page.runs]

    async def myself(self) -> NodeView:
        (view,) = [view for view in await self.store.nodes() if view.id == self.node]
        return view
