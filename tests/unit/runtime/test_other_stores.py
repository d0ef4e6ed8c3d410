"""How the engine behaves on a store that takes its time, loses sessions, or breaks: what databases will do."""

import asyncio
from collections.abc import Awaitable, Sequence

import pytest

from headway import Headway, NotRunning, Outcome, Reason, State, Turn
from headway.core.actions import Action, Start, session_of
from headway.events import NodeBroken
from headway.model.run import AgentName, Run, SessionKey
from headway.model.settings import MAIN, AgentSettings, Settings
from headway.ports import Admission, Clock
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

    def admit(self, run: Run, retry: bool = False) -> Awaitable[Admission]:  # type: ignore[override]
        async def later() -> Admission:
            async with self.gate:
                await asyncio.sleep(0.1)
                return MemoryStore.admit(self, run, retry)

        return later()

    async def record(self, actions: Sequence[Action]) -> Sequence[SessionKey]:
        await asyncio.sleep(0.1)
        return await super().record(actions)


class LosingStore(MemoryStore):
    """Says that a session is another node's as soon as a run of it is to start."""

    lost = SessionKey("lost")

    async def record(self, actions: Sequence[Action]) -> Sequence[SessionKey]:
        starts = [action for action in actions if isinstance(action, Start)]
        await super().record([a for a in actions if session_of(a) != self.lost])
        return [self.lost] if any(start.run.session == self.lost for start in starts) else []


class BreakingStore(MemoryStore):
    async def record(self, actions: Sequence[Action]) -> Sequence[SessionKey]:
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
async def test_d4_a_session_that_the_store_says_is_lost_does_not_go_on_here() -> None:
    started: list[str] = []
    engine = await engine_on(LosingStore, started)
    kept = await engine.delegate(0, "a", "kept", {"session": "mine"})
    lost = [await engine.delegate(0, "a", name, {"session": "lost"}) for name in ("one", "two")]
    assert (await kept.wait()).text == "KEPT"
    for handle in lost:
        assert (await handle.wait()).reason is Reason.ORPHANED
    assert started == ["kept"]
    assert "lost" not in engine.kernel.stage.sessions
    assert not engine.kernel.stage.runs
    assert engine.kernel.stage.floor.lanes[MAIN].in_use == 0
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
