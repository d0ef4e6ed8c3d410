"""The frames of RPC: {id, method, params} one way, {id, result} or {id, error} the other, events in between."""

from typing import Annotated

import msgspec
from msgspec import Meta

from headway.wire.base import Answer, Request
from headway.wire.errors import ErrorAnswer

CallId = Annotated[str, Meta(max_length=128)] | int


class CallFrame(Request, frozen=True, kw_only=True):
    """What a client sends. Its id is its own choice, and the answer has the same."""

    id: CallId
    method: Annotated[str, Meta(max_length=128)]
    params: msgspec.Raw = msgspec.Raw(b"{}")


class ErrorFrame(Answer, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a call that was refused or failed; id is null where the call's own could not be read."""

    id: CallId | None
    error: ErrorAnswer
    retry_after: Annotated[
        int | None, Meta(description="In how many seconds to try again, where that is known.")
    ] = None


class MethodAnswer(Answer, frozen=True, kw_only=True):
    """A method that can be called."""

    name: str
    scope: Annotated[str | None, Meta(description="What a token needs for it; null: nothing.")]
    summary: str
    params: Annotated[dict[str, object], Meta(description="A JSON Schema.")]
    result: Annotated[dict[str, object], Meta(description="A JSON Schema.")]


class FrameAnswer(Answer, frozen=True, kw_only=True):
    """A frame that comes without being asked for each time."""

    event: str
    summary: str
    data: Annotated[dict[str, object], Meta(description="A JSON Schema.")]


class DiscoverAnswer(Answer, frozen=True, kw_only=True):
    """All that can be called, and all that may come."""

    version: Annotated[str, Meta(description="The version of Headway.")]
    methods: tuple[MethodAnswer, ...]
    frames: tuple[FrameAnswer, ...]
    schemas: Annotated[
        dict[str, object], Meta(description="The JSON Schemas that the others refer to, by name.")
    ]
