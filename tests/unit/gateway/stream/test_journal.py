"""The journal: the latest events of a node, numbered, for listeners that come back (O-3)."""

import msgspec
import pytest

from headway.gateway.stream.journal import Start, frame
from headway.model.events import EventsMissed
from headway.model.telling import told
from tests.unit.gateway.stream.happenings import BOOT, emitted, journal, noted, started


def test_events_are_numbered_from_one_under_the_name_of_this_start() -> None:
    kept = noted(3)
    assert [kept.entry(number).id for number in (1, 2, 3)] == [f"{BOOT}-{n}" for n in (1, 2, 3)]


def test_who_names_nothing_begins_with_what_comes_next() -> None:
    assert noted(3).start(None) == Start(4)


def test_who_comes_back_goes_on_behind_what_it_saw() -> None:
    assert noted(3).start(f"{BOOT}-1") == Start(2)
    assert noted(3).start(f"{BOOT}-3") == Start(4)


def test_what_is_forgotten_is_counted() -> None:
    kept = noted(10, memory=4)
    assert (kept.first, kept.head) == (7, 11)
    assert kept.start(f"{BOOT}-2") == Start(7, missed=4, after=f"{BOOT}-2")
    assert kept.start(f"{BOOT}-6") == Start(7)


def test_who_listened_to_an_earlier_start_is_told_that_there_is_a_gap() -> None:
    assert noted(3).start("earlier-99") == Start(1, missed=0, after="earlier-99")
    assert noted(10, memory=4).start("earlier-99") == Start(7, missed=6, after="earlier-99")


def test_an_id_of_an_event_that_has_not_been_is_as_good_as_the_last() -> None:
    assert noted(3).start(f"{BOOT}-999") == Start(4)


@pytest.mark.parametrize(
    "wrong", ["", "7", "-7", BOOT, f"{BOOT}-", f"{BOOT}-x", f"{BOOT}-{'9' * 19}"]
)
def test_an_id_of_another_stream_is_not_remembered(wrong: str) -> None:
    """A client that was connected elsewhere before is told of the gap, and goes on."""
    start = noted(3).start(wrong)
    assert (start.number, start.missed is not None) == (1, True)


def test_the_latest_are_counted_back_over_what_is_not_wanted() -> None:
    kept = journal()
    for number in range(1, 11):
        kept.note(started(number, agent="a" if number % 2 else "b"))
    start = kept.latest(2, lambda event: getattr(event, "agent", None) == "a")
    assert start == Start(7)
    assert kept.latest(0, lambda _: True) == Start(11)
    assert kept.latest(99, lambda _: True) == Start(1)


def test_long_texts_are_forgotten_before_they_fill_the_memory() -> None:
    kept = journal(1_000)
    for number in range(40):
        kept.note(emitted(number, "x" * 1024 * 1024))
    assert kept.head - kept.first == 32
    kept.note(emitted(1, "x" * 100 * 1024 * 1024))
    assert kept.head - kept.first == 1, "the newest one is there, however long"
    kept.note(emitted(2, "short"))
    assert kept.head - kept.first == 1


def test_an_event_is_encoded_once_and_only_if_somebody_wants_it() -> None:
    kept = noted(1)
    entry = kept.entry(1)
    assert entry._data is None
    assert entry.data is entry.data
    assert msgspec.json.decode(entry.data) == told(entry.event)


def test_a_gap_is_told_under_the_id_before_what_follows() -> None:
    kept = noted(10, memory=4)
    start = kept.start(f"{BOOT}-2")
    gap = kept.missed(start)
    assert gap.id == f"{BOOT}-6"
    assert isinstance(gap.event, EventsMissed)
    assert gap.event.count == 4
    assert kept.start(gap.id) == Start(start.number), (
        "who is cut off right after it misses nothing more"
    )


def test_a_frame_of_rpc_is_json() -> None:
    kept = noted(1)
    told_by_rpc = msgspec.json.decode(frame(kept.entry(1)))
    assert told_by_rpc["event"] == "RunStarted"
    assert told_by_rpc["id"] == f"{BOOT}-1"
    assert told_by_rpc["data"]["runId"] == "r-1"
