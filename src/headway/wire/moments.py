"""Instants as callers write them: RFC 3339, or how long from now."""

import re
from datetime import UTC, datetime
from typing import Annotated, TypeAlias

from msgspec import Meta

from headway.model.errors import InvalidInput
from headway.model.time import span
from headway.wire.base import Length

_RFC_3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_BEGINS = re.compile(r"\d{4}-", re.ASCII)
_ALLOWED = "an instant in RFC 3339, such as 2026-11-15T09:30:00Z"
_LENGTH = Length.__metadata__[0]  # type: ignore[attr-defined]

When: TypeAlias = Annotated[
    str,
    Meta(
        description="An instant in RFC 3339, or a duration from now such as 30s or 1h30m.",
        examples=["30s", "2026-11-15T09:30:00Z"],
        max_length=64,
        extra_json_schema={"anyOf": [{"format": "date-time"}, {"pattern": _LENGTH.pattern}]},
    ),
]


def read_moment(text: str, field: str) -> datetime:
    """The instant that a text means."""
    if not _RFC_3339.fullmatch(text):
        raise InvalidInput(field, text, _ALLOWED)
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(field, text, f"{_ALLOWED}, from the year 1 to 9999") from None


def read_when(text: str, field: str) -> datetime | str:
    """An instant, or a duration as it was written: the façade counts it from now."""
    if _BEGINS.match(text):
        return read_moment(text, field)
    try:
        span(text, field)
    except InvalidInput as wrong:
        raise InvalidInput(field, text, f"{wrong.allowed}; or {_ALLOWED}") from None
    return text
