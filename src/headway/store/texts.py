"""JSON text that any database takes, and back.

The text has no NUL, whatever the value holds: JSON writes it as an escape.
"""

import json
from collections.abc import Callable

import msgspec

from headway.model.errors import InvalidInput

_encode = msgspec.json.Encoder().encode


def text_of(value: object) -> str:
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:
        # Half of a surrogate pair has no UTF-8, but an agent may well return one: written as an escape it is
        # kept as it came, and the outcome it stands in is not lost.
        return json.dumps(msgspec.to_builtins(value))


def reader(kind: object) -> Callable[[str | bytes], object]:
    """Reads one kind of value, also where the text has half of a surrogate pair."""
    decoder = msgspec.json.Decoder(kind)

    def read(text: str | bytes) -> object:
        try:
            return decoder.decode(text)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            return msgspec.convert(json.loads(text), kind)

    return read


def read_cursor(read: Callable[[str | bytes], object], cursor: str) -> object:
    try:
        return read(cursor)
    except (ValueError, RecursionError):
        raise InvalidInput("cursor", cursor, "the cursor of an earlier page") from None
