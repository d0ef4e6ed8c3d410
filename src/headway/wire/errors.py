"""The one form of an error, and how a request that cannot be read is told about, field by field."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import UnionType

import msgspec
from msgspec import inspect

from headway.model.errors import InvalidInput, UnknownOption
from headway.wire.base import ALLOWED, Answer

_PLACED = re.compile(r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`(?P<path>[^`]*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)
_EXPECTED = re.compile(r"Expected (?P<allowed>.*?)(?:, got `.*`)?", re.DOTALL)
_PATTERN = " matching regex "
_STEP = re.compile(r"\.?([^.\[\]]+)|\[([0-9]+)\]")
_KINDS = {
    "object": "an object",
    "array": "a list",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
}


class ErrorAnswer(Answer, frozen=True):
    """What went wrong, for people and for programs (T-2)."""

    error: str
    code: str
    retryable: bool
    """Whether the same request may well be taken later."""
    details: dict[str, object] = msgspec.field(default_factory=dict)


BODY = "body"
"""What is called wrong where it is none of the fields."""


class Malformed(InvalidInput):
    """What was sent is not JSON."""

    code = "bad_json"


def invalid(wrong: msgspec.ValidationError, kind: type, value: object) -> InvalidInput:
    """The error that names the field as the caller wrote it, from what msgspec says."""
    found = _PLACED.fullmatch(str(wrong))
    assert found is not None
    what, path = found["what"], _steps(found["path"] or "")
    place = _place(path)
    if unknown := _UNKNOWN.fullmatch(what):
        return UnknownOption(_join(place, unknown["name"]), _names(kind, path, place))
    if missing := _MISSING.fullmatch(what):
        return Missing(_join(place, missing["name"]))
    expected = _EXPECTED.fullmatch(what)
    allowed = _allowed(expected["allowed"]) if expected else f"something else: {what}"
    if _PATTERN in what:
        allowed = _patterned(kind, path, what)
    if found["key"]:
        allowed = f"an object in which each name is {allowed}"
    if what.startswith("Invalid enum value"):
        allowed = f"one of: {', '.join(_words(kind, path))}"
    return InvalidInput(place or BODY, _value_at(value, path), allowed)


def allowed_by(wrong: msgspec.ValidationError, kind: type | UnionType) -> str:
    """What would have been allowed, in words; `kind` is that of the value itself."""
    what = str(wrong)
    if _PATTERN in what:
        return _patterned(kind, (), what)
    expected = _EXPECTED.fullmatch(what)
    return _allowed(expected["allowed"]) if expected else what


class Missing(InvalidInput):
    """A field that is required was not sent."""

    code = "missing_field"

    def __init__(self, field: str) -> None:
        super().__init__(field, None, "sent")
        self.args = (f"{field}: this field is required",)


def _steps(path: str) -> list[str | int]:
    """`$.tasks[3].params` as its steps."""
    found = _STEP.findall(path.removeprefix("$"))
    return [int(index) if index else name for name, index in found]


def _place(steps: Sequence[str | int]) -> str:
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _allowed(expected: str) -> str:
    """What msgspec expects, in words."""

    def word(found: re.Match[str]) -> str:
        kinds = [_KINDS.get(kind, kind) for kind in found[1].split(" | ")]
        return " or ".join(kinds)

    return re.sub(r"`([^`]*)`", word, expected)


def _value_at(value: object, steps: Sequence[str | int]) -> object:
    for step in steps:
        match value, step:
            case Mapping(), str() if step in value:
                value = value[step]
            case [*items], int() if step < len(items):
                value = items[step]
            case _:
                return None
    return value


def _patterned(kind: type | UnionType, steps: Sequence[str | int], what: str) -> str:
    """What a text with a pattern may be, in the words that stand beside the pattern."""
    for text, words in _patterns_at(_info(kind), steps):
        if repr(text.pattern) in what:
            return words
    return "a text of another form"


def _patterns_at(
    info: inspect.Type, steps: Sequence[str | int]
) -> Iterator[tuple[inspect.StrType, str]]:
    """The texts that there can be at a place, each with its words."""
    match info:
        case inspect.Metadata(type=inspect.StrType() as text, extra=extra) if not steps:
            if extra and ALLOWED in extra:
                yield text, extra[ALLOWED]
        case inspect.Metadata(type=inner):
            yield from _patterns_at(inner, steps)
        case inspect.UnionType(types=kinds):
            for kind in kinds:
                yield from _patterns_at(kind, steps)
        case inspect.StructType(fields=fields) if steps:
            for field in fields:
                if field.encode_name == steps[0]:
                    yield from _patterns_at(field.type, steps[1:])
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            yield from _patterns_at(item, steps[1:])
        case inspect.DictType(key_type=key, value_type=value):
            # Which of its names it was is not told.
            yield from _patterns_at(key, steps)
            yield from _patterns_at(value, steps)
        case _:
            return


@lru_cache(256)
def _info(kind: type | UnionType) -> inspect.Type:
    return inspect.type_info(kind)


def _kind_at(kind: type, steps: Sequence[str | int]) -> inspect.Type:
    info = _plain(_info(kind))
    for step in steps:
        match info:
            case inspect.StructType(fields=fields):
                named = {field.encode_name: field.type for field in fields}
                info = _plain(named.get(str(step), inspect.AnyType()))
            case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
                info = _plain(item)
            case inspect.DictType(value_type=item):
                info = _plain(item)
            case _:
                return info
    return info


def _plain(info: inspect.Type) -> inspect.Type:
    """A kind without its metadata and without null."""
    if isinstance(info, inspect.Metadata):
        return _plain(info.type)
    if isinstance(info, inspect.UnionType):
        others = [kind for kind in info.types if not isinstance(kind, inspect.NoneType)]
        return _plain(others[0]) if len(others) == 1 else info
    return info


def _names(kind: type, steps: Sequence[str | int], place: str) -> list[str]:
    """The fields that there are where an unknown one was sent."""
    info = _kind_at(kind, steps)
    if isinstance(info, inspect.StructType):
        return [_join(place, field.encode_name) for field in info.fields]
    return []


def _words(kind: type, steps: Sequence[str | int]) -> list[str]:
    info = _kind_at(kind, steps)
    if isinstance(info, inspect.EnumType):
        return [str(word.value) for word in info.cls]
    if isinstance(info, inspect.LiteralType):
        return [str(word) for word in info.values]
    return []
