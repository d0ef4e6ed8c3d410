"""A user's message never waits behind a heartbeat of the same session (F-4)."""

import pytest

from headway.model.words import Cut, Reason, State
from tests.unit.core.by_hand import ByHand


def test_f4_defaults_by_source_decide_who_is_first() -> None:
    hand = ByHand(lanes={"main": 0})
    for source in ("heartbeat", "firing", "task", "message"):
        hand.submit(source, source=source, lane="main")
    hand.submit("urgent task", source="task", priority=-1)
    hand.set_lane("main", 1)
    while hand.tickets:
        hand.end_oldest()
    assert hand.started == ["urgent task", "task", "message", "firing", "heartbeat"]


def test_f4_a_waiting_heartbeat_steps_behind_each_message() -> None:
    hand = ByHand()
    hand.submit("running", session="s")
    hand.submit("h1", session="s", source="heartbeat")
    hand.submit("m1", session="s")
    hand.submit("h2", session="s", source="heartbeat")
    hand.submit("m2", session="s")
    while hand.tickets:
        hand.end_oldest()
    assert hand.started == ["running", "m1", "m2", "h1", "h2"]


@pytest.mark.parametrize("source", ["task", "firing", "delegation"])
def test_f4_s1_only_messages_pass_a_heartbeat(source: str) -> None:
    hand = ByHand()
    hand.submit("running", session="s", source="task")
    hand.submit("h", session="s", source="heartbeat")
    hand.submit("x", session="s", source=source)
    while hand.tickets:
        hand.end_oldest()
    assert hand.started == ["running", "h", "x"]


def test_f4_a_running_heartbeat_is_preempted_and_runs_again_after_the_message() -> None:
    hand = ByHand()
    hand.submit("h", session="s", source="heartbeat")
    hand.submit("m", session="s")
    assert hand.cuts == [("h", Cut.PREEMPTED)]
    assert hand.running == ["h"], "S-3: the message waits until the heartbeat has really returned"
    hand.fail("h", "cancelled")
    assert hand.running == ["m"]
    assert hand.state("h") is State.QUEUED
    hand.end("m")
    assert hand.running == ["h"]
    assert hand.attempts["h"] == 1, "a preempted attempt is not lost"
    hand.end("h")
    assert hand.outcomes["h"].ok


def test_f4_two_messages_cut_a_heartbeat_once() -> None:
    hand = ByHand()
    hand.submit("h", session="s", source="heartbeat")
    hand.submit("m1", session="s")
    hand.submit("m2", session="s")
    assert hand.cuts == [("h", Cut.PREEMPTED)]
    hand.fail("h")
    while hand.tickets:
        hand.end_oldest()
    assert hand.started == ["h", "m1", "m2", "h"]


def test_f4_a_heartbeat_of_another_session_is_left_alone() -> None:
    hand = ByHand()
    hand.submit("h", session="s", source="heartbeat")
    hand.submit("m", session="t")
    assert hand.cuts == []
    assert hand.running == ["h", "m"]


def test_f4_r5_a_message_that_is_tried_again_stays_before_the_heartbeat() -> None:
    hand = ByHand()
    hand.submit("f", session="s", source="firing")
    hand.submit("h", session="s", source="heartbeat")
    hand.submit("m", session="s", retries=1)
    hand.end("f")
    assert hand.running == ["m"]
    hand.fail("m")
    assert hand.running == [], "the retried message holds its session"


def test_f4_s6_a_steering_message_on_a_full_queue_behind_a_heartbeat_is_refused() -> None:
    """There is no turn to steer or to interrupt, so nothing makes room for it."""
    hand = ByHand()
    hand.submit("h", session="s", source="heartbeat")
    for name in ("x", "y"):
        hand.submit(name, session="s", cap=2, drop="new")
    hand.submit("z", session="s", mode="steer", cap=2, drop="new")
    assert hand.ending("z") == (State.REJECTED, Reason.QUEUE_FULL)
    hand.fail("h")
    assert hand.running == ["x"]


def test_f4_l2_preempted_heartbeats_give_back_their_slots() -> None:
    """A slot that leaks with each preemption would stop the lane after a while."""
    hand = ByHand(lanes={"cron": 1})
    for number in range(5):
        hand.submit(f"h{number}", session="s", source="heartbeat")
        hand.submit(f"m{number}", session="s")
        hand.fail(f"h{number}")
        hand.end(f"m{number}")
        hand.end(f"h{number}")
    hand.submit("other", source="firing")
    assert hand.running == ["other"]
