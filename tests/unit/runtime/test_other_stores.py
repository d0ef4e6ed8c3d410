"""How the engine behaves on a store that takes its time, loses sessions, or breaks: what databases will do."""

import asyncio
from collections.abc import Awaitable, Sequence

import pytest

from headway import Headway, NotRunning, Outcome, Settings, State, Turn, Unavailable
from headway.core.actions import Action
from headway.events import NodeBroken
from headway.model.run import AgentName, Run, SessionKey
from headway.model.settings import AgentSettings
from headway.model.time import SECOND
from headway.ports import Admission, Clock, Recorded
from headway.runners.function import FunctionRunner
from headway.runtime.clock import clock_for
from headway.runtime.engine import Engine
from headway.store.memory import MemoryStore
from headway.testing import virtual_time


class SlowStore(MemoryStore):
    """Answers after a while and in order, as a database does."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        super().__init__(settings, clock)
        self.gate = asyncio.Lock()

    def admit(  # type: ignore[override]
        self, run: Run, retry: bool = False, claim: bool = True
    ) -> Awaitable[Admission]:
        async def later() -> Admission:
            async with self.gate:
                await asyncio.sleep(0.1)
                return MemoryStore.admit(self, run, retry, claim)

        return later()

    async def record(self, actions: Sequence[Action]) -> Recorded:
        await asyncio.sleep(0.1)
        return await super().record(actions)


class AwayStore(MemoryStore):
    """Keeps what it has, and one day takes nothing more."""

    durable = True
    away = False

    async def record(self, actions: Sequence[Action]) -> Recorded:
        if self.away:
            raise Unavailable("made up")
        return await super().record(actions)


class BreakingStore(MemoryStore):
    async def record(self, actions: Sequence[Action]) -> Recorded:
        raise RuntimeError("disk full")


async def engine_on(store: type[MemoryStore], started: list[str]) -> Engine:
    settings = Settings()
    clock = clock_for(asyncio.get_running_loop())
    engine = Engine(settings, store(settings, clock), clock)

    async def agent(turn: Turn) -> str:
        started.append(turn.text)
        await asyncio.sleep(1)
        return turn.text.upper()

    engine.register(AgentName("a"), FunctionRunner(agent), AgentSettings())
    await engine.start()
    return engine


@virtual_time
async def test_l5_r2_closing_waits_until_the_last_outcome_is_stored() -> None:
    engine = await engine_on(SlowStore, [])
    handle = await engine.delegate(0, "a", "x", {"session": "s"})
    await engine.close()
    assert (await handle.wait()).text == "X"
    assert (await engine.find(handle.id)).state is State.DONE


@virtual_time
async def test_s1_order_holds_on_a_store_that_answers_late() -> None:
    started: list[str] = []
    engine = await engine_on(SlowStore, started)
    asked = [engine.delegate(0, "a", str(n), {"session": "s"}) for n in range(5)]
    handles = await asyncio.gather(*asked)
    for handle in handles:
        await handle.wait()
    assert started == ["0", "1", "2", "3", "4"]
    await engine.close()


@virtual_time
async def test_a_store_that_breaks_is_heard_of_and_leaves_nobody_waiting() -> None:
    engine = await engine_on(BreakingStore, [])
    heard = engine.bus.listen()
    handle = await engine.delegate(0, "a", "x", {"session": "s"})
    outcome: Outcome = await handle.wait()
    assert outcome.state is State.FAILED
    assert "disk full" in outcome.error
    assert [event async for event in heard if isinstance(event, NodeBroken)]
    with pytest.raises(NotRunning):
        await engine.delegate(0, "a", "y", {"session": "s"})
    with pytest.raises(NotRunning):
        await engine.stop_all(SessionKey("s"))
    await engine.close()


@virtual_time
async def test_l4_a_wait_in_one_headway_is_not_booked_on_a_turn_of_another() -> None:
    one, other = Headway(lanes={"main": 1}), Headway(lanes={"main": 1})
    most = 0
    working = 0

    @one.agent("a")
    async def asks(turn: Turn) -> str:
        return await other.send("b", "x", session=turn.session)

    @other.agent("b")
    async def works(turn: Turn) -> str:
        nonlocal most, working
        working += 1
        most = max(most, working)
        await asyncio.sleep(1)
        working -= 1
        return "done"

    async with one, other:
        busy = await other.submit("b", "first", session="s")
        assert await one.send("a", "x", session="s") == "done"
        await busy.wait()
    assert most == 1


@virtual_time
async def test_l5_a_store_that_is_away_is_waited_for_once() -> None:
    """Who has drained in vain until others have taken everything over does not wait as long again to close."""
    loop = asyncio.get_running_loop()
    engine = await engine_on(AwayStore, [])
    handle = await engine.delegate(0, "a", "x", {"session": "s"})
    assert isinstance(engine.store, AwayStore)
    engine.store.away = True
    settings = engine.settings
    patience_s = (settings.lease + settings.cancel_grace) / SECOND
    began_s = loop.time()
    await engine.drain(5 * SECOND)
    assert loop.time() - began_s == pytest.approx(5 + patience_s)
    await engine.close(0)
    assert loop.time() - began_s < 5 + patience_s + 1
    assert handle.outcome is not None
