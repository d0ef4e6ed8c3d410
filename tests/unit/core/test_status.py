"""`/status` in a chat: what runs, what waits, and why."""

import msgspec

from headway.core.elsewhere import SessionElsewhere
from headway.core.status import MOST_LINES, status_elsewhere, status_here, status_text
from headway.model.places import Glimpse, Holding, Place
from headway.model.run import Route, RunId, SessionKey
from headway.model.settings import Settings
from headway.model.time import MINUTE, SECOND
from headway.model.views import RunView
from headway.model.words import State
from tests.unit.core.by_hand import ByHand

S = SessionKey("s")


def status(hand: ByHand) -> str | None:
    return status_here(hand.kernel, S, hand.now)


def test_an_idle_session_has_nothing_here() -> None:
    assert status(ByHand()) is None
    assert status_text((), ()) == "nothing runs and nothing waits"


def test_what_runs_for_how_long_and_what_waits_why() -> None:
    """X-1, in words, for the person in the chat."""
    hand = ByHand()
    hand.submit("first", session="s", text="build the page")
    hand.wait(2 * MINUTE + 300_000)
    hand.submit("second", session="s", text="and\n  test it")
    assert status(hand) == (
        "running for 2m: “build the page” (run first)\n"
        "waiting: “and test it” (run second): session s is busy with run first; 0 starts before it"
    )


def test_what_is_still_debounced_waits_too() -> None:
    hand = ByHand()
    hand.submit("x", session="s", text="hello", route=Route("web", peer="42"))
    shown = status(hand)
    assert shown is not None
    assert shown.startswith("waiting: “hello” (run x): more text may follow")


def test_of_many_that_wait_the_rest_are_counted() -> None:
    hand = ByHand()
    for number in range(MOST_LINES + 4):
        hand.submit(f"r{number}", session="s", text="x" * 100)
    shown = status(hand)
    assert shown is not None
    assert shown.count("waiting: ") == MOST_LINES
    assert shown.endswith("and 3 more waiting")
    assert f"“{'x' * 39}…”" in shown


def test_a_session_of_another_node_is_told_by_the_store() -> None:
    hand = ByHand()
    hand.submit("one", session="s", text="tidy up")
    run = hand.runs["one"]
    running = RunView(run, State.RUNNING, 1, started_at=hand.now)
    more = msgspec.structs.replace(run, id=RunId("two"), text="and dust")
    waiting = RunView(more, State.QUEUED)
    holding = Holding(S, 1, 2, places=(Place(run, 1), Place(more, 2)))
    elsewhere = SessionElsewhere(Settings(), Glimpse(holding, (run.id,), owner=7), hand.now)
    shown = status_elsewhere([running], [waiting], elsewhere, hand.now + 5 * SECOND)
    assert shown == (
        "running for 5s: “tidy up” (run one)\n"
        "waiting: “and dust” (run two): session s is busy with run one"
    )
