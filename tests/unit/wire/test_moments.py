"""Instants as callers write them."""

from datetime import UTC, datetime

import pytest

from headway.model.errors import InvalidInput
from headway.wire.moments import read_moment, read_when


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-15T09:30:00Z", datetime(2026, 11, 15, 9, 30, tzinfo=UTC)),
        ("2026-11-15t09:30:00z", datetime(2026, 11, 15, 9, 30, tzinfo=UTC)),
        ("2026-11-15T09:30:00.25+01:00", datetime(2026, 11, 15, 8, 30, 0, 250_000, tzinfo=UTC)),
        ("2028-02-29T00:00:00-05:30", datetime(2028, 2, 29, 5, 30, tzinfo=UTC)),
    ],
)
def test_rfc_3339_is_read(text: str, moment: datetime) -> None:
    assert read_moment(text, "at") == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-11-15",
        "2026-11-15T09:30:00",
        "2026-11-15 09:30:00Z",
        "2026-02-30T00:00:00Z",
        "20261115T093000Z",
        "2026-11-15T24:30:00Z",
        "2026-11-15T09:30Z",
        "now",
        "٢٠٢٦-11-15T09:30:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
    ],
)
def test_anything_else_is_an_error_that_names_the_field(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"sentAt: .* RFC 3339"):
        read_moment(text, "sentAt")


def test_what_is_neither_is_told_both() -> None:
    with pytest.raises(InvalidInput, match=r"deadline: 'soon' .* a duration .*; or an instant"):
        read_when("soon", "deadline")


def test_a_duration_is_left_to_the_facade() -> None:
    assert read_when("30s", "deadline") == "30s"
    assert read_when("2026-11-15T09:30:00Z", "deadline") == datetime(
        2026, 11, 15, 9, 30, tzinfo=UTC
    )
