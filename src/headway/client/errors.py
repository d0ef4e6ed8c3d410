"""What a server's refusal is here: the errors that the library itself raises, made again from what was told."""

from typing import TypeVar

import msgspec

from headway.model.errors import (
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
    RunCancelled,
    RunEnded,
    RunFailed,
    SessionBusy,
    Unavailable,
)
from headway.model.outcome import Outcome
from headway.model.words import Reason, State
from headway.wire.errors import ErrorAnswer

SomeError = TypeVar("SomeError", bound=HeadwayError)

_SHOWN = 80
_PROXY_STATUSES = frozenset({502, 503, 504})


class NoServer(Unavailable):
    """Nothing answers at the address."""

    code = "no_server"

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason
        super().__init__(
            f"no server answers at {url} ({reason}): start one with `headway serve`, "
            "or name another with --server or HEADWAY_SERVER"
        )


class ServerRefused(Refused):
    """The server does not take it as it is asked; `status`, `code` and `details` are what it told."""

    def __init__(self, status: int, told: ErrorAnswer) -> None:
        self.status = status
        self.code = told.code  # type: ignore[misc]
        self.details = told.details
        super().__init__(f"{told.error}{_ADVICE.get(status, '')}")


class ServerUnavailable(Unavailable):
    """Not now, says the server: it ends, its store is away, or too much was asked of it."""

    def __init__(self, status: int, told: ErrorAnswer, retry_after_s: float | None) -> None:
        self.status = status
        self.code = told.code  # type: ignore[misc]
        self.details = told.details
        self.retry_after_s = retry_after_s
        super().__init__(told.error)


class ServerFailed(HeadwayError):
    """The server failed, or something else answers in its place."""

    code = "server_failed"

    def __init__(self, status: int, why: str) -> None:
        self.status = status
        super().__init__(why)


class NotHeadway(ServerFailed, Refused):
    """Something else answers at the address."""

    code = "no_headway"

    def __init__(self, status: int, body: bytes, url: str = "") -> None:
        where = f" at {url}" if url else ""
        super().__init__(
            status,
            f"what answers{where} is no Headway server: {status}{_glimpse(body)}; "
            "name another with --server or HEADWAY_SERVER",
        )


class ProxyFailed(ServerFailed, Unavailable):
    """A proxy answers, as the server behind it does not."""

    code = "proxy_failed"

    def __init__(self, status: int, url: str = "") -> None:
        where = f" at {url}" if url else ""
        super().__init__(
            status, f"a proxy answers{where}, no Headway server: {status}; is the server running?"
        )


class FieldRefused(InvalidInput):
    """A field holds a value that the server does not allow; `field` is called as on the wire."""

    def __init__(self, told: ErrorAnswer) -> None:
        super().__init__(str(told.details["field"]), None, str(told.details.get("allowed", "")))
        self.code = told.code  # type: ignore[misc]
        self.args = (told.error,)


_ADVICE = {401: "; give a token with --token or HEADWAY_TOKEN"}
_ENDED: dict[str, type[RunEnded]] = {
    kind.code: kind
    for kind in (
        Draining,
        LaneCleared,
        MessageStale,
        QueueDropped,
        QueueFull,
        RunCancelled,
        RunFailed,
        SessionBusy,
    )
}


def error_of(
    status: int, body: bytes, retry_after: str | None = None, url: str = ""
) -> HeadwayError:
    """The error that an answer tells of; `url` is who was asked."""
    try:
        told = msgspec.json.decode(body, type=ErrorAnswer)
    except msgspec.DecodeError:
        proxy = status in _PROXY_STATUSES
        return ProxyFailed(status, url) if proxy else NotHeadway(status, body, url)
    return refusal(status, told, _seconds(retry_after))


def refusal(status: int, told: ErrorAnswer, retry_after_s: float | None = None) -> HeadwayError:
    """The error of its family; of its very kind where that is known."""
    details = told.details
    if told.code in _ENDED and "run" in details and details.get("state") in tuple(State):
        return _ended(_ENDED[told.code], told)
    if told.code == JobNotFound.code and "job" in details:
        return JobNotFound(str(details["job"]))
    if told.code == NotFound.code and "run" in details:
        return _said(NotFound(str(details["run"])), told)
    if status >= 500 and status != 503:
        return ServerFailed(status, told.error)
    if told.retryable:
        return ServerUnavailable(status, told, retry_after_s)
    if "field" in details:
        return FieldRefused(told)
    return ServerRefused(status, told)


def _ended(kind: type[RunEnded], told: ErrorAnswer) -> RunEnded:
    reason = told.details.get("reason")
    outcome = Outcome(
        State(str(told.details["state"])), None if reason is None else Reason(str(reason))
    )
    return _said(kind(str(told.details["run"]), outcome), told)


def _said(error: SomeError, told: ErrorAnswer) -> SomeError:
    """With the words of the server."""
    error.args = (told.error,)
    return error


def _glimpse(body: bytes) -> str:
    """The beginning of what was answered, on one line; of a page for browsers, only that it is one."""
    shown = " ".join(body[:_SHOWN].decode(errors="replace").split())
    if shown.startswith("<"):
        return " and a page for browsers"
    return f" {shown}" if shown.isprintable() and shown else ""


def _seconds(retry_after: str | None) -> float | None:
    try:
        return None if retry_after is None else max(0.0, float(retry_after))
    except ValueError:
        return None
