"""Templates: texts with places such as `{text}` that are filled in for each attempt.

`{{` and `}}` stand for the braces themselves. Nothing of what is filled in is looked at again.
"""

import re
from collections.abc import Collection, Mapping

import msgspec

from headway.model.errors import InvalidInput, UnknownName
from headway.model.outcome import Json

NAMES = frozenset(
    {
        "text",
        "agent",
        "session",
        "session_uuid",
        "run_id",
        "trace_id",
        "job_id",
        "attempt",
        "fence",
        "action",
        "tab_id",
        "selector",
        "ref",
        "params",
    }
)
"""What every runner can fill in. `session_uuid` is a UUID that is always the same for one agent and session."""

_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def check_template(text: str, field: str, names: Collection[str] = NAMES) -> str:
    """The template, if all of its places can be filled in."""
    for found in _PLACE.finditer(text):
        if found[0] in {"{", "}"}:
            raise InvalidInput(field, text, "a template in which each brace is closed, or doubled")
        if found[1] is not None and found[1] not in names:
            raise UnknownName(field, found[1], names)
    return text


def check_json(template: Json, field: str, names: Collection[str] = NAMES) -> Json:
    """A value of JSON whose strings are templates."""
    if isinstance(template, str):
        check_template(template, field, names)
    elif isinstance(template, Mapping):
        for name, value in template.items():
            check_json(value, f"{field}.{name}", names)
    elif isinstance(template, list):
        for index, value in enumerate(template):
            check_json(value, f"{field}[{index}]", names)
    return template


def fill(text: str, values: Mapping[str, Json]) -> str:
    """The text with all places filled in."""

    def put(found: "re.Match[str]") -> str:
        if found[1] is None:
            return found[0][0]
        return _said(values[found[1]])

    return _PLACE.sub(put, text)


def fill_json(template: Json, values: Mapping[str, Json]) -> Json:
    """The value with its strings filled in; one that is nothing but a place becomes the value of it."""
    if isinstance(template, str):
        found = _PLACE.fullmatch(template)
        if found is not None and found[1] is not None:
            return values[found[1]]
        return fill(template, values)
    if isinstance(template, Mapping):
        return {name: fill_json(value, values) for name, value in template.items()}
    if isinstance(template, list):
        return [fill_json(value, values) for value in template]
    return template


def _said(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
