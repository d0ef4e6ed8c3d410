"""Names and numbers that many requests and answers have in common, with their bounds."""

from typing import Annotated, TypeAlias

from msgspec import Meta

from headway.model.settings import MAX_NAME
from headway.model.time import A_DURATION, DAY, MILLISECOND
from headway.wire.base import ALLOWED

NAME = r"^[^\u0000]+$"
TEXT = r"^[^\u0000]*$"
IS_NAME = {ALLOWED: "a text that is not empty and has no NUL in it"}
IS_TEXT = {ALLOWED: "a text without NUL in it"}
IS_CURSOR = {ALLOWED: "the `cursor` of the page before"}
_LATEST_MS = 251_000_000_000_000
_TEXT = r'"([^"\\\u0000-\u001f]|\\["\\/bfnrt]|\\u00(0[1-9a-f]|[1-9a-f][0-9a-f]))*"'
"""A text in JSON, as our cursors have them."""
_GOES_ON = "Where the next page begins: the `cursor` of the page before."
_LONGEST_MS = 1_000 * 366 * DAY // MILLISECOND

AgentName: TypeAlias = Annotated[
    str,
    Meta(min_length=1, max_length=MAX_NAME, pattern=NAME, extra=IS_NAME, examples=["support"]),
]
SessionName: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_NAME,
        pattern=NAME,
        extra=IS_NAME,
        examples=["agent:support:telegram:dm:42"],
    ),
]
LaneName: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=MAX_NAME, pattern=NAME, extra=IS_NAME, examples=["main"])
]
Name: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=MAX_NAME, pattern=NAME, extra=IS_NAME)
]
Line: TypeAlias = Annotated[str, Meta(max_length=4_096, pattern=TEXT, extra=IS_TEXT)]
"""A text that may be empty, as long as a path or an address."""
Zone: TypeAlias = Annotated[
    str,
    Meta(
        description="An IANA time zone.",
        min_length=1,
        max_length=64,
        examples=["Europe/Paris"],
        extra_json_schema={"format": "time-zone"},
    ),
]
Milliseconds: TypeAlias = Annotated[
    float, Meta(ge=0, le=_LONGEST_MS, description="A duration in milliseconds.")
]
SomeMilliseconds: TypeAlias = Annotated[
    float, Meta(ge=0.001, le=_LONGEST_MS, description="A duration in milliseconds, longer than 0.")
]
MomentMs: TypeAlias = Annotated[
    float,
    Meta(ge=0, le=_LATEST_MS, description="An instant: milliseconds since 1970 UTC."),
]
ShownLength: TypeAlias = Annotated[str, Meta(description="A duration.", examples=["1h30m"])]
SomeLength: TypeAlias = Annotated[
    str,
    Meta(
        description="A duration, longer than 0: 500ms, 30s, 10m, 1.5h, 1d, 1h30m.",
        examples=["30m"],
        pattern=(
            r"^(?=.*[1-9])([0-9]{1,9}(\.[0-9]{1,3})?s|[0-9]{1,9}ms|[0-9]{1,7}(\.[0-9]{1,3})?m"
            r"|[0-9]{1,5}(\.[0-9]{1,3})?h|[0-9]{1,4}(\.[0-9]{1,3})?d){1,4}$"
        ),
        extra={ALLOWED: f"{A_DURATION}, longer than 0"},
    ),
]
NumberCursor: TypeAlias = Annotated[
    str, Meta(description=_GOES_ON, pattern=r"^[0-9]{1,18}$", extra=IS_CURSOR)
]
JobCursor: TypeAlias = Annotated[
    str, Meta(description=_GOES_ON, pattern=rf"^\[{_TEXT},{_TEXT}\]$", extra=IS_CURSOR)
]
LetterCursor: TypeAlias = Annotated[
    str,
    Meta(description=_GOES_ON, pattern=rf"^\[(0|[1-9][0-9]{{0,17}}),{_TEXT}\]$", extra=IS_CURSOR),
]
Number: TypeAlias = Annotated[int, Meta(ge=0)]


def in_milliseconds(microseconds: int) -> float:
    """Whole milliseconds where they are; else with the microseconds behind the point."""
    whole, rest = divmod(microseconds, MILLISECOND)
    return microseconds / MILLISECOND if rest else whole
