"""Frames, read and written."""

import msgspec

from headway.gateway.binding import read_json
from headway.gateway.errors import tell
from headway.wire.rpc import CallFrame, CallId, ErrorFrame

_encode = msgspec.json.Encoder().encode
_call = msgspec.json.Decoder(CallFrame).decode
_RETRY_AFTER = b"retry-after"


def read_call(frame: str | bytes) -> CallFrame:
    """The call that a frame is. Raises `InvalidInput`, naming what is wrong with it."""
    return read_json(frame.encode() if isinstance(frame, str) else frame, CallFrame, _call)


def id_of(frame: str | bytes) -> CallId | None:
    """The id of a frame that is no call, so that its sender is told about the right one."""
    try:
        return _only_id(frame).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class _OnlyId(msgspec.Struct):
    id: CallId


_only_id = msgspec.json.Decoder(_OnlyId).decode


def result_frame(call: CallId, result: object) -> str:
    return f'{{"id":{_encode(call).decode()},"result":{_encode(result).decode()}}}'


def error_frame(call: CallId | None, error: BaseException) -> str:
    """The same error that HTTP answers with; what it says in Retry-After is a field here."""
    told = tell(error)
    wait = next((int(value) for name, value in told.headers if name == _RETRY_AFTER), None)
    return _encode(ErrorFrame(id=call, error=told.body, retry_after=wait)).decode()


def event_frame(event: str, data: object) -> str:
    """Something that cannot be asked for again, so it has no id."""
    return f'{{"event":"{event}","data":{_encode(data).decode()}}}'
