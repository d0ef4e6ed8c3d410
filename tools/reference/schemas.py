"""JSON Schemas as tables: what a struct of the wire holds, for people."""

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import msgspec

from tools.reference.tables import cell, code, table

Schema: TypeAlias = Mapping[str, object]

_HEADING = "JSON: {name}"
"""Apart from the headings of methods, which may have the same letters."""


def name_of(schema: Schema) -> str | None:
    """The name of what a schema refers to."""
    ref = schema.get("$ref")
    return ref.rpartition("/")[2] if isinstance(ref, str) else None


def linked(schema: Schema) -> str:
    """What a schema says, on one line, with links to what it refers to."""
    name = name_of(schema)
    if name is not None:
        return f"[{name}](#{anchor(_HEADING.format(name=name))})"
    match schema:
        case {"enum": list() as words}:
            return ", ".join(code(str(word)) for word in words)
        case {"anyOf": list() as kinds} if "type" not in schema:
            return " or ".join(dict.fromkeys(linked(kind) for kind in kinds))
        case {"type": "array", "items": dict() as items}:
            return f"list of {linked(items)}"
        case {"type": "array"}:
            return "list"
        case {"type": "object", "additionalProperties": dict() as values}:
            return f"object of {linked(values)}"
        case {"type": list() as kinds}:
            return " or ".join(str(kind) for kind in kinds)
        case {"type": str(kind)}:
            return f"{kind}{_bounds(schema)}"
        case _:
            return "anything"


def anchor(heading: str) -> str:
    """What a link to a heading says, as GitHub spells it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def meaning(schema: Schema) -> str:
    """What it is said to mean, or what it is said of it where it is not null."""
    if "description" in schema:
        return str(schema["description"])
    kinds = schema.get("anyOf")
    told = [meaning(kind) for kind in kinds] if isinstance(kinds, list) else []
    return " ".join(dict.fromkeys(text for text in told if text))


def property_table(schema: Schema) -> list[str]:
    """The fields of an object."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return ["It has no fields."]
    required = schema.get("required")
    needed = set(required) if isinstance(required, list) else set()
    rows = [
        (
            code(name),
            cell(linked(one)),
            "must be given" if name in needed else _default(one),
            cell(meaning(one)),
        )
        for name, one in properties.items()
    ]
    return table(("field", "type", "default", "meaning"), rows)


def schema_lines(schemas: Mapping[str, Schema]) -> Iterator[str]:
    """A section for each named schema."""
    for name in sorted(schemas):
        schema = schemas[name]
        yield from ("", f"### {_HEADING.format(name=name)}", "")
        if about := str(schema.get("description", "")):
            yield from (about, "")
        if "properties" in schema:
            yield from property_table(schema)
        else:
            yield linked(schema)


def example_lines(example: object) -> list[str]:
    told = msgspec.json.format(msgspec.json.encode(example), indent=2).decode()
    return ["```json", told, "```"]


def _default(schema: Schema) -> str:
    if "default" not in schema or schema["default"] is None:
        return ""
    return code(msgspec.json.encode(schema["default"]).decode())


def _bounds(schema: Schema) -> str:
    """From where to where, where there is a bound."""
    low = schema.get("minimum", schema.get("minLength"))
    high = schema.get("maximum", schema.get("maxLength"))
    what = " characters" if "maxLength" in schema or "minLength" in schema else ""
    match low, high:
        case None, None:
            return ""
        case None, _:
            return f", at most {high}{what}"
        case _, None:
            return f", at least {low}{what}"
        case _:
            return f", {low} to {high}{what}"
