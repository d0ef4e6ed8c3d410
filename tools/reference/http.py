"""The page of HTTP, from the OpenAPI document that a server has at `/openapi.json`."""

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias, cast

from headway.gateway.endpoint import Endpoint
from headway.gateway.openapi import document as openapi
from headway.gateway.routes import ALL
from tools.reference.schemas import anchor, example_lines, linked, meaning, schema_lines
from tools.reference.tables import NOTE, cell, code, table

Document: TypeAlias = Mapping[str, object]

_INTRO = """\
What a server answers over HTTP, as its `/openapi.json` says it; `/docs` is the same as a page. A token
goes into the header `Authorization: Bearer hw_…`; `headway tokens create` makes one. As long as there is
none, only the machine itself may ask, without one. Every answer has an `X-Request-Id`: the one that was sent, else
a new one."""

_JSON = "application/json"


def http_page() -> str:
    document = cast(Document, openapi([route for route in ALL if isinstance(route, Endpoint)]))
    info = cast(Mapping[str, str], document["info"])
    operations = list(_operations(document))
    lines = ["# HTTP", "", NOTE, "", _INTRO, "", info["description"].strip(), ""]
    lines += table(
        ("request", "what it does"),
        [(f"[`{name}`](#{anchor(name)})", cell(str(one["summary"]))) for name, one in operations],
    )
    for name, one in operations:
        lines += ["", f"## `{name}`", "", str(one["description"]), *_parts(one)]
    components = cast(Mapping[str, Mapping[str, Document]], document["components"])
    lines += ["", "## Refusals", "", "All of them have one form:", ""]
    lines += _refusals(components["responses"])
    lines += [
        "",
        "## What is sent",
        "",
        "Each struct by its name.",
        *schema_lines(components["schemas"]),
    ]
    # Examples are set off by blank lines on both sides; one is enough between two parts.
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def _operations(document: Document) -> Iterator[tuple[str, Document]]:
    """In the order of the table of routes, subject by subject."""
    paths = cast(Mapping[str, Mapping[str, Document]], document["paths"])
    for path, methods in paths.items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def _parts(operation: Document) -> Iterator[str]:
    parameters = cast(list[Document], operation.get("parameters", []))
    if parameters:
        rows = [
            (
                code(str(one["name"])),
                str(one["in"]),
                cell(linked(cast(Document, one["schema"]))),
                "yes" if one.get("required") else "",
                cell(str(one.get("description") or meaning(cast(Document, one["schema"])))),
            )
            for one in parameters
        ]
        yield from ("", *table(("parameter", "in", "type", "needed", "meaning"), rows))
    body = cast(Document, operation.get("requestBody", {}))
    if body:
        content = _content(body)
        yield from ("", f"Body: {linked(cast(Document, content['schema']))}.")
        yield from _example(content)
    yield from ("", *_answers(cast(Mapping[str, Document], operation["responses"])))


def _answers(responses: Mapping[str, Document]) -> Iterator[str]:
    refused = []
    for status, response in responses.items():
        if "$ref" in response:
            refused.append(code(status))
            continue
        content = cast(Mapping[str, Document], response.get("content", {}))
        what = ""
        if _JSON in content:
            what = f": {linked(cast(Document, content[_JSON]['schema']))}"
        elif content:
            what = f": {', '.join(code(media) for media in content)}"
        yield f"- `{status}` {response['description']}{what}"
        if _JSON in content:
            yield from _example(content[_JSON])
    if refused:
        yield f"- refused with {', '.join(refused)}"


def _example(content: Document) -> Iterator[str]:
    if "example" in content:
        yield from ("", *example_lines(content["example"]), "")


def _content(holder: Document) -> Document:
    return cast(Mapping[str, Document], holder["content"])[_JSON]


def _refusals(responses: Mapping[str, Document]) -> list[str]:
    first, *_ = responses.values()
    lines = example_lines(_content(first)["example"])
    rows = [
        (
            code(name.removeprefix("Refused")),
            cell(str(response["description"])),
            ", ".join(code(header) for header in cast(Document, response.get("headers", {}))),
        )
        for name, response in responses.items()
    ]
    return [*lines, "", *table(("status", "when", "headers"), rows)]
