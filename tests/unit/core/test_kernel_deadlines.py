"""Deadlines are met to the instant: while waiting, while running, and in between (F-5)."""

import pytest

from headway.model.run import Route
from headway.model.settings import AgentSettings, Budget, LaneSettings, Limits
from headway.model.time import HOUR, MILLISECOND, MINUTE, SECOND
from headway.model.words import Cut, Reason, State
from tests.unit.core.by_hand import NOON, ByHand

QUEUED = (State.FAILED, Reason.DEADLINE_QUEUED)
RUNNING = (State.FAILED, Reason.DEADLINE_RUNNING)


def test_f5_a_waiting_task_fails_after_sixty_seconds_to_the_instant() -> None:
    hand = ByHand(lanes={"main": 0})
    hand.submit("x", source="task")
    assert hand.kernel.wake_at == NOON + MINUTE
    hand.wait(MINUTE - 1)
    assert hand.ending("x") is None
    hand.wait(1)
    assert hand.ending("x") == QUEUED
    assert hand.ended_at["x"] == NOON + MINUTE
    assert hand.outcomes["x"].error == "deadline exceeded while queued"
    hand.set_lane("main", 5)
    assert hand.started == []


def test_f5_messages_have_no_deadline_unless_asked() -> None:
    hand = ByHand(lanes={"main": 0})
    hand.submit("x")
    hand.submit("y", deadline="5s")
    hand.wait(24 * HOUR)
    assert hand.ending("x") is None
    assert hand.ending("y") == QUEUED


def test_f5_a_running_attempt_is_cut_at_the_instant_and_fails_once_it_has_returned() -> None:
    hand = ByHand()
    hand.submit("x", source="task", session="s")
    hand.wait(MINUTE - 1)
    assert hand.cuts == []
    hand.wait(1)
    assert hand.cuts == [("x", Cut.DEADLINE)]
    assert hand.ending("x") is None
    hand.wait(SECOND)
    hand.end("x")
    assert hand.ending("x") == RUNNING
    assert hand.outcomes["x"].error == "deadline exceeded while running"


def test_f5_a_deadline_that_has_passed_at_submission_never_starts() -> None:
    hand = ByHand()
    refused = hand.submit("x", deadline=0)
    assert refused is not None
    assert hand.ending("x") == QUEUED
    assert hand.started == []


def test_f5_deadlines_of_runs_behind_others_of_their_session() -> None:
    hand = ByHand()
    hand.submit("busy", session="s")
    hand.submit("x", session="s", deadline="5s")
    hand.submit("y", session="s")
    hand.wait(5 * SECOND)
    assert hand.ending("x") == QUEUED
    hand.end("busy")
    assert hand.running == ["y"]


def test_f5_while_debouncing_while_not_due_and_while_waiting_for_a_retry() -> None:
    hand = ByHand()
    hand.submit("buffered", route=Route("web"), debounce="10s", deadline="5s")
    hand.submit("later", source="task", due="1h", deadline="1s")
    hand.submit("retried", retries=1, deadline="1s")
    hand.fail("retried")
    hand.wait(SECOND)
    assert hand.ending("retried") == QUEUED
    hand.wait(4 * SECOND)
    assert hand.ending("buffered") == QUEUED
    hand.cancel("later")
    hand.wait(HOUR)
    assert hand.started == ["retried"]


def test_f5_the_deadline_of_a_later_run_counts_from_its_due_time() -> None:
    hand = ByHand(lanes={"main": 0})
    hand.submit("later", source="task", due="1h", deadline="1s")
    hand.wait(HOUR)
    assert hand.ending("later") is None
    hand.wait(SECOND)
    assert hand.ending("later") == QUEUED


class TestAtTheInstantInWhichItCouldStart:
    """F-5: never started, never handed to a runner, and the reason is that it waited too long."""

    def check(self, hand: ByHand) -> None:
        assert hand.ending("x") == QUEUED
        assert "x" not in hand.started
        assert ("x", Cut.DEADLINE) not in hand.cuts

    def test_f5_the_slot_frees_because_a_run_ends(self) -> None:
        hand = ByHand(lanes={"main": 1})
        hand.submit("busy")
        hand.submit("x", deadline="5s")
        hand.now += 5 * SECOND
        hand.end("busy")
        self.check(hand)

    def test_f5_the_slot_frees_because_a_grace_is_over(self) -> None:
        hand = ByHand(lanes={"main": 1})
        hand.submit("busy", session="s")
        hand.stop("s")
        hand.wait(SECOND)
        hand.submit("x", deadline="9s")
        hand.wait(9 * SECOND)
        assert hand.abandoned == ["busy"]
        self.check(hand)

    def test_f5_the_session_frees(self) -> None:
        hand = ByHand()
        hand.submit("busy", session="s")
        hand.submit("x", session="s", deadline="5s")
        hand.now += 5 * SECOND
        hand.end("busy")
        self.check(hand)

    def test_f5_the_lane_widens(self) -> None:
        hand = ByHand(lanes={"main": 0})
        hand.submit("x", deadline="5s")
        hand.now += 5 * SECOND
        hand.set_lane("main", 1)
        self.check(hand)

    def test_f5_the_limits_rise(self) -> None:
        hand = ByHand(limits=Limits(max_inflight=0))
        hand.submit("x", source="task", deadline="5s")
        hand.now += 5 * SECOND
        hand.set_limits(max_inflight=1)
        self.check(hand)

    def test_f5_it_becomes_due(self) -> None:
        hand = ByHand()
        hand.submit("x", due="5s", deadline=0)
        hand.wait(5 * SECOND)
        self.check(hand)

    def test_f5_the_budget_refills(self) -> None:
        hand = ByHand(agents={"a": AgentSettings(budget=Budget(runs_per_minute=1))})
        hand.submit("first")
        hand.end("first")
        hand.submit("waits", priority=5)
        hand.submit("x", deadline="60s")
        hand.wait(MINUTE)
        assert hand.running == ["waits"]
        self.check(hand)

    def test_f5_the_providers_pause_ends(self) -> None:
        hand = ByHand(agents={"a": AgentSettings(provider="p")})
        hand.submit("first", retries=3)
        hand.limit("first", MINUTE)
        hand.submit("waits", priority=5)
        hand.submit("x", deadline="60s", priority=-5)
        hand.wait(MINUTE)
        self.check(hand)

    def test_f5_its_debounce_window_closes(self) -> None:
        hand = ByHand()
        hand.submit("x", route=Route("web"), debounce="500ms", deadline="500ms")
        hand.wait(500 * MILLISECOND)
        self.check(hand)

    def test_f5_a_late_wake_up_finds_both_in_the_past(self) -> None:
        """The grace was over at 10 s, the deadline at 20 s, and nobody looked before 60 s."""
        hand = ByHand(lanes={"main": 1})
        hand.submit("busy", session="s")
        hand.stop("s")
        hand.submit("x", deadline="20s")
        hand.wait(MINUTE)
        self.check(hand)

    def test_f5_the_one_before_it_has_the_same_deadline(self) -> None:
        hand = ByHand(lanes={"main": LaneSettings(1, reserve=1)})
        hand.submit("before it", session="s", priority=10, deadline="5s")
        hand.submit("x", session="s", priority=5, deadline="5s")
        hand.submit("after it", session="s", deadline="6s")
        hand.wait(5 * SECOND)
        self.check(hand)
        assert hand.running == ["after it"]

    def test_f5_its_slot_is_lent(self) -> None:
        hand = ByHand(lanes={"main": 1})
        hand.submit("parent")
        hand.submit("x", parent="parent", lane="main", deadline="5s")
        hand.now += 5 * SECOND
        hand.awaits("parent", "x")
        self.check(hand)


def test_f5_one_instant_before_its_deadline_it_still_starts() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("busy")
    hand.submit("x", deadline="5s")
    hand.now += 5 * SECOND - 1
    hand.end("busy")
    assert hand.running == ["x"]
    hand.wait(1)
    assert hand.cuts == [("x", Cut.DEADLINE)]


def test_f5_a_deadline_ends_what_was_only_to_be_preempted() -> None:
    hand = ByHand(lanes={"main": 1}, agents={"bg": AgentSettings(preemptible=True)})
    hand.submit("x", "bg", priority=10, deadline="5s")
    hand.submit("user")
    hand.wait(5 * SECOND)
    hand.fail("x")
    assert hand.ending("x") == RUNNING
    assert hand.running == ["user"]


def test_f5_a_deadline_does_not_touch_a_run_that_has_ended() -> None:
    hand = ByHand()
    hand.submit("x", source="task")
    hand.end("x")
    assert hand.kernel.wake_at is None
    hand.wait(HOUR)
    assert hand.outcomes["x"].ok


def test_r3_a_timeout_bounds_one_attempt_and_is_no_deadline() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("busy")
    hand.submit("x", timeout="5s")
    hand.wait(MINUTE)
    assert hand.ending("x") is None, "waiting does not count"
    hand.end("busy")
    hand.wait(5 * SECOND - 1)
    assert hand.cuts == []
    hand.wait(1)
    assert hand.cuts == [("x", Cut.TIMED_OUT)]
    hand.fail("x")
    assert hand.ending("x") == (State.FAILED, Reason.TIMED_OUT)


@pytest.mark.parametrize("cut", ["stop", "deadline", "timeout"])
def test_s3_an_attempt_that_ignores_its_cut_is_left_behind_after_the_grace(cut: str) -> None:
    hand = ByHand(lanes={"main": 1})
    options = {cut: "1s"} if cut != "stop" else {}
    hand.submit("x", session="s", **options)
    hand.wait(SECOND)
    if cut == "stop":
        hand.stop("s")
    hand.submit("next", session="s")
    ticket = hand.tickets["x"]
    hand.wait(10 * SECOND - 1)
    assert hand.running == ["x"]
    hand.wait(1)
    assert hand.abandoned == ["x"]
    assert hand.running == ["next"]
    assert hand.ending("x") is not None
    assert hand.kernel.began(ticket, hand.now) is False
