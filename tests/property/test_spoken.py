"""What is shown to people is understood when they say it back, in every zone and around changes of the clocks."""

import re

from hypothesis import given
from hypothesis import strategies as st

from headway.core.spoken import read_time, show_span, show_wall
from headway.model.errors import InvalidInput
from headway.model.time import DAY, MINUTE, SECOND, instant_text

ZONES = st.sampled_from(
    [
        "UTC",
        "America/Sao_Paulo",
        "America/New_York",
        "Europe/Paris",
        "Australia/Lord_Howe",
        "Asia/Kolkata",
        "Pacific/Kiritimati",
    ]
)
YEAR = 365 * DAY
OFFSET = re.compile(r"\d[+-]\d\d:\d\d ")
NOWS = st.integers(50 * YEAR, 80 * YEAR)


@given(now=NOWS, away=st.integers(-YEAR // 2 // SECOND, YEAR // SECOND), zone=ZONES)
def test_a_shown_time_means_the_same_instant_when_it_is_said(
    now: int, away: int, zone: str
) -> None:
    instant = (now // SECOND + away) * SECOND
    shown = show_wall(instant, zone)
    comes_twice = OFFSET.search(shown)
    assert comes_twice or read_time(shown, now, "Asia/Tokyo") == instant


@given(now=NOWS, instant=NOWS.map(lambda instant: instant // 1_000 * 1_000), zone=ZONES)
def test_rfc_3339_is_exact_whatever_the_zone(now: int, instant: int, zone: str) -> None:
    assert read_time(instant_text(instant), now, zone) == instant


@given(now=NOWS, hour=st.integers(0, 23), minute=st.integers(0, 59), zone=ZONES)
def test_a_time_of_day_is_ahead_and_at_most_a_day_away(
    now: int, hour: int, minute: int, zone: str
) -> None:
    instant = read_time(f"{hour}:{minute:02}", now, zone)
    # A day has 25 hours where the clocks go back, and a gap moves a time by as much as it is long.
    assert now < instant <= now + DAY + 120 * MINUTE


WORDS = st.sampled_from(
    [
        *("at", "in", "on", "next", "this", "of", "a", "an", "half", "and", "from", "now", ","),
        *("today", "tonight", "tomorrow", "monday", "fri", "dec", "24", "24th", "2027"),
        *("9", "9am", "18:00", "25:00", "noon", "midnight", "2026-12-24", "Z", "+02:00"),
        *("20m", "minutes", "hour", "UTC", "Europe/Paris"),
    ]
)


def understood(text: str, now: int, zone: str) -> int | str:
    """The instant, or the field that was refused."""
    try:
        return read_time(text, now, zone)
    except InvalidInput as error:
        return error.field


@given(words=st.lists(WORDS, max_size=6), now=NOWS, zone=ZONES)
def test_whatever_is_said_is_an_instant_or_a_refusal(words: list[str], now: int, zone: str) -> None:
    meant = understood(" ".join(words), now, zone)
    assert isinstance(meant, int) or meant == "at"


@given(text=st.text(max_size=40), now=NOWS)
def test_any_text_is_an_instant_or_a_refusal(text: str, now: int) -> None:
    meant = understood(text, now, "Europe/Paris")
    assert isinstance(meant, int) or meant == "at"


@given(span=st.integers(0, 10 * YEAR))
def test_a_span_is_shown_to_a_third_of_itself_at_worst(span: int) -> None:
    units = {"second": SECOND, "minute": MINUTE, "hour": 60 * MINUTE, "day": DAY}
    words = show_span(span).split()
    said = sum(
        int(count) * units[unit.removesuffix("s")]
        for count, unit in zip(words[::2], words[1::2], strict=True)
    )
    assert abs(said - span) <= max(span // 3, SECOND)
