"""R-1 and R-5: the table of states, and what a run that is tried again keeps."""

import asyncio
from itertools import pairwise, product

import pytest

from headway import Headway, LaneSettings, State, Turn
from headway.core.lifecycle import FIRST_STATES, TRANSITIONS, advance
from headway.model.errors import IllegalTransition
from headway.model.events import RunQueuedAgain, RunStarted
from headway.model.words import Cut
from headway.testing import virtual_time
from tests.unit.runtime.worlds import Recorder, hear, moment, now_s, only, with_agents

LEGAL = {
    "pending": {"queued", "cancelled", "failed"},
    "queued": {"assigned", "pending", "cancelled", "failed"},
    "assigned": {"running", "queued", "cancelled", "failed"},
    "running": {"done", "failed", "cancelled", "queued", "pending"},
    "done": set(),
    "failed": set(),
    "cancelled": set(),
    "rejected": set(),
}


@pytest.mark.parametrize(("current", "target"), list(product(State, State)))
def test_r1_only_the_steps_of_the_table_are_legal(current: State, target: State) -> None:
    if target.value in LEGAL[current.value]:
        assert advance(current, target) is target
    else:
        with pytest.raises(IllegalTransition):
            advance(current, target)


def test_r1_the_table_names_every_state_and_where_a_run_begins() -> None:
    assert set(TRANSITIONS) == set(State)
    assert {State.PENDING, State.QUEUED, State.REJECTED} == FIRST_STATES


@virtual_time
async def test_r1_a_run_due_later_is_pending_for_every_reader() -> None:
    async with with_agents(Recorder()) as hw:
        handle = await hw.submit("a", "later", due="1h")
        await moment()
        assert await handle.state() is State.PENDING
        assert (await hw.run(handle)).state is State.PENDING
        assert [view.id for view in (await hw.runs(state="pending")).runs] == [handle.id]
        await handle.cancel()


@virtual_time
async def test_r1_a_message_in_its_debounce_window_is_pending_for_every_reader() -> None:
    async with with_agents(Recorder()) as hw:
        handle = await hw.submit("a", "wait", session="s", debounce="1s")
        await moment()
        assert await handle.state() is State.PENDING
        assert (await hw.run(handle)).state is State.PENDING
        await handle.wait()


@virtual_time
async def test_r1_readers_see_queued_running_done_in_turn() -> None:
    async with with_agents(Recorder(takes=1)) as hw:
        await hw.submit("a", "first", session="s")
        handle = await hw.submit("a", "second", session="s")
        seen = []
        for _ in range(3):
            await asyncio.sleep(0.9)
            assert (await hw.run(handle)).state is await handle.state()
            seen.append(await handle.state())
        assert seen == [State.QUEUED, State.RUNNING, State.DONE]


class Flaky:
    """An agent whose first attempt of each run fails."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int, float]] = []

    async def __call__(self, turn: Turn) -> str:
        self.seen.append((turn.text, turn.attempt, now_s()))
        await asyncio.sleep(0.1)
        if turn.attempt == 1 and turn.text.startswith("flaky"):
            raise ValueError("first try")
        return f"{turn.text} at attempt {turn.attempt}"


@virtual_time
async def test_r5_a_retried_run_keeps_its_id_and_its_place_at_the_head() -> None:
    flaky = Flaky()
    hw = Headway()
    hw.agent("a")(flaky)
    async with hw:
        heard = hear(hw)
        first = await hw.submit("a", "flaky", session="s", retries=1)
        second = await hw.submit("a", "next", session="s")
        assert await first.reply() == "flaky at attempt 2"
        await second.wait()
        assert [seen[:2] for seen in flaky.seen] == [("flaky", 1), ("flaky", 2), ("next", 1)]
        assert [event.run_id for event in only(heard, RunStarted)] == [
            first.id,
            first.id,
            second.id,
        ]
        again = only(heard, RunQueuedAgain)
        assert [event.run_id for event in again] == [first.id]
        assert "first try" in again[0].error


@virtual_time
async def test_r5_a_run_that_waits_for_its_retry_holds_no_lane_slot() -> None:
    flaky = Flaky()
    hw = Headway(lanes={"main": 1})
    hw.agent("a")(flaky)
    async with hw:
        first = await hw.submit("a", "flaky", session="s", retries=1)
        behind = await hw.submit("a", "behind", session="s")
        other = await hw.submit("a", "other", session="t")
        await other.wait()
        assert now_s() == pytest.approx(0.2), "the other session took the slot at once"
        assert await first.state() is State.PENDING
        assert await behind.state() is State.QUEUED
        await behind.wait()
        assert [seen[0] for seen in flaky.seen] == ["flaky", "other", "flaky", "behind"]


@virtual_time
async def test_r5_a_preempted_run_keeps_its_id_its_place_and_its_attempts() -> None:
    """Also X-5: a user's turn takes the slot of background work, which later goes on first."""
    background = Recorder(takes=10)
    user = Recorder(takes=1)
    hw = with_agents(background, user, lanes={"main": LaneSettings(1)})
    async with hw:
        heard = hear(hw)
        cut = await hw.submit("a", "long", session="s", priority=10, preemptible=True)
        behind = await hw.submit("a", "behind", session="s", priority=10)
        await asyncio.sleep(1)
        await hw.send("b", "hello", session="t")
        assert now_s() == pytest.approx(2.0)
        await behind.wait()
        assert background.started == ["long", "long", "behind"]
        assert [turn.attempt for turn in background.turns] == [1, 1, 1]
        assert [event.cut for event in only(heard, RunQueuedAgain)] == [Cut.PREEMPTED]
        assert (await cut.wait()).ok


@virtual_time
async def test_c9_retries_wait_2_4_and_8_seconds_each_a_quarter_more_or_less() -> None:
    starts: dict[str, list[float]] = {}
    hw = Headway()

    @hw.agent("a")
    async def agent(turn: Turn) -> str:
        starts.setdefault(turn.session, []).append(now_s())
        raise ValueError

    async with hw:
        handles = [await hw.submit("a", "x", session=f"s{n}", retries=3) for n in range(20)]
        for handle in handles:
            await handle.wait()
        waits = [[after - before for before, after in pairwise(times)] for times in starts.values()]
        for first, second, third in waits:
            assert 1.5 <= first <= 2.5
            assert 3 <= second <= 5
            assert 6 <= third <= 10
        assert len({first for first, _, _ in waits}) > 10, "they do not come back as one herd"
