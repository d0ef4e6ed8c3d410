"""Every run has exactly one outcome with a reason; late results change nothing (R-2 to R-5)."""

from collections.abc import Callable

import pytest

from headway.core.actions import Done, NoteLate
from headway.model.errors import IllegalTransition
from headway.model.outcome import Reply
from headway.model.run import Route
from headway.model.settings import Limits
from headway.model.time import HOUR, MINUTE, SECOND
from headway.model.words import FINAL_STATES, Cut, Reason, Rule, State
from tests.unit.core.by_hand import ByHand

WEB = Route("web")


def queue_full(hand: ByHand) -> None:
    hand.set_limits(max_queue=0)
    hand.submit("x", source="task")


def rejected_busy(hand: ByHand) -> None:
    hand.submit("busy", session="s")
    hand.submit("x", session="s", mode="reject")


def stopped(hand: ByHand) -> None:
    hand.submit("x")
    hand.cancel("x")
    hand.fail("x")


def superseded(hand: ByHand) -> None:
    hand.submit("x", session="s")
    hand.submit("new", session="s", mode="interrupt")
    hand.fail("x")
    assert hand.running == ["new"]


def queue_dropped(hand: ByHand) -> None:
    hand.submit("busy", session="s")
    hand.submit("x", session="s", cap=1)
    hand.submit("new", session="s", cap=1)


def lane_cleared(hand: ByHand) -> None:
    hand.set_lane("main", 0)
    hand.submit("x")
    hand.clear_lane("main")


def cleared(hand: ByHand) -> None:
    hand.submit("busy", session="s")
    hand.submit("x", session="s")
    hand.clear("s")


def stale(hand: ByHand) -> None:
    hand.stop_all("s", message_id="5")
    hand.submit("x", session="s", message_id="4")


def merged(hand: ByHand) -> None:
    hand.submit("x", route=WEB)
    hand.submit("y", route=WEB)
    hand.wait(SECOND)


def draining(hand: ByHand) -> None:
    hand.drain(keep_waiting=False)
    hand.submit("x")


def error(hand: ByHand) -> None:
    hand.submit("x")
    hand.fail("x", "boom")
    assert hand.outcomes["x"].error == "boom"


def deadline_queued(hand: ByHand) -> None:
    hand.set_lane("main", 0)
    hand.submit("x", source="task")
    hand.wait(MINUTE)


def deadline_running(hand: ByHand) -> None:
    hand.submit("x", source="task")
    hand.wait(MINUTE)
    hand.fail("x")


def timed_out(hand: ByHand) -> None:
    hand.submit("x", route=WEB, debounce=0)
    hand.wait(HOUR)
    hand.fail("x")


def rate_limited(hand: ByHand) -> None:
    hand.submit("x", deadline="1m")
    hand.limit("x", HOUR)


def refused(hand: ByHand) -> None:
    hand.submit("x", retries=3)
    hand.fail("x", "not today", reason=Reason.REFUSED, permanent=True)


WAYS: dict[Reason, tuple[State, Callable[[ByHand], None]]] = {
    Reason.QUEUE_FULL: (State.REJECTED, queue_full),
    Reason.REJECTED_BUSY: (State.REJECTED, rejected_busy),
    Reason.STOPPED: (State.CANCELLED, stopped),
    Reason.SUPERSEDED: (State.CANCELLED, superseded),
    Reason.QUEUE_DROPPED: (State.CANCELLED, queue_dropped),
    Reason.LANE_CLEARED: (State.CANCELLED, lane_cleared),
    Reason.CLEARED: (State.CANCELLED, cleared),
    Reason.STALE: (State.CANCELLED, stale),
    Reason.MERGED: (State.CANCELLED, merged),
    Reason.DRAINING: (State.CANCELLED, draining),
    Reason.ERROR: (State.FAILED, error),
    Reason.DEADLINE_QUEUED: (State.FAILED, deadline_queued),
    Reason.DEADLINE_RUNNING: (State.FAILED, deadline_running),
    Reason.TIMED_OUT: (State.FAILED, timed_out),
    Reason.RATE_LIMITED: (State.FAILED, rate_limited),
    Reason.REFUSED: (State.FAILED, refused),
}


@pytest.mark.parametrize("reason", WAYS)
def test_r3_every_reason_is_reached_and_belongs_to_its_state(reason: Reason) -> None:
    state, way = WAYS[reason]
    hand = ByHand()
    way(hand)
    assert hand.ending("x") == (state, reason)
    assert state in FINAL_STATES


def test_r3_only_the_death_of_a_node_is_left_out_here() -> None:
    """`orphaned` needs another node that died (D-7); all the rest one kernel can do."""
    assert set(Reason) - set(WAYS) == {Reason.ORPHANED}


def test_r2_done_has_a_reply_and_no_reason() -> None:
    hand = ByHand()
    hand.submit("x")
    hand.end("x", Done(Reply("hello")))
    outcome = hand.outcomes["x"]
    assert (outcome.state, outcome.reason, outcome.text) == (State.DONE, None, "hello")


def test_r2_merged_messages_name_the_run_they_became() -> None:
    hand = ByHand()
    merged(hand)
    into = hand.outcomes["x"].into
    assert hand.running == [into]
    assert hand.outcomes["y"].into == into


def test_r4_a_late_result_changes_nothing_but_a_log_line() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("x", session="s")
    ticket = hand.tickets["x"]
    hand.stop("s")
    hand.wait(10 * SECOND)
    assert hand.ending("x") == (State.CANCELLED, Reason.STOPPED)
    hand.submit("next")
    before = hand.running
    assert hand.kernel.finished(ticket, Done(Reply("too late")), hand.now) is False
    assert hand.read() == [NoteLate(ticket)]
    assert hand.running == before == ["next"]
    assert hand.outcomes["x"].reply is None


def test_r4_a_result_told_twice_counts_once() -> None:
    hand = ByHand()
    hand.submit("x")
    ticket = hand.tickets["x"]
    hand.end("x")
    assert hand.kernel.finished(ticket, Done(Reply("again")), hand.now) is False
    assert hand.read() == [NoteLate(ticket)]


def test_r4_the_old_attempt_of_a_retried_run_cannot_end_the_new_one() -> None:
    hand = ByHand()
    hand.submit("x", session="s", source="heartbeat")
    old = hand.tickets["x"]
    hand.submit("m", session="s")
    hand.wait(10 * SECOND)
    assert hand.abandoned == ["x"]
    hand.end("m")
    assert hand.running == ["x"]
    assert hand.tickets["x"] != old
    assert hand.kernel.finished(old, Done(Reply("old")), hand.now) is False
    hand.read()
    assert hand.running == ["x"]


def test_r4_tickets_grow_with_every_attempt_so_that_tools_can_refuse_an_older_one() -> None:
    hand = ByHand()
    hand.submit("x", retries=3)
    seen = []
    for _ in range(4):
        seen.append(hand.tickets["x"])
        hand.fail("x")
        hand.wait(MINUTE)
    assert seen == sorted(set(seen))


def test_r5_a_retried_run_keeps_its_id_and_the_head_and_holds_no_slot_while_it_waits() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("x", session="s", retries=1)
    hand.submit("behind", session="s")
    hand.submit("other", session="t")
    hand.fail("x")
    assert hand.running == ["other"], "the slot is free, the session is not"
    hand.end("other")
    assert hand.running == []
    assert hand.why("behind").rule is Rule.SESSION_ORDER
    hand.wait(2 * SECOND)
    assert hand.running == ["x"]
    assert hand.attempts["x"] == 2
    hand.end("x")
    assert hand.running == ["behind"]


def test_r5_also_before_a_run_that_was_asked_for_earlier_but_is_due_later() -> None:
    hand = ByHand()
    hand.submit("due later", session="s", due="10s")
    hand.submit("x", session="s", retries=1)
    hand.wait(11 * SECOND)
    hand.fail("x")
    assert hand.running == []
    hand.wait(2 * SECOND)
    assert hand.running == ["x"]


def test_r5_several_that_come_back_keep_their_order() -> None:
    hand = ByHand()
    for name in ("one", "two", "three"):
        hand.submit(name, session="s", max_concurrent=3, retries=1)
    hand.submit("four", session="s", max_concurrent=3)
    for name in ("two", "three", "one"):
        hand.fail(name)
    hand.wait(2 * SECOND)
    assert hand.started[3:] == ["one", "two", "three"]


def test_c9_retries_wait_two_four_eight_seconds_and_then_the_run_fails() -> None:
    hand = ByHand()
    hand.submit("x", source="firing", priority=0)
    for seconds in (2, 4, 8):
        hand.fail("x", "boom")
        assert hand.ending("x") is None
        hand.wait(seconds * SECOND - 1)
        assert hand.running == []
        hand.wait(1)
        assert hand.running == ["x"]
    hand.fail("x", "boom again")
    assert hand.ending("x") == (State.FAILED, Reason.ERROR)
    assert hand.outcomes["x"].error == "boom again"
    assert hand.attempts["x"] == 4


def test_c9_jitter_comes_from_outside() -> None:
    hand = ByHand()
    hand.submit("x", retries=1)
    hand.fail("x", jitter=1.0)
    assert hand.why("x").until == hand.now + 2_500_000


def test_c9_a_permanent_error_and_a_stop_are_not_tried_again() -> None:
    hand = ByHand()
    hand.submit("permanent", retries=3)
    hand.fail("permanent", permanent=True)
    assert hand.ending("permanent") == (State.FAILED, Reason.ERROR)
    hand.submit("stopped", retries=3)
    hand.cancel("stopped")
    hand.fail("stopped")
    assert hand.ending("stopped") == (State.CANCELLED, Reason.STOPPED)


@pytest.mark.parametrize("cut", [Cut.TIMED_OUT, Cut.DEADLINE])
def test_r3_a_cut_attempt_that_still_answers_is_not_done(cut: Cut) -> None:
    """The answer came after the bound; who gave the bound was told so already."""
    hand = ByHand()
    option = {"timeout" if cut is Cut.TIMED_OUT else "deadline": "5s"}
    hand.submit("x", "a", **option)
    hand.wait(5 * SECOND)
    assert hand.cuts == [("x", cut)]
    hand.end("x", Done(Reply("late")))
    assert hand.state("x") is State.FAILED


def test_r1_an_attempt_that_never_began_cannot_be_done() -> None:
    hand = ByHand()
    hand.kernel.set_gated(True)
    hand.submit("x")
    with pytest.raises(IllegalTransition):
        hand.kernel.finished(hand.tickets["x"], Done(Reply("")), hand.now)


def test_s11_an_attempt_cancelled_before_its_runner_is_called_never_calls_it() -> None:
    hand = ByHand()
    hand.kernel.set_gated(True)
    hand.submit("x")
    hand.cancel("x")
    assert hand.kernel.began(hand.tickets["x"], hand.now) is False
    hand.kernel.finished(hand.tickets["x"], Done(Reply("")), hand.now)
    hand.read()
    assert hand.ending("x") == (State.CANCELLED, Reason.STOPPED)


def test_r2_f1_a_thousand_runs_end_once_each_and_leave_nothing() -> None:
    hand = ByHand(lanes={"main": 7}, limits=Limits(max_queue=2000, max_queue_per_agent=2000))
    for number in range(1000):
        hand.submit(
            f"r{number}",
            f"a{number % 13}",
            session=f"s{number % 29}",
            source=("message", "task")[number % 2],
            cap=100,
            deadline="1h",
        )
    while hand.tickets:
        hand.end_oldest()
    assert len(hand.outcomes) == 1000
    stage = hand.kernel.stage
    assert (stage.runs, stage.sessions, stage.attempts, stage.waiting_tasks) == ({}, {}, {}, 0)
    assert {agent.inflight for agent in stage.floor.agents.values()} == {0}
    assert hand.kernel.wake_at is None


def test_the_kernel_is_deterministic() -> None:
    def play() -> list[str]:
        hand = ByHand(lanes={"main": 2})
        for number in range(30):
            hand.submit(f"r{number}", "abc"[number % 3], session=f"s{number % 7}")
            if number % 4 == 3:
                hand.end_oldest()
        while hand.tickets:
            hand.end_oldest()
        return [repr(action) for action in hand.actions]

    assert play() == play()


def test_time_never_goes_backwards_for_the_kernel() -> None:
    hand = ByHand()
    hand.submit("x", deadline="10s")
    hand.wait(5 * SECOND)
    hand.now -= HOUR
    hand.submit("y")
    assert hand.started_at["y"] == hand.started_at["x"] + 5 * SECOND
