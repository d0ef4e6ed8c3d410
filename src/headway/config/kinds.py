"""What a setting can be: how it is read from a file or from plain text, what is allowed, and how it is told."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Union, cast, get_args, get_origin
from zoneinfo import ZoneInfo, available_timezones

import msgspec

from headway.model.bounds import Length
from headway.model.errors import InvalidInput
from headway.model.outcome import Json
from headway.model.time import Span, span, span_text
from headway.model.words import Word

NONE = "none"
"""How a setting that may be unset is unset again, where something else has set it."""
_LONGEST = 4_096
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_NUMBER = re.compile(r"[0-9]{1,10}", re.ASCII)
_PART = re.compile(r"[0-9]*\.?[0-9]+", re.ASCII)


@dataclass(frozen=True)
class Kind:
    """One kind of value."""

    allowed: str
    read: Callable[[object, str], object]
    """The value that a file or a flag holds, checked; `InvalidInput` names the field."""
    from_text: Callable[[str], object]
    """What a file would hold, from the text of a variable. What is no such thing stays text, and is refused so."""
    tell: Callable[[object], Json]
    empty_is_unset: bool = False
    """An empty variable says nothing, instead of something wrong."""


def whole_number(lowest: int, highest: int) -> Kind:
    allowed = f"a whole number from {lowest} to {highest}"

    def read(value: object, field: str) -> object:
        if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
            raise InvalidInput(field, value, allowed)
        return value

    return Kind(allowed, read, _number, _plain)


def part() -> Kind:
    """A part of a whole: over 0, at most 1."""
    allowed = "a number over 0, at most 1"

    def read(value: object, field: str) -> object:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
            raise InvalidInput(field, value, allowed)
        return float(value)

    return Kind(allowed, read, _decimal, _plain)


def duration(shortest: Span = 0, longest: Span | None = None) -> Kind:
    allowed = "a duration such as 500ms, 30s, 10m, 1.5h, 1d or 1h30m"
    if shortest:
        allowed += f", at least {span_text(shortest)}"
    if longest is not None:
        allowed += f", at most {span_text(longest)}"

    def read(value: object, field: str) -> object:
        length = span(value, field)
        if length < shortest or (longest is not None and length > longest):
            raise InvalidInput(field, value, allowed)
        return length

    return Kind(allowed, read, str, _span)


def flag() -> Kind:
    allowed = "true or false"

    def read(value: object, field: str) -> object:
        if not isinstance(value, bool):
            raise InvalidInput(field, value, allowed)
        return value

    return Kind(allowed, read, _truth, _plain)


def text(allowed: str = "a text", *, may_be_empty: bool = False) -> Kind:
    def read(value: object, field: str) -> object:
        if not isinstance(value, str) or len(value) > _LONGEST or "\0" in value:
            raise InvalidInput(field, value, allowed)
        if not value and not may_be_empty:
            raise InvalidInput(field, value, f"{allowed}, not empty")
        return value

    return Kind(allowed, read, str, _plain, empty_is_unset=True)


def secret() -> Kind:
    """A text that is never shown, not even where it is wrong."""
    allowed = "a text that only those know whom it concerns"

    def read(value: object, field: str) -> object:
        if not isinstance(value, str) or len(value) > _LONGEST or "\0" in value:
            raise InvalidInput(field, "…", allowed)
        return value

    return Kind(allowed, read, str, lambda value: "***" if value else "", empty_is_unset=True)


def arguments() -> Kind:
    """A program and its arguments, of which some may be empty."""
    allowed = 'a list of a program and its arguments, such as ["claude", "-p", "{text}"]'

    def read(value: object, field: str) -> object:
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise InvalidInput(field, value, allowed)
        if not value or not value[0] or not all(_is_text(item) for item in value):
            raise InvalidInput(field, value, allowed)
        return tuple(value)

    return Kind(allowed, read, _items, _list)


def texts() -> Kind:
    allowed = "a list of texts"

    def read(value: object, field: str) -> object:
        if not isinstance(value, Sequence) or not all(item and type(item) is str for item in value):
            raise InvalidInput(field, value, allowed)
        if isinstance(value, str):
            raise InvalidInput(field, value, allowed)
        return tuple(value)

    return Kind(allowed, read, _items, _list, empty_is_unset=True)


def texts_by_name() -> Kind:
    allowed = 'texts by name, such as { NAME = "value" }'

    def read(value: object, field: str) -> object:
        if not isinstance(value, Mapping) or not all(_is_text(item) for item in value.values()):
            raise InvalidInput(field, value, allowed)
        return MappingProxyType(dict(value))

    return Kind(allowed, read, str, _table)


def json_value() -> Kind:
    allowed = "a value as JSON has it"

    def read(value: object, field: str) -> object:
        try:
            return msgspec.json.decode(msgspec.json.encode(value))
        except (TypeError, ValueError, RecursionError):
            raise InvalidInput(field, value, allowed) from None

    return Kind(allowed, read, str, _json)


def word(vocabulary: type[Word]) -> Kind:
    return choice({known.value: known for known in vocabulary})


def choice(known: Mapping[str, object]) -> Kind:
    """One of some names, each of which stands for something."""
    allowed = f"one of: {', '.join(known)}"

    def read(value: object, field: str) -> object:
        if isinstance(value, str) and value in known:
            return known[value]
        close = get_close_matches(str(value), known, n=1)
        raise InvalidInput(field, value, f"{allowed}{_hint(close)}")

    return Kind(allowed, read, str, _word)


def zone() -> Kind:
    allowed = "the name of an IANA time zone, such as 'Europe/Paris'"

    def read(value: object, field: str) -> object:
        try:
            return ZoneInfo(str(value)).key
        except (KeyError, ValueError, OSError):
            close = get_close_matches(str(value), available_timezones(), n=1)
            raise InvalidInput(field, value, f"{allowed}{_hint(close)}") from None

    return Kind(allowed, read, str, _plain, empty_is_unset=True)


def optional(kind: Kind) -> Kind:
    """The same, or nothing: written `none`."""
    allowed = f"{kind.allowed}, or {NONE!r}"

    def read(value: object, field: str) -> object:
        if value == NONE:
            return None
        try:
            return kind.read(value, field)
        except InvalidInput as wrong:
            raise InvalidInput(field, value, f"{wrong.allowed}, or {NONE!r}") from None

    def tell(value: object) -> Json:
        return None if value is None else kind.tell(value)

    return Kind(allowed, read, kind.from_text, tell, kind.empty_is_unset)


def kind_of(hint: object) -> Kind:
    """The kind of a field, as its annotation says it."""
    if hint == Length:
        return duration()
    origin = get_origin(hint)
    if origin in {Union, UnionType}:
        (inner,) = (arm for arm in get_args(hint) if arm is not NoneType)
        return optional(kind_of(inner))
    if origin is Annotated:
        return _bounded(*get_args(hint))
    if origin is Mapping:
        return texts_by_name()
    return texts() if origin is tuple else _simple(hint)


def _bounded(kind: object, *marks: object) -> Kind:
    (meta,) = (mark for mark in marks if isinstance(mark, msgspec.Meta))
    if kind is float:
        return part()
    assert isinstance(meta.ge, int)
    return whole_number(meta.ge, meta.le if isinstance(meta.le, int) else 1_000_000_000)


def _simple(hint: object) -> Kind:
    if hint is bool:
        return flag()
    if hint is object:
        return json_value()
    if isinstance(hint, type) and issubclass(hint, Word):
        return word(hint)
    return text()


def _hint(close: Sequence[str]) -> str:
    return f" (did you mean {close[0]!r}?)" if close else ""


def _number(written: str) -> object:
    return int(written) if _NUMBER.fullmatch(written) else written


def _decimal(written: str) -> object:
    return float(written) if _PART.fullmatch(written) else written


def _truth(written: str) -> object:
    lowered = written.lower()
    return True if lowered in _TRUE else False if lowered in _FALSE else written


def _items(written: str) -> object:
    return [item.strip() for item in written.split(",") if item.strip()]


def _plain(value: object) -> Json:
    assert value is None or isinstance(value, str | int | float)
    return value


def _span(value: object) -> Json:
    assert isinstance(value, int)
    return span_text(value)


def _word(value: object) -> Json:
    assert isinstance(value, str)
    return str(value)


def _table(value: object) -> Json:
    assert isinstance(value, Mapping)
    return dict(value)


def _json(value: object) -> Json:
    return cast(Json, value)


def _is_text(item: object) -> bool:
    return isinstance(item, str) and "\0" not in item


def _list(value: object) -> Json:
    assert isinstance(value, tuple)
    return list(value)
