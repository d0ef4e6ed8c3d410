"""Stop is one transaction: all that a session is at, and what it tries to start (X-3, S-9)."""

import pytest

from headway.core.actions import Stopped
from headway.model.run import Route
from headway.model.settings import AgentSettings
from headway.model.time import HOUR, MINUTE, SECOND
from headway.model.words import Cut, Reason, State
from tests.unit.core.by_hand import NOON, ByHand

STOPPED = (State.CANCELLED, Reason.STOPPED)


def everything() -> ByHand:
    """A session with one of each: running, waiting, debouncing, not due, retried, and sub-runs."""
    hand = ByHand(lanes={"subagent": 1})
    hand.submit("retried", session="r", retries=3)
    hand.fail("retried")
    hand.submit("running", session="s")
    hand.submit("child", parent="running")
    hand.submit("grandchild", parent="child", lane="main")
    hand.submit("waiting child", parent="running")
    hand.submit("waiting", session="s")
    hand.submit("typing", session="s", route=Route("web"))
    hand.submit("later", session="s", due="1h")
    hand.submit("other", session="t")
    return hand


def test_x3_stop_all_reaches_everything_of_the_session_and_nothing_else() -> None:
    hand = everything()
    stopped = hand.stop_all("s")
    assert stopped == Stopped(running=3, waiting=4)
    assert str(stopped) == "3 running and 4 waiting stopped"
    for name in ("waiting child", "waiting", "typing", "later"):
        assert hand.ending(name) == STOPPED
    assert sorted(hand.cuts) == [
        ("child", Cut.STOPPED),
        ("grandchild", Cut.STOPPED),
        ("running", Cut.STOPPED),
    ]
    for name in ("grandchild", "child", "running"):
        hand.fail(name)
        assert hand.ending(name) == STOPPED
    hand.wait(2 * HOUR)
    assert set(hand.running) == {"other", "retried"}


def test_x3_a_pending_retry_is_stopped_too() -> None:
    hand = everything()
    assert hand.stop_all("r") == Stopped(running=0, waiting=1)
    hand.wait(HOUR)
    assert hand.ending("retried") == STOPPED


@pytest.mark.parametrize("how", ["stop", "stop_all", "cancel"])
def test_x3_what_was_stopped_can_start_nothing_more(how: str) -> None:
    hand = ByHand()
    hand.submit("running", session="s")
    hand.submit("child", parent="running")
    _ = hand.cancel("running") if how == "cancel" else getattr(hand, how)("s")
    for parent in ("running", "child"):
        refused = hand.submit(f"late of {parent}", parent=parent)
        assert refused is not None
        assert hand.ending(f"late of {parent}") == STOPPED
    hand.fail("running")
    assert hand.submit("after the end", parent="running") is not None
    assert "late of running" not in hand.started


def test_x3_a_stopped_session_takes_new_work_at_once_and_in_order() -> None:
    hand = ByHand()
    hand.submit("old", session="s")
    hand.stop_all("s")
    assert hand.submit("new", session="s") is None
    assert hand.running == ["old"], "S-3: never before the stopped one has returned"
    hand.fail("old")
    assert hand.running == ["new"]


def test_s9_stop_cancels_the_oldest_running_one_first() -> None:
    hand = ByHand()
    for name in ("one", "two", "three"):
        hand.submit(name, session="s", max_concurrent=2)
    assert hand.stop("s") == Stopped(running=1)
    assert hand.cuts == [("one", Cut.STOPPED)]
    assert hand.stop("s") == Stopped(running=1)
    assert hand.cuts[1:] == [("two", Cut.STOPPED)]
    assert hand.stop("s").nothing, "what waits behind them waits for its session, not for a lane"
    hand.fail("one")
    assert hand.running == ["two", "three"]


def test_s9_stop_reaches_a_run_that_still_waits_for_its_lane() -> None:
    hand = ByHand(lanes={"main": 0})
    hand.submit("x", session="s")
    assert hand.stop("s") == Stopped(waiting=1)
    assert hand.ending("x") == STOPPED


def test_s9_the_reply_says_so_when_there_was_nothing() -> None:
    hand = ByHand()
    assert str(hand.stop("nobody")) == "nothing to stop"
    assert str(hand.stop_all("nobody")) == "nothing to stop"
    assert str(Stopped(running=2)) == "2 running stopped"
    assert str(Stopped(waiting=3)) == "3 waiting stopped"


def test_r2_a_cancel_and_a_completion_that_race_give_one_outcome_and_the_answer_agrees() -> None:
    hand = ByHand()
    hand.submit("cancelled first")
    assert hand.cancel("cancelled first") == Stopped(running=1)
    hand.end("cancelled first")
    assert hand.ending("cancelled first") == STOPPED
    hand.submit("ended first")
    hand.end("ended first")
    assert hand.cancel("ended first").nothing
    assert hand.outcomes["ended first"].ok


def test_r2_cancelling_twice_counts_once() -> None:
    hand = ByHand()
    hand.submit("x")
    assert hand.cancel("x") == Stopped(running=1)
    assert hand.cancel("x").nothing
    assert hand.cuts == [("x", Cut.STOPPED)]


def test_x3_a_cancel_reaches_descendants_but_not_the_parent() -> None:
    hand = ByHand()
    hand.submit("top")
    hand.submit("middle", parent="top")
    hand.submit("bottom", parent="middle")
    hand.submit("sibling", parent="top")
    assert hand.cancel("middle") == Stopped(running=2)
    assert {name for name, _ in hand.cuts} == {"middle", "bottom"}


def test_x3_descendants_are_reached_after_the_one_in_between_has_ended() -> None:
    hand = ByHand()
    hand.submit("top", session="s")
    hand.submit("middle", parent="top")
    hand.submit("bottom", parent="middle")
    hand.end("middle")
    assert hand.stop("s") == Stopped(running=2)
    assert {name for name, _ in hand.cuts} == {"top", "bottom"}


CUTS = {
    "timeout": Cut.TIMED_OUT,
    "deadline": Cut.DEADLINE,
    "interrupt": Cut.SUPERSEDED,
    "preempted": Cut.PREEMPTED,
    "drained": Cut.DRAINED,
}


@pytest.mark.parametrize("how", CUTS)
def test_x3_however_a_turn_is_cut_what_it_started_is_stopped_with_it(how: str) -> None:
    """Nobody waits for it any more; another attempt of the turn would start it anew."""
    hand = ByHand(lanes={"main": 1, "subagent": 1})
    bound = {how: "5s"} if how in {"timeout", "deadline"} else {}
    hand.submit("turn", "a", session="s", priority=10, preemptible=True, **bound)
    hand.submit("child", parent="turn")
    hand.submit("waiting child", parent="turn")
    hand.submit("grandchild", parent="child", lane="team")
    match how:
        case "interrupt":
            hand.submit("new", session="s", mode="interrupt")
        case "preempted":
            hand.submit("user")
        case "drained":
            hand.drain(keep_waiting=True)
            hand.cut_all()
        case _:
            hand.wait(5 * SECOND)
    assert sorted(hand.cuts) == [
        ("child", Cut.STOPPED),
        ("grandchild", Cut.STOPPED),
        ("turn", CUTS[how]),
    ]
    assert hand.ending("waiting child") == STOPPED


def test_x3_what_waits_behind_a_stopped_sub_run_goes_on() -> None:
    hand = ByHand(lanes={"subagent": 0})
    hand.submit("turn", timeout="5s")
    hand.submit("child", parent="turn", session="t")
    hand.submit("behind it", session="t")
    assert hand.running == ["turn"]
    hand.wait(5 * SECOND)
    assert hand.ending("child") == STOPPED
    assert hand.running == ["turn", "behind it"]


def test_s9_messages_sent_before_a_stop_all_are_stale_by_time_or_by_number() -> None:
    hand = ByHand()
    hand.stop_all("s", sent_at=NOON + MINUTE, message_id="100")
    refused = hand.submit("x", session="s", message_id="9")
    assert refused is not None
    assert hand.ending("x") == (State.CANCELLED, Reason.STALE)
    assert hand.submit("y", session="s", message_id="101") is None


def test_s9_a_message_that_becomes_due_after_a_stop_all_is_gone_with_it() -> None:
    hand = ByHand()
    hand.submit("later", session="s", due="10s")
    hand.stop_all("s")
    hand.wait(MINUTE)
    assert hand.ending("later") == STOPPED
    assert hand.started == []


def test_s4_r2_stopping_leaves_nothing_behind() -> None:
    hand = everything()
    for session in ("s", "r", "t"):
        hand.stop_all(session)
    while hand.tickets:
        hand.fail(hand.running[0])
    stage = hand.kernel.stage
    assert (stage.runs, stage.attempts, stage.sessions) == ({}, {}, {})
    assert hand.kernel.wake_at is None
    assert {lane.in_use for lane in stage.floor.lanes.values()} == {0}
    assert set(hand.outcomes) == {
        "retried",
        "running",
        "child",
        "grandchild",
        "waiting child",
        "waiting",
        "typing",
        "later",
        "other",
    }


def test_x3_stop_reaches_what_is_being_preempted_for_a_heartbeats_message() -> None:
    hand = ByHand(agents={"a": AgentSettings()})
    hand.submit("h", session="s", source="heartbeat")
    hand.submit("m", session="s")
    assert hand.cuts == [("h", Cut.PREEMPTED)]
    assert hand.stop_all("s") == Stopped(running=1, waiting=1)
    hand.wait(SECOND)
    hand.fail("h")
    assert hand.ending("h") == STOPPED
