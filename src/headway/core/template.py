"""Templates: texts with places such as `{text}` that are filled in for each attempt.

`{{` and `}}` stand for the braces themselves. Nothing of what is filled in is looked at again.

What is filled in comes from whoever asks, and may be anything. In an address it can change nothing but its own
place: neither the host nor the path around it.
"""

import re
from collections.abc import Callable, Collection, Mapping
from urllib.parse import quote, unquote

import msgspec

from headway.model.errors import HeadwayError, InvalidInput, UnknownName
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
_ADDRESS = re.compile(r"(https?://)([^/?#:]*)([^/?#]*)([^?#]*)(.*)", re.DOTALL)
"""The scheme, the host, what stands between it and the path, the path, and the rest."""
_IN_A_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?")
"""Without dots: they would lead to another domain."""
_A_NUMBER = re.compile(r"0[xX][0-9A-Fa-f]*|[0-9]+")
"""A whole host like this is an IPv4 address, whichever one it is: 2130706433 is 127.0.0.1."""
_DOTS = frozenset({".", ".."})


class Unfillable(HeadwayError):
    """A value that cannot stand at its place in an address, or in the path of a folder."""

    code = "unfillable"

    def __init__(self, name: str, where: str, what: str = "an address") -> None:
        self.name = name
        super().__init__(f"{name} cannot stand in the {where} of {what}")


def check_template(text: str, field: str, names: Collection[str] = NAMES) -> str:
    """The template, if all of its places can be filled in."""
    for found in _PLACE.finditer(text):
        if found[0] in {"{", "}"}:
            raise InvalidInput(field, text, "a template in which each brace is closed, or doubled")
        if found[1] is not None and found[1] not in names:
            raise _unknown(field, found[1], names)
    return text


def _unknown(field: str, name: str, names: Collection[str]) -> UnknownName:
    wrong = UnknownName(field, name, names)
    wrong.args = (f"{wrong}; a brace that means itself is doubled",)
    return wrong


def places(text: str) -> frozenset[str]:
    """The names of all places in a template."""
    return frozenset(found[1] for found in _PLACE.finditer(text) if found[1] is not None)


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
    return _filled(text, lambda name: _said(values[name]))


def fill_url(url: str, values: Mapping[str, Json]) -> str:
    """An address with all places filled in, each as one piece, whatever it holds.

    Raises `Unfillable` where that cannot be: in a host only letters, digits, `-` and `_` can stand, but not a
    number as all of it, and a step of a path that is `.` or `..` leads elsewhere, however it is written.
    """
    scheme, name, port, path, rest = _parts(url)
    host = _filled(name, lambda place: _in_a_host(place, _said(values[place])))
    if places(name) and _A_NUMBER.fullmatch(host):
        raise Unfillable(", ".join(sorted(places(name))), "host")
    port = _filled(port, lambda place: _in_a_host(place, _said(values[place])))
    rest = _filled(rest, lambda place: quoted(_said(values[place])))
    return f"{scheme}{host}{port}{_path(path, values)}{rest}"


def fill_path(path: str, values: Mapping[str, Json]) -> str:
    """The path of a folder with all places filled in; what is filled in can lead nowhere else.

    Raises `Unfillable` where a value is not the name of one folder.
    """

    def step(name: str) -> str:
        value = _said(values[name])
        if value in {"", ".", ".."} or "/" in value or "\0" in value:
            raise Unfillable(name, "path", "a folder")
        return value

    return _filled(path, step)


def sample_url(url: str) -> str:
    """An address with something at each place that fits there, so that it can be looked at."""
    scheme, name, *behind = _parts(url)
    return f"{scheme}{_filled(name, lambda _: 'a')}{_filled(''.join(behind), lambda _: '1')}"


def quoted(value: str) -> str:
    """A value as one piece of an address."""
    return quote(value, safe="")


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


def _filled(text: str, value_of: Callable[[str], str]) -> str:
    """`{{` and `}}` become one brace; other braces are places."""
    return _PLACE.sub(lambda found: found[0][0] if found[1] is None else value_of(found[1]), text)


def _parts(url: str) -> tuple[str, ...]:
    found = _ADDRESS.fullmatch(url)
    if found is None:
        raise InvalidInput("url", url, "an address that begins with http:// or https://")
    return found.groups()


def _in_a_host(name: str, value: str) -> str:
    if _IN_A_HOST.fullmatch(value) is None:
        raise Unfillable(name, "host")
    return value


def _path(template: str, values: Mapping[str, Json]) -> str:
    steps = []
    for step in template.split("/"):
        filled = _filled(step, lambda name: quoted(_said(values[name])))
        if unquote(filled) in _DOTS and places(step):
            raise Unfillable(", ".join(sorted(places(step))), "path")
        steps.append(filled)
    return "/".join(steps)


def _said(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
