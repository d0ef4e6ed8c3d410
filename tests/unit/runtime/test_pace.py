"""The pace: how many starts are stored ahead follows from what ends while a batch is stored."""

import pytest

from headway.core.lanes import Lane
from headway.model.run import LaneName
from headway.model.time import MILLISECOND, Span
from headway.model.words import Cut
from headway.runtime.pace import Pace
from tests.unit.core.by_hand import ByHand

WRITE = 4 * MILLISECOND


class Paced:
    """A kernel by hand with a lane full of runs, each of a session of its own, and its pace."""

    def __init__(self, width: int = 4, waiting: int = 200) -> None:
        self.hand = ByHand(lanes={"main": width, "cron": width})
        self.pace = Pace(self.hand.kernel)
        self._asked = 0
        self.ask(width + waiting)
        self.store(0, WRITE)

    def ask(self, count: int, lane: str = "main") -> None:
        for _ in range(count):
            self._asked += 1
            name = f"r{self._asked}"
            self.hand.submit(name, session=name, lane=lane, max_attempts=3)

    def lane(self, name: str = "main") -> Lane:
        return self.hand.kernel.stage.floor.lanes[LaneName(name)]

    def store(self, ends: int, took: Span, *, since: Span = 0, lane: str = "main") -> int:
        """Some runs of a lane end, and a batch is stored, this long after the one before. How many ahead?"""
        hand = self.hand
        hand.wait(since)
        began_at = hand.now
        for _ in range(ends):
            hand.end(self._running(lane))
        hand.wait(took)
        self.pace.stored(began_at, hand.now)
        hand.read()
        return self.lane(lane).ahead

    def _running(self, lane: str) -> str:
        stage = self.hand.kernel.stage
        return next(
            live.run.id
            for live in stage.attempts.values()
            if live.lane.name == lane and not live.next_up
        )


@pytest.mark.parametrize("ends", [1, 3, 20])
def test_four_times_as_many_are_started_ahead_as_end_while_a_batch_is_stored(ends: int) -> None:
    paced = Paced()
    assert paced.store(ends, WRITE) == 4 * ends
    assert len(paced.lane().next_up) == 4 * ends


def test_what_ends_between_two_batches_counts_by_its_share() -> None:
    paced = Paced()
    assert paced.store(20, WRITE, since=4 * WRITE) == 4 * 20 // 5


def test_where_runs_take_long_nothing_is_started_ahead() -> None:
    paced = Paced()
    for _ in range(20):
        assert paced.store(1, WRITE, since=10 * WRITE) == 0
    assert not paced.lane().next_up


def test_a_store_in_trouble_is_not_helped_by_starting_more() -> None:
    paced = Paced()
    assert paced.store(20, 51 * MILLISECOND) == 0
    assert paced.store(20, 50 * MILLISECOND) == 80


def test_there_is_a_bound() -> None:
    assert Paced(waiting=600).store(200, WRITE) == 400


def test_one_thin_batch_lowers_it_only_by_a_quarter_and_a_row_of_them_to_nothing() -> None:
    paced = Paced()
    assert paced.store(4, WRITE) == 16
    assert [paced.store(0, WRITE) for _ in range(9)] == [12, 9, 6, 4, 3, 2, 1, 0, 0]


def test_each_lane_has_its_own() -> None:
    paced = Paced()
    paced.ask(100, "cron")
    paced.store(0, WRITE)
    assert paced.store(3, WRITE, lane="cron") == 12
    assert paced.lane("main").ahead == 0
    assert paced.store(1, WRITE) == 4
    assert paced.lane("cron").ahead == 9


def test_a_hand_that_is_done_right_after_another_is_not_counted_by() -> None:
    """Two batches overlap: in the moment between their ends hardly anything has ended."""
    paced = Paced()
    assert paced.store(3, WRITE) == 12
    hand = paced.hand
    hand.wait(MILLISECOND)
    paced.pace.stored(hand.now - WRITE, hand.now)
    assert paced.lane().ahead == 12
    hand.wait(WRITE - MILLISECOND)
    paced.pace.stored(hand.now - WRITE, hand.now)
    assert paced.lane().ahead == 9, "the time since the last that counted is what counts"


def test_what_is_called_back_has_not_ended() -> None:
    """Else a lane that stands still would start ahead more and more, while others keep the store busy."""
    paced = Paced()
    hand = paced.hand
    assert paced.store(5, WRITE) == 20
    for _ in range(200):
        for name in [name for name, _ in hand.cuts if name in hand.tickets]:
            hand.fail(name, "never begun")
        paced.store(0, WRITE)
    assert hand.cuts == [(f"r{number}", Cut.PREEMPTED) for number in range(10, 30)]
    assert paced.lane().ahead == 0
    assert not paced.lane().next_up
