"""The OpenAPI document, drawn from the table of routes and the structs that requests are read with.

What the document promises is what is checked: both come from the same structs.
"""

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version

import msgspec

from headway.gateway.binding import VISIBLE
from headway.gateway.endpoint import Endpoint, Fields, fields_of
from headway.gateway.schemas import Schema, Schemas
from headway.wire.errors import ErrorAnswer

JSON = "application/json"
_NAMES = r"^[^\u0000]+$"
_BEARER = "bearer"
_IN_QUERY = "accessToken"
_SECURITY: Schema = {
    _BEARER: {
        "type": "http",
        "scheme": "bearer",
        "description": "`headway tokens create` makes one.",
    },
    _IN_QUERY: {"type": "apiKey", "in": "query", "name": "access_token"},
}
_ABOUT = """\
Asks and watches a Headway, the scheduler for AI agents. Names are in camelCase, instants in RFC 3339 UTC,
durations as people write them: `500ms`, `30s`, `10m`, `1.5h`, `1d`, `1h30m`. A field or parameter that does not
exist is an error. Lists are paged: send the `cursor` of one page to get the next. Errors all have one form.
"""
_REFUSALS: Mapping[int, tuple[str, str, str]] = {
    400: ("Something is wrong with the request; `details.field` says where.", "invalid_input", ""),
    401: ("Who asks is not known: no token, a wrong, revoked or expired one.", "unauthorized", ""),
    403: ("The token does not allow this.", "forbidden", ""),
    404: ("There is no such thing, or not for this token.", "not_found", ""),
    409: ("It cannot be done as things are.", "already_over", ""),
    413: ("The body is too large.", "too_large", ""),
    415: ("The body is not JSON.", "unsupported_media_type", ""),
    429: (
        "Too much waits, or this token asks too often; come back later.",
        "queue_full",
        "Retry-After",
    ),
    431: ("The headers are too large.", "too_large", ""),
    503: (
        "Not now: the server drains, its store is away, or too many ask.",
        "draining",
        "Retry-After",
    ),
}


def document(table: Sequence[Endpoint]) -> Schema:
    """The whole document."""
    parts = [(endpoint, fields_of(endpoint)) for endpoint in table]
    schemas = Schemas(_kinds(parts))
    paths: dict[str, Schema] = {}
    for endpoint, fields in parts:
        described = _operation(endpoint, fields, schemas)
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = described
    responses = {f"Refused{status}": _refused(status, schemas) for status in _REFUSALS}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Headway", "version": _version(), "description": _ABOUT},
        "servers": [{"url": "/"}],
        "tags": [{"name": name} for name in dict.fromkeys(one.tag for one in table)],
        "paths": paths,
        "components": {
            "schemas": schemas.reached([paths, responses]),
            "responses": responses,
            "securitySchemes": _SECURITY,
        },
    }


def _operation(endpoint: Endpoint, fields: Fields, schemas: Schemas) -> Schema:
    needs = f"\n\nNeeds the scope `{endpoint.scope}`." if endpoint.scope else ""
    subject = endpoint.operation.work.__module__.rpartition(".")[2]
    described: Schema = {
        "operationId": f"{subject}.{endpoint.operation.name}",
        "tags": [endpoint.tag],
        "summary": endpoint.operation.doc.partition(". ")[0].partition("\n")[0].rstrip("."),
        "description": endpoint.operation.doc + needs,
        "parameters": [
            *_parameters(fields.path, "path", schemas),
            *_parameters(fields.query, "query", schemas),
            *_headers(endpoint, schemas),
        ],
        "responses": _responses(endpoint, fields, schemas),
        "security": _security(endpoint),
    }
    if fields.body is not None:
        content: Schema = {"schema": schemas.ref(fields.body)}
        if endpoint.asked_example is not None:
            content["example"] = endpoint.asked_example
        described["requestBody"] = {
            "required": any(one.required for one in msgspec.structs.fields(fields.body)),
            "content": {JSON: content},
        }
    return described


def _parameters(kind: type[msgspec.Struct] | None, place: str, schemas: Schemas) -> list[Schema]:
    if kind is None:
        return []
    properties = schemas.properties(kind)
    return [
        _parameter(field.encode_name, place, properties[field.encode_name], required=field.required)
        for field in msgspec.structs.fields(kind)
    ]


def _parameter(name: str, place: str, schema: Schema, *, required: bool) -> Schema:
    """A parameter is a text: it cannot be null, only absent."""
    schema = _without_null(schema)
    described: Schema = {"name": name, "in": place, "required": required, "schema": schema}
    if "description" in schema:
        described["description"] = schema["description"]
    return described


def _without_null(schema: Schema) -> Schema:
    kinds = schema.get("anyOf")
    if isinstance(kinds, list) and {"type": "null"} in kinds:
        others = [kind for kind in kinds if kind != {"type": "null"}]
        rest = {key: value for key, value in schema.items() if key not in {"anyOf", "default"}}
        default = schema.get("default")
        found = {"default": default} if default is not None else {}
        if len(others) == 1:
            return {**rest, **others[0], **found}
        return {**rest, "anyOf": others, **found}
    return schema


def _headers(endpoint: Endpoint, schemas: Schemas) -> list[Schema]:
    """Headers that fill a field have its schema, as far as a header can hold it."""
    properties = schemas.properties(endpoint.operation.asked)
    found = []
    for name, field in endpoint.headers.items():
        schema = _without_null(properties[field])
        if schema.get("pattern") in {None, _NAMES}:
            schema = {**schema, "pattern": f"^{VISIBLE.pattern}$"}
        found.append(_parameter(name, "header", schema, required=False))
    return found


def _responses(endpoint: Endpoint, fields: Fields, schemas: Schemas) -> Schema:
    responses: Schema = {
        str(status): {"$ref": f"#/components/responses/Refused{status}"}
        for status in sorted(_refusals(endpoint, fields))
    }
    good = {endpoint.status: HTTPStatus(endpoint.status).phrase, **endpoint.also}
    for status, about in good.items():
        responses[str(status)] = _good(endpoint, about, schemas)
    return dict(sorted(responses.items()))


def _good(endpoint: Endpoint, about: str, schemas: Schemas) -> Schema:
    headers: Schema = {"X-Request-Id": {"schema": {"type": "string"}, "required": True}}
    if endpoint.location:
        headers["Location"] = {
            "description": f"Where it can be looked at: `{endpoint.location}`.",
            "schema": {"type": "string"},
        }
    if endpoint.media != JSON:
        told: Schema = {} if endpoint.streams else {"schema": {"type": "string"}}
        if endpoint.answer_example is not None:
            told["example"] = endpoint.answer_example
        content: Schema = {endpoint.media.partition(";")[0]: told}
    else:
        answer: Schema = {"schema": schemas.ref(endpoint.operation.answer)}
        if endpoint.answer_example is not None:
            answer["example"] = endpoint.answer_example
        content = {JSON: answer}
    return {"description": about, "headers": headers, "content": content}


def _refusals(endpoint: Endpoint, fields: Fields) -> set[int]:
    found = {400, 431, 503, *endpoint.refusals}
    if endpoint.scope is not None:
        found |= {401, 403, 429}
    if fields.body is not None:
        found |= {413, 415}
    return found


def _refused(status: int, schemas: Schemas) -> Schema:
    about, code, header = _REFUSALS[status]
    retryable = status in {429, 503}
    example = {"error": about, "code": code, "retryable": retryable, "details": {}}
    headers: Schema = {"X-Request-Id": {"schema": {"type": "string"}, "required": True}}
    if header:
        headers[header] = {
            "description": "Seconds until it is worth trying again.",
            "schema": {"type": "integer", "minimum": 1},
            "required": True,
        }
    if status == 401:
        headers["WWW-Authenticate"] = {"schema": {"type": "string"}, "required": True}
    content: Schema = {"schema": schemas.ref(ErrorAnswer), "example": example}
    return {"description": about, "headers": headers, "content": {JSON: content}}


def _security(endpoint: Endpoint) -> list[dict[str, list[str]]]:
    if endpoint.scope is None:
        return []
    return [{_BEARER: []}, {_IN_QUERY: []}] if endpoint.streams else [{_BEARER: []}]


def _kinds(parts: Sequence[tuple[Endpoint, Fields]]) -> Iterator[type]:
    """Every struct of the table."""
    yield ErrorAnswer
    for endpoint, fields in parts:
        for part in (fields.path, fields.query, fields.body):
            if part is not None:
                yield part
        yield endpoint.operation.asked
        if endpoint.media == JSON:
            yield endpoint.operation.answer


def _version() -> str:
    try:
        return version("headway")
    except PackageNotFoundError:
        return "unknown"
