"""What RPC tells about itself. The reference page is drawn from the same."""

import inspect
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

import msgspec

from headway.gateway.rpc.method import Method
from headway.model.events import CATALOGUE, Event
from headway.model.telling import kind_of
from headway.wire.base import Request
from headway.wire.chat import ChatOutput, ChatReply, ChatTyping
from headway.wire.rpc import DiscoverAnswer, FrameAnswer, MethodAnswer

FRAMES: dict[str, type[msgspec.Struct]] = {
    "chat.typing": ChatTyping,
    "chat.output": ChatOutput,
    "chat.reply": ChatReply,
}
"""What comes unasked for messages that were sent; the catalogue of events comes on subscription."""


def discovery(methods: Iterable[Method[Request, msgspec.Struct]]) -> DiscoverAnswer:
    """All methods by name, and all frames."""
    table = sorted(methods, key=lambda method: method.name)
    types: list[type[msgspec.Struct]] = []
    for method in table:
        types += (method.params, method.result)
    types += FRAMES.values()
    found, schemas = msgspec.json.schema_components(
        types, schema_hook=_anything, ref_template="#/schemas/{name}"
    )
    shown = iter(found)
    answers = tuple(
        MethodAnswer(
            name=method.name,
            scope=method.scope,
            summary=method.doc,
            params=next(shown),
            result=next(shown),
        )
        for method in table
    )
    frames = tuple(
        FrameAnswer(event=name, summary=_doc(kind), data=next(shown))
        for name, kind in FRAMES.items()
    )
    told = tuple(
        FrameAnswer(event=kind_of(kind), summary=_doc(kind), data={"type": "object"})
        for kind in CATALOGUE
    )
    return DiscoverAnswer(
        version=_version(), methods=answers, frames=frames + told, schemas=schemas
    )


def _doc(kind: type[msgspec.Struct | Event]) -> str:
    return inspect.getdoc(kind) or ""


def _anything(kind: type) -> dict[str, object]:
    """Where any JSON may stand."""
    if kind is object:
        return {"description": "Any JSON."}
    raise NotImplementedError


def _version() -> str:
    try:
        return version("headway")
    except PackageNotFoundError:
        return "unknown"
