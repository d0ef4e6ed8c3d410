"""Modes: an interrupt never overlaps what it cut (S-3), however wide the session is."""

from tests.unit.core.by_hand import ByHand


def test_s3_an_interrupt_in_a_wide_session_waits_until_all_that_it_cut_has_returned() -> None:
    hand = ByHand()
    for name in ("one", "two", "three"):
        hand.submit(name, session="group", max_concurrent=3)
    hand.submit("now", session="group", max_concurrent=3, mode="interrupt")
    assert hand.running == ["one", "two", "three"]
    hand.fail("one")
    hand.fail("two")
    assert "now" not in hand.running
    hand.fail("three")
    assert hand.running == ["now"]
