"""Starts stored ahead of their slots: what begins when, and who is told (D-2, L-2)."""

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar

import pytest

from headway import Handle, LaneSettings, Settings, State, Turn
from headway.core.actions import Action, Start
from headway.core.lanes import Lane
from headway.model import events
from headway.model.run import AgentName, Run, SessionKey
from headway.model.settings import MAIN, AgentSettings
from headway.model.time import SECOND
from headway.model.words import Rule
from headway.ports import Clock, Recorded
from headway.runners.function import FunctionRunner
from headway.runtime.clock import clock_for
from headway.runtime.engine import Engine
from headway.store.memory import MemoryStore
from headway.testing import virtual_time
from tests.unit.runtime.worlds import Recorder, ending, moment, now_s, only

user = ContextVar("user", default="nobody")
WRITE_S = 0.01
TURN_S = 0.1


class SlowStore(MemoryStore):
    """A store in memory that takes its time for each batch, as a shared one does."""

    durable = True

    def __init__(self, settings: Settings, clock: Clock) -> None:
        super().__init__(settings, clock)
        self.write_s = WRITE_S
        self.kept: list[Action] = []

    async def record(self, actions: Sequence[Action]) -> Recorded:
        await asyncio.sleep(self.write_s)
        self.kept += actions
        return await super().record(actions)

    def has_start_of(self, text: str) -> bool:
        return any(type(action) is Start and action.run.text == text for action in self.kept)


class LooksAfterWorkers:
    def __init__(self) -> None:
        self.told: list[tuple[str, float]] = []

    def began(self, start: Start) -> None:
        self.told.append((start.run.text, now_s()))

    def ended(self, run: Run, attempt: int, outcome: object = None) -> None:
        pass

    def abandoned(self) -> None:
        pass


class World:
    """An engine with one slot on a slow store."""

    def __init__(self, **spans: float) -> None:
        clock = self.clock = clock_for(asyncio.get_running_loop())
        settings = Settings(lanes={MAIN: LaneSettings(1)})
        self.store = SlowStore(settings, clock)
        self.engine = Engine(settings, self.store, clock)
        self.recorder = Recorder(TURN_S, spans=spans)
        self.engine.register(AgentName("a"), FunctionRunner(self.recorder), AgentSettings())
        self.heard: list[events.Event] = []

    async def start(self) -> "World":
        await self.engine.start()
        self.engine.bus.tap(self.heard.append)
        return self

    @property
    def lane(self) -> Lane:
        return self.engine.kernel.stage.floor.lanes[MAIN]

    async def submit(self, text: str, session: str = "") -> Handle:
        return await self.engine.delegate(0, "a", text, {"session": session or text})

    def start_ahead(self, count: int) -> None:
        self.engine.kernel.set_ahead(MAIN, count, self.clock.now())
        self.engine.attempts.wake()

    async def one_ahead(self) -> tuple[Handle, Handle]:
        """One run has the slot, and the start of another one is stored."""
        first, second = await self.submit("first"), await self.submit("second")
        await asyncio.sleep(2 * WRITE_S)
        self.start_ahead(1)
        await asyncio.sleep(2 * WRITE_S)
        assert self.store.has_start_of("second")
        assert [live.run.text for live in self.lane.next_up.values()] == ["second"]
        return first, second


@virtual_time
async def test_l2_a_run_that_was_started_ahead_begins_in_the_instant_in_which_its_slot_is_free() -> (
    None
):
    world = await World().start()
    first, second = await world.one_ahead()
    assert world.recorder.started == ["first"]
    assert await world.engine.state(second.id) is State.ASSIGNED
    assert (await world.engine.why(second.id)).rule is Rule.LANE_FULL
    assert (await first.wait()).ok
    assert (await second.wait()).ok
    one, two = world.recorder.started_at
    assert two == pytest.approx(one + TURN_S)
    assert world.recorder.most == 1
    assert [turn.attempt for turn in world.recorder.turns] == [1, 1]
    await world.engine.close()


@virtual_time
async def test_d2_one_that_gets_its_slot_before_its_start_is_stored_begins_when_it_is() -> None:
    world = await World(first=3 * WRITE_S).start()
    first, second = await world.submit("first"), await world.submit("second")
    await asyncio.sleep(2 * WRITE_S)
    world.store.write_s = 5 * WRITE_S
    world.start_ahead(1)
    asked_at = now_s()
    await moment()
    world.store.write_s = WRITE_S
    assert (await second.wait()).ok
    assert first.outcome is not None
    assert world.recorder.started_at[1] == pytest.approx(asked_at + 5 * WRITE_S)
    assert world.recorder.started == ["first", "second"], "once"
    await world.engine.close()


@virtual_time
async def test_all_are_told_that_a_turn_begins_when_it_does() -> None:
    world = await World().start()
    workers = world.engine._parts.carrier.workers = LooksAfterWorkers()
    first, second = await world.one_ahead()
    assert [text for text, _ in workers.told] == ["first"]
    assert [event.run_id for event in only(world.heard, events.RunStarted)] == [first.id]
    await second.wait()
    assert workers.told[1:] == [("second", world.recorder.started_at[1])]
    one, two = only(world.heard, events.RunStarted)
    assert two.run_id == second.id
    assert (two.at - one.at, two.waited) == (round((WRITE_S + TURN_S) * SECOND),) * 2
    await world.engine.close()


@virtual_time
async def test_a_turn_sees_nothing_of_the_context_of_the_turn_whose_slot_it_got() -> None:
    world = await World().start()
    seen: list[str] = []

    async def agent(turn: Turn) -> str:
        seen.append(user.get())
        user.set(turn.text)
        return await world.recorder(turn)

    world.engine.register(AgentName("a"), FunctionRunner(agent), AgentSettings())
    _, second = await world.one_ahead()
    await second.wait()
    assert seen == ["nobody", "nobody"]
    await world.engine.close()


@virtual_time
async def test_s3_a_stop_ends_a_run_that_waits_for_its_slot_and_its_agent_is_never_called() -> None:
    world = await World().start()
    first, second = await world.one_ahead()
    assert str(await world.engine.stop(SessionKey("second"))) == "1 running stopped"
    assert ending(await second.wait()) == "cancelled/stopped"
    assert first.outcome is None
    assert not world.lane.next_up
    third = await world.submit("third")
    assert (await third.wait()).ok
    assert world.recorder.started == ["first", "third"]
    assert [event.run_id for event in only(world.heard, events.RunStarted)] == [first.id, third.id]
    await world.engine.close()
    assert world.lane.in_use == 0


@virtual_time
async def test_s3_a_stop_that_comes_before_the_start_is_stored_counts_too() -> None:
    world = await World().start()
    await world.submit("first")
    second = await world.submit("second")
    await asyncio.sleep(2 * WRITE_S)
    world.start_ahead(1)
    await world.engine.cancel(second.id)
    assert ending(await second.wait()) == "cancelled/stopped"
    await world.engine.close()
    assert world.recorder.started == ["first"]
    assert world.lane.in_use == 0


@virtual_time
async def test_r5_a_run_that_waits_too_long_for_its_slot_stands_in_line_again() -> None:
    world = await World(first=2.0).start()
    _, second = await world.one_ahead()
    third = await world.submit("third", session="second")
    await asyncio.sleep(0.5)
    assert not world.lane.next_up
    assert await world.engine.state(second.id) is State.QUEUED
    assert (await second.wait()).ok
    assert (await third.wait()).ok
    assert world.recorder.started == ["first", "second", "third"]
    assert [turn.attempt for turn in world.recorder.turns] == [1, 1, 1]
    await world.engine.close()


@virtual_time
async def test_the_pace_of_short_runs_starts_them_ahead_by_itself() -> None:
    world = await World().start()
    world.recorder.takes = WRITE_S / 10
    handles = [await world.submit(f"m{number}") for number in range(300)]
    most = 0
    for handle in handles:
        await handle.wait()
        most = max(most, len(world.lane.next_up))
    assert most > 1
    assert world.recorder.most == 1
    assert now_s() < 300 * WRITE_S / 2, "one write for each would take all of that"
    assert [turn.attempt for turn in world.recorder.turns] == [1] * 300
    await world.engine.close()


@virtual_time
async def test_a_close_leaves_nothing_of_what_was_started_ahead() -> None:
    world = await World(first=30.0).start()
    first, second = await world.one_ahead()
    await world.engine.close(0)
    assert [event.running for event in only(world.heard, events.NodeDraining)] == [1]
    assert world.recorder.started == ["first"]
    assert len(world.engine.attempts) == 0
    assert not world.engine.kernel.stage.attempts
    assert (ending(first.outcome), ending(second.outcome)) == ("cancelled/draining",) * 2
