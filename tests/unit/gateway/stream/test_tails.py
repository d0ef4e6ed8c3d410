"""Tails: who begins to watch a run late sees the latest that it has emitted, and no tail grows for ever."""

import msgspec
import pytest

from headway.gateway.stream import tails
from headway.gateway.stream.tails import TAIL, Tails
from headway.model.events import AttemptCancelled, RunQueuedAgain
from headway.model.run import AgentName, RunId, SessionKey
from headway.model.words import Cut
from tests.unit.gateway.stream.happenings import emitted, finished, started

RUN = RunId("r-1")


def text(kept: Tails, run_id: RunId = RUN) -> str:
    return "".join(kept.of(run_id).pieces)


def test_what_a_running_run_emits_is_kept_until_it_ends() -> None:
    kept = Tails()
    kept.note(started(1))
    kept.note(emitted(1, "one "))
    kept.note(emitted(1, "two"))
    assert (text(kept), kept.of(RUN).cut) == ("one two", False)
    assert kept.running == {RUN: 1}
    kept.note(finished(1))
    assert text(kept) == ""
    assert kept.running == {}
    assert kept._size == 0


def test_each_attempt_has_its_own() -> None:
    kept = Tails()
    kept.note(started(1))
    kept.note(emitted(1, "first try"))
    kept.note(RunQueuedAgain(at=0, run_id=RUN, agent=AgentName("a"), session=SessionKey("s")))
    assert kept.running == {}
    kept.note(started(1, attempt=2))
    kept.note(emitted(1, "second try"))
    assert text(kept) == "second try"


def test_only_the_end_of_much_is_kept() -> None:
    kept = Tails()
    kept.note(started(1))
    for number in range(1_000):
        kept.note(emitted(1, f"{number:0>1000}"))
    assert text(kept).endswith(f"{999:0>1000}")
    assert 0.9 * TAIL < len(text(kept)) <= TAIL
    assert kept.of(RUN).cut


def test_one_long_piece_is_cut_too() -> None:
    kept = Tails()
    kept.note(started(1))
    kept.note(emitted(1, "x" * TAIL + "end"))
    assert len(text(kept)) == TAIL
    assert text(kept).endswith("xend")
    assert kept.of(RUN).cut


def test_many_tiny_pieces_are_no_way_around_the_bound() -> None:
    kept = Tails()
    kept.note(started(1))
    for _ in range(100_000):
        kept.note(emitted(1, "x"))
    assert len(kept.of(RUN).pieces) < 2_000


def test_all_tails_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tails, "_ALL_TAILS", 10 * TAIL)
    kept = Tails()
    for number in range(1, 21):
        kept.note(started(number))
        kept.note(emitted(number, "x" * (TAIL - 100)))
    assert kept._size <= 10 * TAIL
    assert kept.of(RUN).cut, "the one that began first gave way"
    assert text(kept) == ""
    kept.note(emitted(1, "more"))
    assert text(kept) == "more"


def test_what_comes_from_an_attempt_that_counts_no_longer_is_not_kept() -> None:
    kept = Tails()
    kept.note(emitted(1, "late"))
    assert text(kept) == ""


def test_an_attempt_that_is_lost_to_another_node_leaves_nothing_behind() -> None:
    kept = Tails()
    kept.note(started(1))
    kept.note(emitted(1, "half a"))
    lost = AttemptCancelled(
        at=0, run_id=RUN, agent=AgentName("a"), session=SessionKey("s"), cut=Cut.LOST
    )
    kept.note(msgspec.structs.replace(lost, cut=Cut.STOPPED))
    assert text(kept) == "half a", "one that is stopped still has its end to come"
    kept.note(lost)
    assert (text(kept), kept.running, kept._size) == ("", {}, 0)
