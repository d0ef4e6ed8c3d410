"""R-2: one outcome for every run, told to every waiter; whoever cancels is told the truth."""

import asyncio
import random

from headway import Headway, State, Turn
from headway.model.events import RunFinished
from headway.testing import virtual_time
from tests.unit.runtime.worlds import Recorder, ending, hear, only, with_agents


async def _jitter(rng: random.Random, most: int) -> None:
    for _ in range(rng.randrange(most)):
        await asyncio.sleep(0)


@virtual_time
async def test_r2_the_answer_to_a_cancel_agrees_with_the_outcome_a_thousand_times() -> None:
    rng = random.Random(20250615)
    hw = Headway()

    @hw.agent("a")
    async def agent(turn: Turn) -> str:
        await _jitter(rng, 8)
        return "done"

    async with hw:
        heard = hear(hw)
        tally = {State.DONE: 0, State.CANCELLED: 0}
        for number in range(1000):
            handle = await hw.submit("a", "x", session=f"s{number % 7}")
            await _jitter(rng, 12)
            stopped = await handle.cancel()
            outcome = await handle.wait()
            tally[outcome.state] += 1
            assert stopped.nothing == (outcome.state is State.DONE), number
            assert (await hw.run(handle)).outcome == outcome
        assert min(tally.values()) > 50, "both sides won often enough to mean something"
        assert len(only(heard, RunFinished)) == 1000


@virtual_time
async def test_r2_a_session_stopped_while_its_turns_end_counts_each_run_once() -> None:
    rng = random.Random(4711)
    hw = Headway()

    @hw.agent("a")
    async def agent(turn: Turn) -> str:
        await _jitter(rng, 6)
        return "done"

    async with hw:
        for _ in range(200):
            handles = [await hw.submit("a", str(n), session="s") for n in range(4)]
            await _jitter(rng, 40)
            stopped = await hw.stop_all("s")
            states = [(await handle.wait()).state for handle in handles]
            assert states.count(State.CANCELLED) == stopped.running + stopped.waiting
            assert hw.sessions() == {}


@virtual_time
async def test_r2_every_one_of_many_waiters_is_told() -> None:
    async with with_agents(Recorder()) as hw:
        handle = await hw.submit("a", "x")
        told = await asyncio.gather(*(handle.wait() for _ in range(100)))
        assert {ending(outcome) for outcome in told} == {"done"}
        assert await handle.wait() == told[0], "late ones too"


@virtual_time
async def test_r2_a_waiter_that_gives_up_disturbs_neither_the_run_nor_the_others() -> None:
    recorder = Recorder(takes=5)
    async with with_agents(recorder) as hw:
        handle = await hw.submit("a", "x")
        hasty = asyncio.wait_for(handle.wait(), 1)
        before, gave_up, after = await asyncio.gather(
            handle.reply(), hasty, handle.reply(), return_exceptions=True
        )
        assert isinstance(gave_up, TimeoutError)
        assert (before, after) == ("re: x", "re: x")
        assert recorder.cancelled == []
