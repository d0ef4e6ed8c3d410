"""Thousands of short runs on real stores, whose starts are stored ahead of their slots (S-1, L-2)."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from headway import Handle, Headway, LaneSettings, Turn
from headway.model.events import AttemptCancelled
from headway.model.run import LaneName
from headway.model.words import Cut
from tests.postgres import fresh_url

RUNS = 3_000
SESSIONS = 100
WIDTH = 5
LONG_S = 0.5
NARROW = LaneName("narrow")

STORES: list[Callable[[Path], str]] = [
    lambda folder: f"sqlite:///{folder / 'agents.db'}",
    lambda folder: fresh_url(),
]


class Log:
    """An agent that does next to nothing, and what it saw."""

    def __init__(self, long_every: int) -> None:
        self.long_every = long_every
        self.live = 0
        self.most = 0
        self.attempts: list[int] = []
        self.texts: defaultdict[str, list[int]] = defaultdict(list)

    async def __call__(self, turn: Turn) -> str:
        number = int(turn.text)
        self.live += 1
        self.most = max(self.most, self.live)
        self.attempts.append(turn.attempt)
        self.texts[turn.session].append(number)
        if self.long_every and number % self.long_every == 0:
            await asyncio.sleep(LONG_S)
        elif number % 3 == 0:
            await asyncio.sleep(0)
        self.live -= 1
        return turn.text


class Lookout:
    """Looks at the lane all the time: how many waited for their slot at once, and how many in vain."""

    def __init__(self, hw: Headway) -> None:
        self._lane = hw.engine.kernel.stage.floor.lanes[NARROW]
        self._events = hw.events(keep=100_000)
        self.most_ahead = 0
        self.called_back = 0

    async def run(self) -> None:
        while True:
            self.most_ahead = max(self.most_ahead, len(self._lane.next_up))
            await asyncio.sleep(0)

    async def listen(self) -> None:
        async for event in self._events:
            if isinstance(event, AttemptCancelled) and event.cut is Cut.PREEMPTED:
                self.called_back += 1


async def play(url: str, log: Log) -> Lookout:
    hw = Headway(url, lanes={NARROW: LaneSettings(WIDTH)})
    hw.agent("a")(log)
    async with hw, asyncio.TaskGroup() as group:
        lookout = Lookout(hw)
        looking = [group.create_task(lookout.run()), group.create_task(lookout.listen())]
        handles: list[Handle] = await asyncio.gather(
            *(
                hw.submit("a", str(n), session=f"s{n % SESSIONS}", lane=NARROW, cap=RUNS)
                for n in range(RUNS)
            )
        )
        outcomes = [await handle.wait() for handle in handles]
        for task in looking:
            task.cancel()
        assert [outcome.text for outcome in outcomes] == [str(number) for number in range(RUNS)]
    return lookout


@pytest.mark.parametrize("address", STORES, ids=["sqlite", "postgres"])
@pytest.mark.parametrize("long_every", [0, 51], ids=["all short", "some long"])
def test_short_runs_keep_their_order_their_lane_and_their_first_attempt(
    address: Callable[[Path], str], long_every: int, tmp_path: Path
) -> None:
    log = Log(long_every)
    lookout = asyncio.run(play(address(tmp_path), log))
    assert 1 < log.most <= WIDTH
    assert log.attempts == [1] * RUNS
    assert log.texts == {f"s{n}": list(range(n, RUNS, SESSIONS)) for n in range(SESSIONS)}
    assert lookout.most_ahead > 1, "nothing was started ahead: nothing was proved"
    assert not long_every or lookout.called_back > 0, "nothing was called back: nothing was proved"
