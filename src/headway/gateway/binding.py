"""From the parts of a request to the struct that an operation asks for. What is wrong is named by its field."""

import re
from collections.abc import Callable, Mapping
from typing import TypeVar
from urllib.parse import parse_qsl, unquote

import msgspec
from msgspec import inspect

from headway.gateway.endpoint import BODY_METHODS, Endpoint, fields_of, header_fields
from headway.gateway.errors import Conflict
from headway.model.errors import InvalidInput
from headway.wire.base import Request
from headway.wire.errors import BODY, Malformed, allowed_by, invalid

SomeRequest = TypeVar("SomeRequest", bound=Request)
MOST_PARAMETERS = 100
TOKEN_PARAMETER = "access_token"
VISIBLE = re.compile(r"[!-~]+")
_TOO_DEEP = "JSON that is not so deeply nested"
_EXACT = 2**53
"""Up to this each whole number is a float of its own."""


class Binder:
    """Reads the requests of one endpoint. Everything that can be worked out before is, once."""

    def __init__(self, endpoint: Endpoint) -> None:
        fields = fields_of(endpoint)
        self._asked = endpoint.operation.asked
        self._places = _places(endpoint.path)
        self._path = None if fields.path is None else Texts(fields.path)
        self._query = Texts(fields.query or Nothing)
        self._streams = endpoint.streams
        self._whole = fields.whole
        self._body = fields.body
        if self._body is None and endpoint.method in BODY_METHODS:
            # Nothing can be said in a body: what is said all the same must not be passed over (T-2).
            self._body = Nothing
        self._decode: Callable[[bytes], Request] | None = None
        self._optional = False
        if self._body is not None:
            self._decode = msgspec.json.Decoder(self._body).decode
            self._optional = all(
                field.required is False for field in msgspec.structs.fields(self._body)
            )
        self._headers = tuple(
            Header(name, field) for name, field in header_fields(endpoint).items()
        )

    @property
    def needs_body(self) -> bool:
        return self._decode is not None

    def bind(
        self, raw_path: bytes, query: bytes, headers: Mapping[bytes, bytes], body: bytes
    ) -> Request:
        """What the operation is asked, or `InvalidInput` naming the field."""
        alone = self._whole and not query
        asked = self._read_body(body) if alone else self._merge(raw_path, query, body)
        for header in self._headers:
            if header.key in headers:
                asked = header.fill(asked, headers[header.key])
        return asked

    def _merge(self, raw_path: bytes, query: bytes, body: bytes) -> Request:
        given: dict[str, object] = {}
        if self._path is not None:
            segments = [part for part in raw_path.split(b"/") if part]
            texts = [(name, _unquoted(segments[place], name)) for place, name in self._places]
            _take(given, self._path.read(texts))
        _take(given, self._query.read(_pairs(query, streams=self._streams)))
        if self._decode is not None:
            _take(given, self._read_body(body))
        asked: Request = self._asked(**given)
        return asked

    def _read_body(self, body: bytes) -> Request:
        assert self._decode is not None
        assert self._body is not None
        if not body and self._optional:
            body = b"{}"
        return read_json(body, self._body, self._decode)


def read_json(
    body: bytes, kind: type[SomeRequest], decode: Callable[[bytes], SomeRequest]
) -> SomeRequest:
    """A struct from JSON."""
    try:
        return decode(body)
    except msgspec.ValidationError as wrong:
        return _read_again(_whatever(body), kind, wrong)
    except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
        raise Malformed(BODY, body[:40].decode("utf-8", "replace"), f"JSON ({wrong})") from None
    except RecursionError:
        raise Malformed(BODY, "…", _TOO_DEEP) from None


def read_params(given: object, kind: type[SomeRequest]) -> SomeRequest:
    """A struct from what was read as JSON before: the parameters of a call."""
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as wrong:
        return _read_again(given, kind, wrong)


def _read_again(
    given: object, kind: type[SomeRequest], wrong: msgspec.ValidationError
) -> SomeRequest:
    """To JSON 128.0 is a whole number too; if that was all, the request is fine."""
    try:
        if "got `float`" in str(wrong):
            given = _with_whole_numbers(given)
            try:
                return msgspec.convert(given, kind)
            except msgspec.ValidationError as still_wrong:
                wrong = still_wrong
        refusal = invalid(wrong, kind, given)
    except RecursionError:
        # It could just be read; to look into it takes a little more of the stack.
        refusal = Malformed(BODY, "…", _TOO_DEEP)
    raise refusal from None


class Header:
    """A header that fills a field."""

    def __init__(self, name: str, field: msgspec.structs.FieldInfo) -> None:
        self.key = name.lower().encode()
        self._name = name
        self._field = field.name
        self._kind = field.type

    def fill(self, asked: Request, value: bytes) -> Request:
        """The request with what the header says; the body may say the same, but nothing else."""
        text = value.decode("latin-1")
        if not VISIBLE.fullmatch(text):
            raise InvalidInput(self._name, text, "visible ASCII characters")
        said = getattr(asked, self._field)
        if said is not None and said != text:
            why = f"the header {self._name} says {text!r}, and the body something else"
            raise Conflict(why, field=self._name)
        try:
            read: object = msgspec.convert(text, self._kind)
        except msgspec.ValidationError as wrong:
            raise InvalidInput(self._name, text, allowed_by(wrong, self._kind)) from None
        return msgspec.structs.replace(asked, **{self._field: read})


class Nothing(Request, frozen=True):
    """Where nothing can be said."""


class Texts:
    """Reads a struct from texts by name: each becomes what its field is, and nothing is guessed."""

    def __init__(self, kind: type[Request]) -> None:
        self._kind = kind
        self._readers: dict[str, Callable[[str], object]] = {}
        self._lists: set[str] = set()
        for field in msgspec.structs.fields(kind):
            info = _kind_of(inspect.type_info(field.type))
            if isinstance(info, inspect.ListType | inspect.VarTupleType):
                self._lists.add(field.encode_name)
                info = _kind_of(info.item_type)
            self._readers[field.encode_name] = _reader(info)

    def read(self, texts: list[tuple[str, str]]) -> Request:
        given: dict[str, object] = {}
        for name, text in texts:
            value = self._readers.get(name, str)(text)
            if name in self._lists:
                several = given.setdefault(name, [])
                assert isinstance(several, list)
                several.append(value)
            elif name in given:
                raise InvalidInput(name, text, "given once")
            else:
                given[name] = value
        return read_params(given, self._kind)


def _kind_of(info: inspect.Type) -> inspect.Type:
    """A kind without its metadata and without null."""
    if isinstance(info, inspect.Metadata):
        return _kind_of(info.type)
    if isinstance(info, inspect.UnionType):
        others = [kind for kind in info.types if not isinstance(kind, inspect.NoneType)]
        return _kind_of(others[0])
    return info


def _reader(info: inspect.Type) -> Callable[[str], object]:
    match info:
        case inspect.IntType():
            return _whole_number
        case inspect.BoolType():
            return _flag
        case _:
            return str


def _whole_number(text: str) -> object:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 18 else text


def _flag(text: str) -> object:
    return {"true": True, "false": False}.get(text, text)


def _places(path: str) -> tuple[tuple[int, str], ...]:
    """Which segments of a path are which fields."""
    segments = [part for part in path.split("/") if part]
    return tuple((place, part[1:-1]) for place, part in enumerate(segments) if part.startswith("{"))


def _unquoted(segment: bytes, name: str) -> str:
    try:
        return unquote(segment.decode("ascii"), errors="strict")
    except UnicodeDecodeError:
        raise InvalidInput(name, segment.decode("latin-1"), "UTF-8, %-encoded") from None


def _pairs(query: bytes, *, streams: bool) -> list[tuple[str, str]]:
    if not query:
        return []
    try:
        pairs = parse_qsl(
            query.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MOST_PARAMETERS,
        )
    except UnicodeDecodeError:
        raise InvalidInput("query", query.decode("latin-1"), "UTF-8, %-encoded") from None
    except ValueError:
        raise InvalidInput("query", "…", f"at most {MOST_PARAMETERS} parameters") from None
    if streams:
        return [pair for pair in pairs if pair[0] != TOKEN_PARAMETER]
    return pairs


def _take(given: dict[str, object], part: Request) -> None:
    for name in part.__struct_fields__:
        given[name] = getattr(part, name)


def _with_whole_numbers(value: object) -> object:
    match value:
        case float() if value.is_integer() and abs(value) <= _EXACT:
            return int(value)
        case dict():
            return {key: _with_whole_numbers(inner) for key, inner in value.items()}
        case list():
            return [_with_whole_numbers(inner) for inner in value]
        case _:
            return value


def _whatever(body: bytes) -> object:
    """What was sent, however wrong it is."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
