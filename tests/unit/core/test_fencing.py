"""A node that cannot renew its lease stops by itself, and goes on when it can (D-3)."""

from headway.core.actions import Enqueue, NotBegun
from headway.model.run import LaneName
from headway.model.time import SECOND
from headway.model.words import Cut, Reason, State
from tests.unit.core.by_hand import ByHand


def suspend(hand: ByHand) -> None:
    hand.kernel.suspend(hand.now)
    hand.read()


def resume(hand: ByHand) -> None:
    hand.kernel.resume(hand.now)
    hand.read()


def test_d3_every_attempt_is_cut_and_nothing_starts() -> None:
    hand = ByHand(lanes={"main": 2})
    for name in ("x", "y", "waits"):
        hand.submit(name, max_attempts=2)
    suspend(hand)
    assert hand.cuts == [("x", Cut.LOST), ("y", Cut.LOST)]
    hand.end("x")
    hand.submit("new")
    assert (hand.running, hand.outcomes) == (["y"], {})


def test_d3_a_lost_attempt_counts_and_its_run_is_tried_again() -> None:
    hand = ByHand()
    hand.submit("x", session="s", max_attempts=2)
    hand.submit("next", session="s")
    suspend(hand)
    hand.end("x")
    again = next(action for action in hand.actions if isinstance(action, Enqueue))
    assert (again.cut, again.ended, again.attempt) == (Cut.LOST, True, 1)
    resume(hand)
    assert (hand.started, hand.attempts["x"]) == (["x", "x"], 2)


def test_d7_a_run_without_another_attempt_is_orphaned() -> None:
    hand = ByHand()
    hand.submit("x", max_attempts=1)
    suspend(hand)
    hand.end("x")
    assert hand.ending("x") == (State.FAILED, Reason.ORPHANED)
    assert hand.outcomes["x"].error


def test_s3_a_lost_attempt_that_does_not_listen_is_left_behind() -> None:
    hand = ByHand()
    hand.submit("x", max_attempts=2)
    suspend(hand)
    hand.wait(hand.settings.cancel_grace)
    assert (hand.abandoned, hand.state("x")) == (["x"], State.QUEUED)


def test_d3_a_run_that_was_stopped_anyway_stays_stopped() -> None:
    hand = ByHand()
    hand.submit("x", session="s", max_attempts=2)
    hand.stop("s")
    suspend(hand)
    hand.end("x")
    assert hand.ending("x") == (State.CANCELLED, Reason.STOPPED)
    hand.submit("y", max_attempts=2)
    resume(hand)
    suspend(hand)
    hand.cancel("y")
    hand.end("y")
    assert hand.ending("y") == (State.CANCELLED, Reason.STOPPED)


def test_l4_no_sub_run_starts_on_a_lent_slot() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("parent", session="s", max_attempts=2)
    suspend(hand)
    hand.submit("child", session="t", parent="parent", lane="main")
    assert hand.ending("child") == (State.CANCELLED, Reason.STOPPED)
    assert hand.running == ["parent"]


def test_d3_resuming_does_not_end_a_drain() -> None:
    hand = ByHand()
    hand.set_lane("main", 0)
    hand.submit("x")
    hand.drain(keep_waiting=True)
    suspend(hand)
    resume(hand)
    hand.set_lane("main", 1)
    assert hand.started == []


def test_x1_a_suspended_node_has_no_room() -> None:
    hand = ByHand(lanes={"main": 2})
    assert hand.kernel.room()[LaneName("main")] == 2
    suspend(hand)
    assert set(hand.kernel.room().values()) == {0}
    resume(hand)
    hand.drain(keep_waiting=True)
    assert set(hand.kernel.room().values()) == {0}


# Attempts whose runner was never called.


def test_d3_an_attempt_that_was_not_begun_does_not_count() -> None:
    hand = ByHand()
    hand.submit("x", session="s", max_attempts=1)
    hand.submit("next", session="s")
    hand.end("x", NotBegun())
    assert (hand.running, hand.state("x")) == ([], State.PENDING)
    again = next(action for action in hand.actions if isinstance(action, Enqueue))
    assert (again.attempt, again.cut, again.ended) == (0, Cut.LOST, True)
    assert again.standing is not None
    assert again.standing.begun
    hand.wait(SECOND)
    assert (hand.started, hand.attempts["x"]) == (["x", "x"], 1)


def test_d3_nor_does_one_that_was_cut_because_the_lease_was_lost() -> None:
    hand = ByHand()
    hand.submit("x", max_attempts=1)
    suspend(hand)
    hand.end("x", NotBegun())
    assert (hand.state("x"), hand.outcomes) == (State.QUEUED, {})
    resume(hand)
    assert hand.attempts["x"] == 1
    hand.end("x")
    assert hand.ending("x") == (State.DONE, None)


def test_r3_a_final_cut_keeps_its_meaning() -> None:
    hand = ByHand()
    hand.submit("x", session="s")
    hand.stop("s")
    hand.end("x", NotBegun())
    assert hand.ending("x") == (State.CANCELLED, Reason.STOPPED)
