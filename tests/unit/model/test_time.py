"""Durations and instants as SPEC section G writes them."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo

import pytest

from headway.model.errors import InvalidInput
from headway.model.time import (
    DAY,
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    as_datetime,
    as_timedelta,
    instant_of,
    instant_text,
    span,
    span_text,
)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("500ms", 500 * MILLISECOND),
        ("30s", 30 * SECOND),
        ("10m", 10 * MINUTE),
        ("1.5h", 90 * MINUTE),
        ("1d", DAY),
        ("1h30m", HOUR + 30 * MINUTE),
        ("1d2h3m4s5ms", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND + 5 * MILLISECOND),
        ("0.5ms", 500),
        ("0s", 0),
        ("0", 0),
        (0, 0),
        (timedelta(0), 0),
        (timedelta(minutes=2, microseconds=3), 2 * MINUTE + 3),
    ],
)
def test_g_a_duration_means_what_it_says(written: object, meant: int) -> None:
    assert span(written, "wait") == meant


def test_g_500ms_is_never_minutes() -> None:
    assert span("500ms", "debounce") == MINUTE // 120


@pytest.mark.parametrize(
    "written",
    [
        "500x",
        "5 minutes",
        "",
        " ",
        "-1s",
        "+1s",
        "1h 30m",
        " 1s",
        "1s ",
        "1s\n",
        "s",
        "1",
        "1.s",
        ".5s",
        "1.5.5s",
        "1e3s",
        "1S",
        "1min",
        "1w",
        "P1D",
        "inf",
        "nan",
        "infs",
        "\u0663s",
        "\uff11s",
        "9" * 400 + "s",
        True,
        False,
        5,
        -1,
        0.0,
        1.5,
        None,
        [],
        b"1s",
        timedelta(seconds=-1),
    ],
)
def test_g_anything_else_is_refused_by_field(written: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        span(written, "debounce")
    assert refused.value.field == "debounce"
    assert refused.value.value == written
    assert "500ms, 30s, 10m, 1.5h, 1d or 1h30m" in refused.value.allowed


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "0s"),
        (1, "0.001ms"),
        (800 * MILLISECOND, "800ms"),
        (2 * SECOND, "2s"),
        (2500 * MILLISECOND, "2.5s"),
        (MINUTE, "1m"),
        (90 * MINUTE, "1h30m"),
        (DAY + 5 * SECOND, "1d5s"),
    ],
)
def test_g_a_span_is_shown_as_people_write_it(microseconds: int, text: str) -> None:
    assert span_text(microseconds) == text
    assert span(text, "again") == microseconds


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), "1970-01-01T00:00:00.000Z"),
        (datetime(2025, 6, 15, 15, 6, 40, 123456, UTC), "2025-06-15T15:06:40.123Z"),
        (
            datetime(2025, 6, 15, 15, 6, 40, tzinfo=timezone(timedelta(hours=2))),
            "2025-06-15T13:06:40.000Z",
        ),
        (datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), "9999-12-31T23:59:59.999Z"),
    ],
)
def test_g_instants_are_shown_as_rfc_3339_in_utc(moment: datetime, text: str) -> None:
    assert instant_text(instant_of(moment, "due")) == text


def test_g_an_instant_keeps_every_microsecond() -> None:
    moment = datetime(2038, 1, 19, 3, 14, 7, 1, UTC)
    assert as_datetime(instant_of(moment, "due")) == moment
    assert instant_of(moment + timedelta(microseconds=1), "due") == instant_of(moment, "due") + 1
    assert as_timedelta(3) == timedelta(microseconds=3)


class _Nowhere(tzinfo):
    """A time zone that does not know its offset: such a datetime is as good as naive."""

    def utcoffset(self, moment: datetime | None, /) -> timedelta | None:
        return None

    def dst(self, moment: datetime | None, /) -> timedelta | None:
        return None

    def tzname(self, moment: datetime | None, /) -> str | None:
        return None


@pytest.mark.parametrize(
    "naive",
    [datetime(2025, 6, 15), datetime(2025, 6, 15, tzinfo=_Nowhere())],  # noqa: DTZ001
)
def test_g_a_naive_datetime_is_refused_by_field(naive: datetime) -> None:
    with pytest.raises(InvalidInput, match=r"^sent_at: .* with a time zone$"):
        instant_of(naive, "sent_at")
