"""Events of a stream, in whatever pieces they come."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.runners.event_stream import LONGEST_LINE, EventStream, LineTooLong

STREAM = (
    b": a comment\n"
    b"event: message\r\n"
    b"id: 1\r\n"
    b"data: one\r\n"
    b"\r\n"
    b"\n"
    b"data:two\n"
    b"data: and more\n"
    b"\n"
    b"retry: 5\n\n"
    b"data:  w\xc3\xb6rds\n\n"
    b"data: the last"
)
EVENTS = [b"one", b"two\nand more", " wörds".encode(), b"the last"]


@given(st.lists(st.integers(1, len(STREAM) - 1)))
def test_it_does_not_matter_where_the_pieces_end(cuts: list[int]) -> None:
    bounds = [0, *sorted(set(cuts)), len(STREAM)]
    stream = EventStream()
    events: list[bytes] = []
    for begin, end in pairwise(bounds):
        events += stream.take(STREAM[begin:end])
    assert events + stream.end() == EVENTS
    assert stream.end() == []


def test_a_line_that_does_not_end_is_refused() -> None:
    stream = EventStream()
    assert stream.take(b"data: " + b"x" * (LONGEST_LINE - 6)) == []
    with pytest.raises(LineTooLong, match="more than 1,048,576 bytes"):
        stream.take(b"x")
