"""Events as they are told to people and programs: one form for the log, the stream, RPC and screens.

Names are in camelCase, instants in RFC 3339, spans as durations (`1.5s`). Which field is what is known by its
name, as everywhere in Headway: an instant ends in `_at`.
"""

from collections.abc import Callable
from functools import cache
from typing import TypeAlias, cast

import msgspec

from headway.model.events import Event
from headway.model.outcome import Json
from headway.model.text import whole
from headway.model.time import instant_text, span_text

_INSTANTS = frozenset({"at", "until"})
_SPANS = frozenset({"waited", "took"})


def told(event: Event) -> dict[str, Json]:
    """The event as JSON holds it, its kind first."""
    kind, fields = _form(type(event))
    data: dict[str, Json] = {"event": kind}
    for (name, written), value in zip(fields, msgspec.structs.astuple(event), strict=True):
        if type(value) is str:
            data[name] = value if value.isascii() else whole(value)
        elif value is None:
            data[name] = None
        elif written is not None:
            data[name] = written(value)
        else:
            # A word is written as the text that it is.
            data[name] = value if isinstance(value, _PLAIN) else _plain(value)
    return data


def kind_of(event: type[Event]) -> str:
    """What an event is called in its telling."""
    return _form(event)[0]


_PLAIN = (str, int)


def _plain(value: object) -> Json:
    plain = msgspec.to_builtins(value)
    return cast(Json, list(plain) if isinstance(plain, tuple) else plain)


_Written: TypeAlias = Callable[[int], str]
_Form: TypeAlias = tuple[str, tuple[tuple[str, _Written | None], ...]]


@cache
def _form(event: type[Event]) -> _Form:
    """The name of a kind of event, and of each field: how it is called in the telling, and how it is written."""
    fields = tuple((_camel(name), _writer(name)) for name in event.__struct_fields__)
    return str(event.__struct_config__.tag), fields


def _writer(field: str) -> _Written | None:
    if field in _INSTANTS or field.endswith("_at"):
        return instant_text
    return span_text if field in _SPANS else None


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)
