"""An endpoint: which path and method lead to which operation, and where in a request its fields are."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType

import msgspec

from headway.gateway.operations import Operation
from headway.model.words import Scope
from headway.wire.base import Request

_NOTHING: Mapping[str, str] = MappingProxyType({})
BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})
_PARAMETER = re.compile(r"\{(\w+)\}")


class Endpoint(msgspec.Struct, frozen=True):
    """One line of the table of routes. OpenAPI is drawn from it, and requests are bound by it.

    The operation's struct is filled from the path, where that names a field; from the query, for GET and DELETE
    and for fields that `query` names; and else from the body.
    """

    method: str
    path: str
    """With the names of the wire: `/tasks/{taskId}`."""
    operation: Operation  # type: ignore[type-arg]  # the table holds operations of all kinds
    tag: str
    status: int = 200
    query: tuple[str, ...] = ()
    headers: Mapping[str, str] = _NOTHING
    """Headers that fill a field: `{"Idempotency-Key": "idempotencyKey"}`."""
    location: str = ""
    """The path of what was made, filled from the answer: `/tasks/{taskId}`."""
    also: Mapping[int, str] = MappingProxyType({})
    """Other good statuses, and when they are given; `choose` says which it is."""
    choose: Callable[[object], int] | None = None
    refusals: tuple[int, ...] = ()
    """What this one can refuse with, beside what all can: 404, 409, 429 …"""
    media: str = "application/json"
    """Of anything else, the operation answers an ASGI app that sends it."""
    asked_example: Mapping[str, object] | None = None
    answer_example: object = None

    @property
    def scope(self) -> Scope | None:
        return self.operation.scope

    @property
    def streams(self) -> bool:
        """Whether a browser may have to show its token in the query, because it can set no header."""
        return self.media == "text/event-stream"

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that are in the path."""
        return tuple(_PARAMETER.findall(self.path))


class Fields(msgspec.Struct, frozen=True):
    """The structs by which the parts of a request are read; None where there is nothing to read."""

    path: type[Request] | None
    query: type[Request] | None
    body: type[Request] | None
    whole: bool
    """Whether the body alone is what the operation asks for."""


def fields_of(endpoint: Endpoint) -> Fields:
    """Divide the operation's struct over the parts of a request."""
    asked: type[Request] = endpoint.operation.asked
    known = {field.encode_name: field for field in msgspec.structs.fields(asked)}
    in_path = set(endpoint.names)
    if endpoint.method in BODY_METHODS:
        in_query = set(endpoint.query)
    else:
        # What a header fills has no place in the query too.
        in_query = known.keys() - in_path - set(endpoint.headers.values())
    unknown = (in_path | in_query | set(endpoint.headers.values())) - known.keys()
    if unknown:
        raise TypeError(f"{endpoint.method} {endpoint.path}: {asked.__name__} has no {unknown}")
    in_body = known.keys() - in_path - in_query if endpoint.method in BODY_METHODS else set()
    whole = in_body == known.keys()
    return Fields(
        path=_part(asked, "Path", frozenset(in_path)),
        query=_part(asked, "Query", frozenset(in_query)),
        body=asked if whole and in_body else _part(asked, "Body", frozenset(in_body)),
        whole=whole and bool(in_body),
    )


def header_fields(endpoint: Endpoint) -> dict[str, msgspec.structs.FieldInfo]:
    """The headers that fill a field, each with the field."""
    known = {field.encode_name: field for field in msgspec.structs.fields(endpoint.operation.asked)}
    return {header: known[name] for header, name in endpoint.headers.items()}


@cache
def _part(asked: type[Request], suffix: str, names: frozenset[str]) -> type[Request] | None:
    """A struct with only these fields of another; made once, however many gateways there are."""
    if not names:
        return None
    fields: list[tuple[str, object, object]] = []
    for field in msgspec.structs.fields(asked):
        if field.encode_name in names:
            default = (
                msgspec.field(default_factory=field.default_factory)
                if field.default_factory is not msgspec.NODEFAULT
                else msgspec.field(default=field.default)
            )
            fields.append((field.name, field.type, default))
    made = msgspec.defstruct(
        f"{asked.__name__}{suffix}",
        fields,
        bases=(Request,),
        namespace={"schema_extra": getattr(asked, "schema_extra", {})}
        if suffix == "Body"
        else None,
        kw_only=True,
        frozen=True,
        rename="camel",
        forbid_unknown_fields=True,
    )
    assert issubclass(made, Request)
    return made
