"""Instants and durations.

An instant is a whole number of microseconds since 1970 UTC, a span a whole number of microseconds. Whole
numbers compare exactly, cost nothing to add and survive every store unrounded; people meet them only as
RFC 3339 text and as durations such as `1h30m`.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TypeAlias

from headway.model.errors import InvalidInput

Instant: TypeAlias = int
Span: TypeAlias = int

MILLISECOND: Span = 1_000
SECOND: Span = 1_000_000
MINUTE: Span = 60 * SECOND
HOUR: Span = 60 * MINUTE
DAY: Span = 24 * HOUR

_UNITS: dict[str, Span] = {
    "ms": MILLISECOND,
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
    "d": DAY,
}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_WHOLE = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h|d))+")
_LONGEST: Span = 1_000 * 366 * DAY
_LONGEST_TEXT = 64
A_DURATION = "a duration such as 500ms, 30s, 10m, 1.5h, 1d or 1h30m"
"""What a duration looks like, for whoever wrote something else."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def span(value: object, field: str) -> Span:
    """A span from what a person wrote: `1h30m`, a timedelta, or a plain 0."""
    match value:
        case timedelta():
            microseconds = value // timedelta(microseconds=1)
        case bool():
            raise InvalidInput(field, value, A_DURATION)
        case int() if value == 0:
            microseconds = 0
        case "0":
            microseconds = 0
        case str() if len(value) <= _LONGEST_TEXT and _WHOLE.fullmatch(value):
            parts = _PART.findall(value)
            microseconds = round(sum(float(number) * _UNITS[unit] for number, unit in parts))
        case _:
            raise InvalidInput(field, value, A_DURATION)
    if not 0 <= microseconds <= _LONGEST:
        raise InvalidInput(field, value, f"{A_DURATION}, from 0 to a thousand years")
    return microseconds


def span_text(microseconds: Span) -> str:
    """The shortest way to write a span for people: `800ms`, `2s`, `1h30m`."""
    if microseconds < SECOND:
        milliseconds = microseconds / MILLISECOND
        return f"{milliseconds:g}ms" if milliseconds else "0s"
    if microseconds < MINUTE:
        return f"{microseconds / SECOND:.3g}s"
    rest = round(microseconds / SECOND)
    text = ""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if count:
            text += f"{count}{unit}"
    return text


def as_timedelta(microseconds: Span) -> timedelta:
    return timedelta(microseconds=microseconds)


def as_datetime(instant: Instant) -> datetime:
    return _EPOCH + timedelta(microseconds=instant)


def instant_of(moment: datetime, field: str) -> Instant:
    """The instant of an aware datetime; a naive one has no meaning here and is refused."""
    if moment.utcoffset() is None:
        raise InvalidInput(field, moment, "a datetime with a time zone")
    return (moment - _EPOCH) // timedelta(microseconds=1)


def instant_text(instant: Instant) -> str:
    """RFC 3339 in UTC, to the millisecond."""
    second, rest = divmod(instant, SECOND)
    return f"{_second_text(second)}.{rest // MILLISECOND:03}Z"


@lru_cache(maxsize=64)
def _second_text(second: int) -> str:
    """Most instants that are written are of the same few seconds."""
    return as_datetime(second * SECOND).replace(tzinfo=None).isoformat(timespec="seconds")
