"""The scalars of the wire: what they let through is what the rest can take."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.heartbeat import read_hours
from headway.model.time import span
from headway.store.codec import job_cursor, letter_cursor, read_job_cursor, read_letter_cursor
from headway.wire.heartbeats import Hours
from headway.wire.names import (
    JobCursor,
    LetterCursor,
    SomeLength,
    in_milliseconds,
)


def pattern(kind: object) -> str:
    found = msgspec.json.schema(kind)["pattern"]
    assert isinstance(found, str)
    return found


@given(st.from_regex(pattern(SomeLength), fullmatch=True))
def test_every_length_that_is_let_through_is_one_longer_than_0(text: str) -> None:
    assert span(text, "length") > 0


@pytest.mark.parametrize("text", ["0", "0s", "0.0h", "", "5", "1y", "-1s", "99999d", "1h 30m"])
def test_no_other_length_is(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(text, SomeLength)


@given(st.from_regex(pattern(Hours), fullmatch=True))
def test_h1_every_part_of_a_day_that_is_let_through_can_be_read(text: str) -> None:
    hours = read_hours(text)
    assert hours.start != hours.end


@given(st.from_regex(pattern(JobCursor), fullmatch=True))
def test_every_cursor_of_jobs_that_is_let_through_can_be_read(cursor: str) -> None:
    agent, name = read_job_cursor(cursor)
    assert isinstance(agent, str)
    assert isinstance(name, str)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), st.text("ab\n"))
def test_every_cursor_of_jobs_that_we_give_is_let_through(agent: str, name: str) -> None:
    assert re.search(pattern(JobCursor), job_cursor(agent, name))


@given(st.from_regex(pattern(LetterCursor), fullmatch=True))
def test_every_cursor_of_letters_that_is_let_through_can_be_read(cursor: str) -> None:
    at, _ = read_letter_cursor(cursor)
    assert at >= 0


def test_the_cursor_of_letters_that_we_give_is_let_through() -> None:
    assert re.search(pattern(LetterCursor), letter_cursor(1_763_204_400_000_000, "r-1:reply"))


@pytest.mark.parametrize(
    ("microseconds", "told"),
    [(0, 0), (1, 0.001), (1_000, 1), (1_763_204_400_123_456, 1_763_204_400_123.456)],
)
def test_milliseconds_are_whole_where_they_are_and_lose_nothing(
    microseconds: int, told: float
) -> None:
    given_ = in_milliseconds(microseconds)
    assert given_ == told
    assert isinstance(given_, int) is (microseconds % 1_000 == 0)
    assert round(given_ * 1_000) == microseconds
