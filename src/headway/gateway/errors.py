"""What each error is on the wire: its status, its body, and when to try again. Only this file knows."""

import logging
from collections.abc import Mapping

import msgspec

from headway.model.errors import (
    CannotResume,
    Draining,
    HeadwayError,
    InvalidInput,
    JobNotFound,
    LaneCleared,
    MessageStale,
    NotFound,
    QueueDropped,
    QueueFull,
    Refused,
    RunEnded,
    SessionBusy,
    StoreUnavailable,
    TurnOver,
    Unavailable,
    UnknownName,
    UnknownOption,
    WouldDeadlock,
)
from headway.model.value import Value
from headway.wire.errors import ErrorAnswer, Missing

_log = logging.getLogger("headway")
_encode = msgspec.json.Encoder().encode


class Forbidden(Refused):
    """The caller is known, and may not do this."""

    code = "forbidden"

    def __init__(self, why: str, **details: str) -> None:
        self.details = details
        super().__init__(why)


class TaskNotFound(NotFound):
    """There is no task of that id, or it is not the caller's."""

    def __init__(self, task_id: str) -> None:
        super().__init__(task_id)
        self.args = (f"task {task_id!r} is not known; finished tasks are kept only for a while",)


class Unauthorized(Refused):
    """Nobody knows who asks."""

    code = "unauthorized"


class NotThere(Refused):
    """What the path names does not exist, or not for this caller."""

    code = "not_found"

    def __init__(self, what: str, name: str) -> None:
        self.details = {what: name}
        super().__init__(f"there is no {what} {name!r}")


class NoSuchPath(Refused):
    """There is nothing at this path."""

    code = "not_found"

    def __init__(self, path: str) -> None:
        self.details = {"path": path}
        super().__init__(f"there is nothing at {path}; /docs shows what there is")


class WrongMethod(Refused):
    """The path exists, but not for this method."""

    code = "method_not_allowed"

    def __init__(self, method: str, allowed: str) -> None:
        self.allowed = allowed
        self.details = {"allowed": allowed}
        super().__init__(f"{method} is not allowed here; allowed: {allowed}")


class AlreadyOver(Refused):
    """It has ended: there is nothing left to change."""

    code = "already_over"

    def __init__(self, what: str, name: str, state: str) -> None:
        self.details = {what: name, "state": state}
        super().__init__(f"{what} {name} is {state} already")


class Conflict(Refused):
    """It would be fine, if something else were not in the way."""

    code = "conflict"

    def __init__(self, why: str, **details: str) -> None:
        self.details = details
        super().__init__(why)


class TooLarge(Refused):
    """The request has more bytes than may be."""

    code = "too_large"

    def __init__(self, what: str, limit: int) -> None:
        self.details = {"limit": limit}
        super().__init__(f"the {what} may have at most {limit} bytes")


class WrongMedia(Refused):
    """A body that is not JSON."""

    code = "unsupported_media_type"

    def __init__(self, given: str) -> None:
        self.details = {"given": given}
        super().__init__("the body must be JSON: send the header content-type: application/json")


class TooMany(Unavailable):
    """The caller asks more often than his token may."""

    code = "rate_limited"

    def __init__(self, wait_s: int) -> None:
        self.retry_after_s = wait_s
        super().__init__(f"too many requests with this token; try again in {wait_s} s")


class Gone(Refused):
    """Who asked is not there any more: whatever is answered, nobody reads it."""

    code = "gone"


class Crowded(Unavailable):
    """As many connections or streams are open as may be."""

    code = "too_many_connections"

    def __init__(self, what: str, limit: int) -> None:
        self.details = {"limit": limit}
        super().__init__(f"as many {what} are open as may be: {limit}")


class BatchRefused(Refused):
    """Nothing of a batch was taken; `items` say why, one for each (T-2)."""

    code = "batch_refused"

    def __init__(self, first: HeadwayError, items: list[dict[str, object]]) -> None:
        self.first = first
        self.details = {"submitted": 0, "items": items}
        super().__init__("none of the tasks was taken")


class Told(Value, frozen=True):
    """An error as it goes over the wire."""

    status: int
    body: ErrorAnswer
    headers: tuple[tuple[bytes, bytes], ...] = ()

    def encoded(self) -> bytes:
        return _encode(self.body)


_STATUSES: dict[type[BaseException], int] = {
    Unauthorized: 401,
    Forbidden: 403,
    NotThere: 404,
    NoSuchPath: 404,
    NotFound: 404,
    JobNotFound: 404,
    WrongMethod: 405,
    AlreadyOver: 409,
    Conflict: 409,
    SessionBusy: 409,
    MessageStale: 409,
    QueueDropped: 409,
    LaneCleared: 409,
    TurnOver: 409,
    WouldDeadlock: 409,
    CannotResume: 409,
    RunEnded: 409,
    TooLarge: 413,
    WrongMedia: 415,
    TooMany: 429,
    QueueFull: 429,
    Draining: 503,
    Unavailable: 503,
    Refused: 400,
}
_QUEUE_FULL_S = 1
_DRAINING_S = 5
_STORE_AWAY_S = 5
_UNKNOWN_S = 1


def status_of(error: BaseException) -> int:
    """The status of an error; 500 for what should never happen."""
    if isinstance(error, BatchRefused):
        return status_of(error.first)
    if isinstance(error, UnknownName) and error.field == "agent":
        return 404
    for kind in type(error).__mro__:
        if kind in _STATUSES:
            return _STATUSES[kind]
    return 500


def tell(error: BaseException) -> Told:
    """What the caller is told about an error. What is our own fault is logged, and not shown."""
    status = status_of(error)
    if status == 500:
        _log.error("a request failed", exc_info=error)
        text, code = "the server failed; its log says why", "internal_error"
        return Told(500, ErrorAnswer(error=text, code=code, retryable=False))
    assert isinstance(error, HeadwayError)
    body = ErrorAnswer(
        error=_text(error),
        code=error.code,
        retryable=status in {429, 503},
        details=_details(error),
    )
    return Told(status, body, _headers(error, status))


def wire_name(field: str) -> str:
    """What the façade calls a field, as it is called on the wire: `idempotency_key` → `idempotencyKey`."""
    field = field.removeprefix("task.").replace("].task.", "].")
    return ".".join(_camel(_WIRE_NAMES.get(part, part)) for part in field.split("."))


_WIRE_NAMES = {"agent": "agentId", "callback": "callbackUrl"}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def _text(error: HeadwayError) -> str:
    """The error's own text, with fields named as the caller knows them."""
    text = str(error)
    if isinstance(error, StoreUnavailable):
        # Its address is nobody's business out there.
        return f"the store cannot be used just now: {error.reason}"
    if isinstance(error, InvalidInput) and text.startswith(f"{error.field}:"):
        return wire_name(error.field) + text[len(error.field) :]
    return text


def _details(error: HeadwayError) -> dict[str, object]:
    match error:
        case UnknownName() | UnknownOption():
            suggestion = {"suggestion": error.close[0]} if error.close else {}
            return {"field": wire_name(error.field), "allowed": error.allowed, **suggestion}
        case Missing():
            return {"field": wire_name(error.field)}
        case InvalidInput():
            return {"field": wire_name(error.field), "allowed": error.allowed}
        case NotFound():
            return {"run": error.run_id}
        case JobNotFound():
            return {"job": error.job}
        case RunEnded():
            outcome = error.outcome
            return {"run": error.run_id, "state": outcome.state, "reason": outcome.reason}
        case StoreUnavailable():
            return {"reason": error.reason}
        case _:
            details = getattr(error, "details", {})
            return dict(details) if isinstance(details, Mapping) else {}


def _headers(error: HeadwayError, status: int) -> tuple[tuple[bytes, bytes], ...]:
    match status:
        case 401:
            return ((b"www-authenticate", b'Bearer realm="headway"'),)
        case 405 if isinstance(error, WrongMethod):
            return ((b"allow", error.allowed.encode()),)
        case 429 | 503:
            return ((b"retry-after", str(_wait_s(error)).encode()),)
        case _:
            return ()


def _wait_s(error: HeadwayError) -> int:
    match error:
        case BatchRefused():
            return _wait_s(error.first)
        case TooMany():
            return error.retry_after_s
        case QueueFull():
            return _QUEUE_FULL_S
        case Draining():
            return _DRAINING_S
        case StoreUnavailable():
            return _STORE_AWAY_S
        case _:
            return _UNKNOWN_S
