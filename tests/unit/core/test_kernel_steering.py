"""A steered message is taken by the running turn or becomes its own, never both (X-2)."""

import pytest

from headway.core.actions import Steer, Unsteer
from headway.model.settings import AgentSettings
from headway.model.time import SECOND
from headway.model.words import Cut, Reason, State
from tests.unit.core.by_hand import ByHand

MERGED = (State.CANCELLED, Reason.MERGED)


def steering(**options: object) -> ByHand:
    """A turn at work, and a message offered to it."""
    hand = ByHand(agents={"a": AgentSettings(steerable=True)})
    hand.submit("turn", "a", session="s", **options)
    hand.submit("m", session="s", mode="steer")
    return hand


def offers(hand: ByHand) -> list[tuple[str, str]]:
    return [
        (type(action).__name__, action.message.id)
        for action in hand.actions
        if isinstance(action, Steer | Unsteer)
    ]


def test_x2_a_message_is_offered_to_the_running_turn_and_keeps_its_place_until_taken() -> None:
    hand = steering()
    assert offers(hand) == [("Steer", "m")]
    assert hand.state("m") is State.QUEUED
    assert hand.cuts == []


def test_x2_taken_it_never_becomes_a_turn_and_ends_with_the_one_that_took_it() -> None:
    hand = steering()
    assert hand.takes("turn", "m") is True
    assert hand.takes("turn", "m") is False, "the receipt is given once"
    assert hand.ending("m") is None
    hand.end("turn")
    assert hand.ending("m") == MERGED
    assert hand.outcomes["m"].into == "turn"
    assert hand.started == ["turn"]


def test_x2_not_taken_it_becomes_a_turn_of_its_own_and_can_be_taken_no_more() -> None:
    hand = steering()
    ticket = hand.tickets["turn"]
    hand.end("turn")
    assert hand.running == ["m"]
    assert (
        hand.kernel.steered(ticket, hand.kernel.stage.attempts[hand.tickets["m"]].run.id, hand.now)
        is False
    )
    hand.end("m")
    assert hand.outcomes["m"].ok


def test_x2_a_message_that_ended_meanwhile_is_taken_back() -> None:
    hand = steering()
    hand.cancel("m")
    assert offers(hand) == [("Steer", "m"), ("Unsteer", "m")]
    assert hand.takes("turn", "m") is False


def test_x2_a_turn_that_was_cut_takes_nothing_any_more() -> None:
    hand = steering()
    hand.stop("s")
    assert hand.takes("turn", "m") is False
    hand.fail("turn")
    assert hand.running == ["m"], "S-3: the message was not stopped; it has its turn"


@pytest.mark.parametrize("how", ["retry", "limited", "drained"])
def test_x2_an_attempt_that_counts_no_longer_gives_back_what_it_took(how: str) -> None:
    hand = steering(retries=1)
    hand.takes("turn", "m")
    if how == "retry":
        hand.fail("turn")
    elif how == "limited":
        hand.limit("turn", 2 * SECOND)
    else:
        hand.drain(keep_waiting=True)
        hand.cut_all()
        hand.fail("turn")
        hand.reset()
    hand.wait(3 * SECOND)
    while hand.tickets:
        hand.end_oldest()
    assert hand.started == ["turn", "turn", "m"]
    assert hand.outcomes["m"].ok


def test_x2_f5_a_message_that_was_given_back_still_has_its_deadline() -> None:
    hand = ByHand(agents={"a": AgentSettings(steerable=True)})
    hand.submit("turn", session="s", retries=1)
    hand.submit("m", session="s", mode="steer", deadline="10s")
    hand.takes("turn", "m")
    hand.fail("turn")
    hand.wait(3 * SECOND)
    assert hand.running == ["turn"]
    hand.wait(7 * SECOND)
    assert hand.ending("m") == (State.FAILED, Reason.DEADLINE_QUEUED)


def test_x2_a_failed_turn_ends_what_it_took_because_it_was_heard() -> None:
    hand = steering()
    hand.takes("turn", "m")
    hand.fail("turn")
    assert hand.ending("turn") == (State.FAILED, Reason.ERROR)
    assert hand.ending("m") == MERGED


def test_x2_a_turn_that_cannot_be_steered_is_interrupted_or_followed() -> None:
    for fallback, cuts in (("interrupt", [("turn", Cut.SUPERSEDED)]), ("followup", [])):
        hand = ByHand()
        hand.submit("turn", session="s")
        hand.submit("m", session="s", mode="steer", steer_fallback=fallback)
        assert offers(hand) == []
        assert hand.cuts == cuts
        hand.end("turn")
        assert hand.running == ["m"]


def test_x2_a_message_for_another_agent_is_not_put_into_the_turn() -> None:
    hand = ByHand(agents={name: AgentSettings(steerable=True) for name in "ab"})
    hand.submit("turn", "a", session="s")
    hand.submit("m", "b", session="s", mode="steer", steer_fallback="followup")
    assert offers(hand) == []


def test_x2_a_turn_cannot_take_what_was_never_offered_to_it() -> None:
    hand = steering()
    hand.submit("plain", session="s")
    hand.submit("other", session="t")
    assert hand.takes("turn", "plain") is False
    assert hand.takes("other", "m") is False
    assert hand.takes("turn", "m") is True


def test_x2_s9_a_message_that_was_taken_is_stopped_with_its_turn_and_counted_once() -> None:
    hand = steering()
    hand.takes("turn", "m")
    stopped = hand.stop_all("s")
    assert (stopped.running, stopped.waiting) == (1, 0)
    hand.fail("turn")
    assert hand.ending("turn") == (State.CANCELLED, Reason.STOPPED)
    assert hand.ending("m") is not None
    assert hand.kernel.stage.runs == {}
