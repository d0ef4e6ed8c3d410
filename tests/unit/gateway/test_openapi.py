"""The OpenAPI document says what is served, and its examples hold."""

from collections.abc import Iterator
from typing import cast

import msgspec
import pytest

from headway import Headway
from headway.gateway.endpoint import Endpoint, fields_of
from headway.gateway.openapi import document
from headway.gateway.page import page
from headway.gateway.routes import ALL
from headway.model.words import Scope
from headway.testing import virtual_time
from tests.unit.gateway.calling import served

TABLE = [route for route in ALL if isinstance(route, Endpoint)]
DOCUMENT = cast("dict[str, dict[str, dict[str, object]]]", document(TABLE))


def described() -> Iterator[tuple[Endpoint, dict[str, object]]]:
    for endpoint in TABLE:
        found = DOCUMENT["paths"][endpoint.path][endpoint.method.lower()]
        yield endpoint, cast("dict[str, object]", found)


@virtual_time
async def test_it_is_served_for_programs_and_for_people() -> None:
    async with served(Headway()) as http:
        for_programs = await http.get("/openapi.json")
        assert for_programs.headers["content-type"] == "application/json"
        assert for_programs.json() == msgspec.json.decode(msgspec.json.encode(DOCUMENT))
        for_people = await http.get("/docs")
        assert for_people.headers["content-type"].startswith("text/html")
        for endpoint in TABLE:
            assert endpoint.path in for_people.text
        assert "<script" not in for_people.text
        shown = await http.get("/", follow_redirects=True)
        assert (shown.url.path, shown.text) == ("/docs", for_people.text)


def test_every_operation_has_a_name_of_its_own_and_says_what_it_needs() -> None:
    names = [told["operationId"] for _, told in described()]
    assert len(set(names)) == len(names)
    for endpoint, told in described():
        assert told["summary"]
        if endpoint.scope is None:
            assert told["security"] == []
        else:
            assert told["security"]
            assert f"scope `{endpoint.scope}`" in str(told["description"])


def test_every_reference_leads_somewhere() -> None:
    components = DOCUMENT["components"]

    def refs(told: object) -> Iterator[str]:
        if isinstance(told, dict):
            if "$ref" in told:
                yield told["$ref"]
            for value in told.values():
                yield from refs(value)
        elif isinstance(told, list):
            for value in told:
                yield from refs(value)

    for ref in set(refs(DOCUMENT)):
        _, room, kind, name = ref.split("/")
        assert room == "components"
        assert name in components[kind]


@pytest.mark.parametrize("endpoint", TABLE, ids=lambda one: f"{one.method} {one.path}")
def test_examples_are_what_they_are_examples_of(endpoint: Endpoint) -> None:
    body = fields_of(endpoint).body
    if endpoint.asked_example is not None:
        assert body is not None
        msgspec.convert(endpoint.asked_example, body)
    if endpoint.media == "application/json":
        assert endpoint.answer_example is not None
        example = msgspec.json.encode(endpoint.answer_example)
        shown = msgspec.json.decode(example, type=endpoint.operation.answer)
        as_answered = msgspec.json.decode(msgspec.json.encode(shown))
        assert as_answered == msgspec.json.decode(example)


def test_whoever_only_looks_needs_to_read_and_nothing_more() -> None:
    for endpoint in TABLE:
        if endpoint.method == "GET":
            scopes = {Scope.CONTROL} if endpoint.path == "/config" else {None, Scope.READ}
            assert endpoint.scope in scopes, endpoint.path
        else:
            assert endpoint.scope is not None
            assert endpoint.scope is not Scope.READ, endpoint.path


def test_the_page_escapes_what_it_shows() -> None:
    told = {
        "info": {"title": "<b>", "version": "1", "description": "a `b` & <c>"},
        "tags": [],
        "paths": {},
        "components": {"schemas": {"<x>": {"type": "<y>"}}},
    }
    shown = page(told)
    assert "<b>" not in shown
    assert "a <code>b</code> &amp; &lt;c&gt;" in shown
    assert "&lt;y&gt;" in shown
