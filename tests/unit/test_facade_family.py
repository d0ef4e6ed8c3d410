"""What hangs together: trees of runs, and runs that go on where a worker died (X-3, W-3)."""

import asyncio

import pytest

from headway import CannotResume, Headway, NotFound, Reason, State, Turn
from headway.events import ResumeExhausted
from headway.model.errors import WorkerLost
from headway.model.settings import AgentSettings
from headway.model.time import MINUTE
from headway.testing import virtual_time
from tests.unit.runtime.worlds import now_s


class Fragile:
    """A runner whose worker dies after a second, as often as it is told."""

    def __init__(self, deaths: int) -> None:
        self.deaths = deaths
        self.turns: list[Turn] = []
        self.began: list[float] = []

    async def run(self, turn: Turn) -> str:
        self.turns.append(turn)
        self.began.append(now_s())
        await asyncio.sleep(1)
        if len(self.turns) <= self.deaths:
            raise WorkerLost("its process is gone", {"exit": -9})
        return "done"


def fragile(deaths: int) -> tuple[Headway, Fragile]:
    hw = Headway("memory://")
    runner = Fragile(deaths)
    hw.add_agent("coder", runner, AgentSettings(max_attempts=4, resume_after=MINUTE))
    return hw, runner


@virtual_time
async def test_w3_a_dead_worker_is_resumed_at_most_three_times_a_minute_apart() -> None:
    hw, runner = fragile(deaths=9)
    async with hw:
        events = hw.events()
        outcome = await (await hw.submit("coder", "build", session="s")).wait()
        assert (outcome.state, outcome.reason) == (State.FAILED, Reason.ORPHANED)
        assert (outcome.code, outcome.details) == ("worker_lost", {"exit": -9})
        await asyncio.sleep(3600)
        events.close()
        exhausted = [event async for event in events if isinstance(event, ResumeExhausted)]
    assert [turn.attempt for turn in runner.turns] == [1, 2, 3, 4]
    pauses = [
        later - earlier for earlier, later in zip(runner.began, runner.began[1:], strict=False)
    ]
    assert pauses == pytest.approx([60, 60, 60])
    assert [event.attempts for event in exhausted] == [4]


@virtual_time
async def test_w3_one_that_is_resumed_and_lives_is_done() -> None:
    hw, runner = fragile(deaths=1)
    async with hw:
        assert await hw.send("coder", "build", session="s") == "done"
    assert len(runner.turns) == 2


@virtual_time
async def test_w3_a_manual_resume_is_a_new_run_with_a_new_budget() -> None:
    hw, runner = fragile(deaths=5)
    async with hw:
        first = await hw.submit("coder", "build", session="s", priority=3)
        await first.wait()
        again = await hw.resume(first)
        assert (await again.wait()).text == "done"
        run = (await hw.run(again)).run
    assert (run.resumes, run.session, run.text, run.priority) == (first.id, "s", "build", 3)
    assert [turn.attempt for turn in runner.turns] == [1, 2, 3, 4, 1, 2]
    assert [turn.run.resumes for turn in runner.turns][-2:] == [first.id, first.id]


@virtual_time
async def test_w3_what_cannot_be_resumed_is_refused_and_says_why() -> None:
    hw, _ = fragile(deaths=0)

    @hw.agent("plain")
    async def plain(turn: Turn) -> str:
        raise ValueError(turn.text)

    async with hw:
        running = await hw.submit("coder", "build")
        with pytest.raises(CannotResume, match="not ended"):
            await hw.resume(running)
        done = await running.wait()
        assert done.ok
        with pytest.raises(CannotResume, match="it is done"):
            await hw.resume(running)
        ended = await hw.submit("plain")
        await ended.wait()
        with pytest.raises(CannotResume, match="'plain' has no `resume` command"):
            await hw.resume(ended)
        with pytest.raises(NotFound):
            await hw.resume("nothing")


@virtual_time
async def test_x3_the_tree_of_a_run_shows_all_that_it_started() -> None:
    hw = Headway("memory://")

    @hw.agent("lead")
    async def lead(turn: Turn) -> str:
        await turn.delegate("helper", "one")
        await turn.submit("helper", "two", lane="team")
        return "led"

    @hw.agent("helper")
    async def helper(turn: Turn) -> str:
        if turn.text == "one":
            await turn.delegate("helper", "below one")
        return turn.text

    async with hw:
        top = await hw.submit("lead", "go", session="s")
        await top.wait()
        await hw.submit("helper", "another tree")
        tree = await hw.tree(top)
        below = await hw.tree(tree.branches[1].view.id)
        with pytest.raises(NotFound):
            await hw.tree("nothing")
    drawn = [(one.depth, one.view.run.agent, one.view.run.text) for one in tree.branches]
    assert drawn == [
        (0, "lead", "go"),
        (1, "helper", "one"),
        (2, "helper", "below one"),
        (1, "helper", "two"),
    ]
    assert tree.branches[3].view.run.lane == "team"
    assert [(one.depth, one.view.run.text) for one in below.branches] == [
        (0, "one"),
        (1, "below one"),
    ]
    assert not tree.more
