"""Times as people say and read them: one meaning or a refusal, the zone always shown, the clocks as in C-4."""

from datetime import UTC, datetime

import pytest

from headway.core.spoken import read_time, show_span, show_time, show_wall
from headway.model.errors import InvalidInput
from headway.model.time import DAY, HOUR, MILLISECOND, MINUTE, SECOND, instant_of

SAO_PAULO = "America/Sao_Paulo"
NEW_YORK = "America/New_York"


def utc(*parts: int) -> int:
    year, month, day, hour, minute = (*parts, 0, 0)[:5]
    return instant_of(datetime(year, month, day, hour, minute, tzinfo=UTC), "then")


NOW = utc(2026, 11, 15, 16)
"""A Sunday, 13:00 in São Paulo, three hours behind UTC."""


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("in 20 minutes", 20 * MINUTE),
        ("in 20m", 20 * MINUTE),
        ("20m", 20 * MINUTE),
        ("20 min", 20 * MINUTE),
        ("20 minutes from now", 20 * MINUTE),
        ("1h30m", 90 * MINUTE),
        ("1.5h", 90 * MINUTE),
        ("1h 30m", 90 * MINUTE),
        ("in 1 hour and 30 minutes", 90 * MINUTE),
        ("in 1 hour, 30 minutes", 90 * MINUTE),
        ("in an hour", HOUR),
        ("in a minute", MINUTE),
        ("in half an hour", 30 * MINUTE),
        ("in 500ms", 500 * MILLISECOND),
        ("45s", 45 * SECOND),
        ("45 secs", 45 * SECOND),
        ("in 2 days", 2 * DAY),
        ("in a week", 7 * DAY),
        ("IN 2 WEEKS", 14 * DAY),
    ],
)
def test_spans_from_now(text: str, span: int) -> None:
    assert read_time(text, NOW, SAO_PAULO) == NOW + span


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("tomorrow 9am", utc(2026, 11, 16, 12)),
        ("Tomorrow at 9 AM", utc(2026, 11, 16, 12)),
        ("tomorrow, 9:30 a.m.", utc(2026, 11, 16, 12, 30)),
        ("9am tomorrow", utc(2026, 11, 16, 12)),
        ("  tomorrow   9am ", utc(2026, 11, 16, 12)),
        ("the day after tomorrow 12pm", utc(2026, 11, 17, 15)),
        ("day after tomorrow 12pm", utc(2026, 11, 17, 15)),
        ("thurs 12pm", utc(2026, 11, 19, 15)),
        ("1 sept 12pm", utc(2027, 9, 1, 15)),
        ("tomorrow 12am", utc(2026, 11, 16, 3)),
        ("today 17:30", utc(2026, 11, 15, 20, 30)),
        ("today 9:00", utc(2026, 11, 15, 12)),
        ("tonight 8pm", utc(2026, 11, 15, 23)),
        ("tonight at midnight", utc(2026, 11, 16, 3)),
        ("monday 9:00", utc(2026, 11, 16, 12)),
        ("mon 9:00", utc(2026, 11, 16, 12)),
        ("on monday at 9:00", utc(2026, 11, 16, 12)),
        ("17:30 on thursday", utc(2026, 11, 19, 20, 30)),
        ("tues 5pm", utc(2026, 11, 17, 20)),
        ("sunday 14:00", utc(2026, 11, 15, 17)),
        ("sunday 13:00", utc(2026, 11, 22, 16)),
        ("sunday 9am", utc(2026, 11, 22, 12)),
        ("next sunday 14:00", utc(2026, 11, 22, 17)),
        ("next friday at 5pm", utc(2026, 11, 20, 20)),
        ("noon", utc(2026, 11, 16, 15)),
        ("midday", utc(2026, 11, 16, 15)),
        ("midnight", utc(2026, 11, 16, 3)),
        ("18:00", utc(2026, 11, 15, 21)),
        ("at 6pm", utc(2026, 11, 15, 21)),
        ("13:00", utc(2026, 11, 16, 16)),
        ("09:00", utc(2026, 11, 16, 12)),
        ("2026-12-24 18:00", utc(2026, 12, 24, 21)),
        ("2026-12-24T18:00", utc(2026, 12, 24, 21)),
        ("2026-12-24T18:00:00", utc(2026, 12, 24, 21)),
        ("2026-12-24 at 6pm", utc(2026, 12, 24, 21)),
        ("2026-12-24T18:00Z", utc(2026, 12, 24, 18)),
        ("2026-12-24t18:00:00z", utc(2026, 12, 24, 18)),
        ("2026-12-24T18:00:00.5+02:00", utc(2026, 12, 24, 16) + SECOND // 2),
        ("2026-12-24 18:00 -0500", utc(2026, 12, 24, 23)),
        ("2026-12-24 18:00+05", utc(2026, 12, 24, 13)),
        ("24 dec 18:00", utc(2026, 12, 24, 21)),
        ("24th of december 6pm", utc(2026, 12, 24, 21)),
        ("Dec 24th 2027, 6pm", utc(2027, 12, 24, 21)),
        ("thu 24 dec 18:00", utc(2026, 12, 24, 21)),
        ("14 nov 18:00", utc(2027, 11, 14, 21)),
        ("29 feb 9am", utc(2028, 2, 29, 12)),
        ("tomorrow 9am Europe/Paris", utc(2026, 11, 16, 8)),
        ("18:00 UTC", utc(2026, 11, 15, 18)),
        ("18:00 utc", utc(2026, 11, 15, 18)),
        ("2020-01-01 00:00", utc(2020, 1, 1, 3)),
    ],
)
def test_days_and_clocks_in_the_zone(text: str, instant: int) -> None:
    assert read_time(text, NOW, SAO_PAULO) == instant


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("tomorrow", "a time of day"),
        ("friday", "a time of day"),
        ("2026-12-24", "a time of day"),
        ("24 dec", "a time of day"),
        ("at 9", "am, pm or minutes"),
        ("9", "am, pm or minutes"),
        ("tomorrow at 9", "am, pm or minutes"),
        ("tomorrow 9 o'clock", "am, pm or minutes"),
        ("tomorrow midnight", "two midnights"),
        ("monday midnight", "two midnights"),
        ("tonight 9am", "17:00"),
        ("fri 24 dec 18:00", "day of the week"),
        ("in 400000 weeks", "thousand years"),
        ("0001-01-01 00:00", "in the years"),
        ("9999-12-31 23:59Z", "in the years"),
    ],
)
def test_what_could_mean_two_things_is_refused_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises(InvalidInput, match=hint):
        read_time(text, NOW, SAO_PAULO)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "soon",
        "500x",
        "in 20",
        "20",
        "am",
        "in a m",
        "10/11",
        "10/11 9am",
        "tomorow 9am",
        "tomorrow 9am please",
        "9am 10am",
        "25:00",
        "24:00",
        "9:60",
        "13pm",
        "0am",
        "2026-13-01 10:00",
        "2026-02-30 10:00",
        "30 feb 9am",
        "29 feb 2027 9am",
        "-5m",
        "in -5 minutes",
        "yesterday 9am",
        "in a month",
        "٣ minutes",
        "tomorrow 9am Mars/Phobos",
        "x" * 10_000,
        None,
        5,
        True,
        b"noon",
    ],
)
def test_what_means_nothing_is_refused_by_the_name_of_its_field(text: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_time(text, NOW, SAO_PAULO, "when")
    assert caught.value.field == "when"


def test_a_refusal_gives_examples_that_are_understood() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_time("soon", NOW, "UTC")
    examples = caught.value.allowed.split('"')[1::2]
    assert len(examples) == 6
    for example in examples:
        assert read_time(example, NOW, "UTC") > NOW


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_time("noon", NOW, "Mars/Phobos")
    assert caught.value.field == "tz"


def test_c4_a_wall_time_that_is_left_out_means_right_after_the_gap() -> None:
    assert read_time("2026-03-08 02:30", NOW, NEW_YORK) == utc(2026, 3, 8, 7)
    evening = utc(2026, 3, 8, 0)
    assert read_time("tomorrow 2:30", evening, NEW_YORK) == utc(2026, 3, 8, 7)
    # Lord Howe moves its clocks by half an hour.
    assert read_time("2026-10-04 02:15", NOW, "Australia/Lord_Howe") == utc(2026, 10, 3, 15, 30)


def test_c4_a_wall_time_that_comes_twice_means_the_first() -> None:
    assert read_time("2026-11-01 01:30", NOW, NEW_YORK) == utc(2026, 11, 1, 5, 30)
    # Between the two it has passed: the next one is tomorrow's.
    between = utc(2026, 11, 1, 6, 0)
    assert read_time("1:30", between, NEW_YORK) == utc(2026, 11, 2, 6, 30)


def test_a_day_is_as_long_as_its_zone_makes_it() -> None:
    before = utc(2026, 3, 7, 17)
    assert read_time("tomorrow 12:00", before, NEW_YORK) == before + 23 * HOUR
    assert read_time("in 1 day", before, NEW_YORK) == before + 24 * HOUR


@pytest.mark.parametrize(
    ("instant", "zone", "shown"),
    [
        (utc(2026, 11, 17, 12), SAO_PAULO, "Tue 17 Nov 09:00 America/Sao_Paulo (in 2 days)"),
        (utc(2026, 11, 17, 12), "UTC", "Tue 17 Nov 12:00 UTC (in 2 days)"),
        (NOW + 90 * MINUTE, "UTC", "Sun 15 Nov 17:30 UTC (in 1 hour 30 minutes)"),
        (NOW + 20 * SECOND, "UTC", "Sun 15 Nov 16:00:20 UTC (in 20 seconds)"),
        (NOW, "UTC", "Sun 15 Nov 16:00 UTC (now)"),
        (NOW + 1, "UTC", "Sun 15 Nov 16:00 UTC (now)"),
        (NOW - HOUR, "UTC", "Sun 15 Nov 15:00 UTC (1 hour ago)"),
        (utc(2027, 1, 1), "UTC", "Fri 1 Jan 2027 00:00 UTC (in 46 days)"),
        # The year is that of the zone: there it is still 2026.
        (utc(2027, 1, 1), SAO_PAULO, "Thu 31 Dec 21:00 America/Sao_Paulo (in 46 days)"),
    ],
)
def test_a_time_is_shown_with_its_zone_and_how_far_it_is(
    instant: int, zone: str, shown: str
) -> None:
    assert show_time(instant, zone, NOW) == shown


def test_c4_an_hour_that_comes_twice_is_shown_with_its_offset() -> None:
    assert show_wall(utc(2026, 11, 1, 5, 30), NEW_YORK, NOW) == (
        "Sun 1 Nov 01:30-04:00 America/New_York"
    )
    assert show_wall(utc(2026, 11, 1, 6, 30), NEW_YORK, NOW) == (
        "Sun 1 Nov 01:30-05:00 America/New_York"
    )
    assert show_wall(utc(2026, 11, 1, 7, 30), NEW_YORK) == "Sun 1 Nov 2026 02:30 America/New_York"


@pytest.mark.parametrize(
    ("span", "shown"),
    [
        (0, "0 seconds"),
        (SECOND, "1 second"),
        (59 * SECOND, "59 seconds"),
        (60 * SECOND - 1, "1 minute"),
        (89 * SECOND, "1 minute"),
        (90 * SECOND, "2 minutes"),
        (HOUR - SECOND, "1 hour"),
        (HOUR, "1 hour"),
        (HOUR + MINUTE, "1 hour 1 minute"),
        (6 * HOUR - 1, "6 hours"),
        (35 * HOUR, "35 hours"),
        (36 * HOUR, "2 days"),
        (400 * DAY, "400 days"),
    ],
)
def test_spans_for_people(span: int, shown: str) -> None:
    assert show_span(span) == shown
