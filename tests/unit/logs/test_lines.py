"""Lines of the log (O-3): one form for events and for what libraries say."""

import json
import logging
import sys

import pytest

from headway.events import CATALOGUE, Event, NodeBroken, StoreAway
from headway.logs.lines import event_line, level_of, level_of_record, message_of, record_line
from headway.model.events import LaneChanged, OutputEmitted, RunSubmitted, TokensUsed
from headway.model.run import LaneName
from headway.model.words import LogLevel

AT = 1_750_000_000_123_000


def record(message: str, *arguments: object, level: int = logging.ERROR) -> logging.LogRecord:
    made = logging.LogRecord("uvicorn.error", level, __file__, 1, message, arguments, None)
    made.created = AT / 1_000_000
    return made


def test_o3_a_line_begins_with_when_how_bad_and_what() -> None:
    line = event_line(LaneChanged(at=AT, lane=LaneName("main"), width=4, reserve=1))
    assert line == (
        b'{"at":"2025-06-15T15:06:40.123Z","level":"info","event":"LaneChanged",'
        b'"lane":"main","width":4,"reserve":1}\n'
    )


def test_o3_a_line_says_how_many_like_it_were_left_out() -> None:
    assert json.loads(event_line(StoreAway(at=AT, error="gone"), held_back=3))["heldBack"] == 3


@pytest.mark.parametrize("kind", CATALOGUE, ids=lambda kind: kind.__name__)
def test_o3_every_event_has_its_level(kind: type[Event]) -> None:
    """Notable ones are warnings; what is asked and said is for finding faults; the rest is information."""
    expected = LogLevel.WARNING if kind.notable else LogLevel.INFO
    if kind in {OutputEmitted, RunSubmitted, TokensUsed}:
        expected = LogLevel.DEBUG
    if kind is NodeBroken:
        expected = LogLevel.ERROR
    assert level_of(kind) is expected


def test_o3_what_a_library_says_is_a_line_too() -> None:
    assert json.loads(record_line(record("took 5 ms"), "took 5 ms")) == {
        "at": "2025-06-15T15:06:40.123Z",
        "level": "error",
        "event": "log",
        "logger": "uvicorn.error",
        "message": "took 5 ms",
    }


def test_o3_an_error_comes_with_its_trace() -> None:
    said = record("it broke")
    try:
        raise ValueError("why")
    except ValueError:
        said.exc_info = sys.exc_info()
    trace = json.loads(record_line(said, message_of(said)))["trace"]
    assert trace.startswith("Traceback")
    assert trace.rstrip().endswith("ValueError: why")


def test_o3_words_that_do_not_fit_break_nothing() -> None:
    assert message_of(record("took %d ms", 5)) == "took 5 ms"
    assert message_of(record("%d", "x")) == "%d"
    assert message_of(record("half %s", "\ud800")) == "half \ufffd"
    lone = json.loads(event_line(StoreAway(at=AT, error="half \ud800")))
    assert lone["error"] == "half \ufffd"


@pytest.mark.parametrize(
    ("number", "level"),
    [(5, "debug"), (10, "debug"), (20, "info"), (30, "warning"), (40, "error"), (50, "error")],
)
def test_o3_levels_of_logging_are_ours(number: int, level: str) -> None:
    assert level_of_record(record("x", level=number)) == level
