"""The base of all that goes over the wire, and its scalars."""

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from headway.model.time import A_DURATION, Instant, Span, instant_text, span_text

ALLOWED = "allowed"
"""Under this name the `extra` of a text with a pattern says in words what the pattern lets through."""


class Request(
    msgspec.Struct, rename="camel", frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What a caller sends. A field that does not exist is an error (T-2)."""


class Answer(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """What a caller gets. Fields may be added in later versions."""


Moment: TypeAlias = Annotated[
    str,
    Meta(
        description="An instant in RFC 3339, UTC.",
        examples=["2026-11-15T09:30:00.000Z"],
        extra_json_schema={"format": "date-time"},
    ),
]
Length: TypeAlias = Annotated[
    str,
    Meta(
        description="A duration: 500ms, 30s, 10m, 1.5h, 1d, 1h30m, or 0.",
        examples=["30s"],
        pattern=(
            r"^(0|([0-9]{1,9}(\.[0-9]{1,4})?(ms|s)|[0-9]{1,7}(\.[0-9]{1,4})?m"
            r"|[0-9]{1,5}(\.[0-9]{1,4})?h|[0-9]{1,4}(\.[0-9]{1,4})?d){1,4})$"
        ),
        extra={ALLOWED: A_DURATION},
    ),
]
Cursor: TypeAlias = Annotated[
    str, Meta(description="Where the next page begins: the `cursor` of the page before.")
]
Limit: TypeAlias = Annotated[int, Meta(ge=1, le=1000, description="How many at most.")]


def moment(instant: Instant) -> str:
    return instant_text(instant)


def maybe_moment(instant: Instant | None) -> str | None:
    return None if instant is None else instant_text(instant)


def maybe_length(span: Span | None) -> str | None:
    return None if span is None else span_text(span)
