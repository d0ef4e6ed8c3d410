"""From what an agent returned or raised to what its outcome says."""

import asyncio
import math
import traceback

import msgspec

from headway.core.actions import Died, Ended, Failed, Limited
from headway.core.nesting import MAX_LEVELS, nests_too_deep
from headway.model.errors import (
    InvalidInput,
    Permanent,
    RateLimited,
    Refuse,
    WorkerLost,
    WorkFailed,
)
from headway.model.outcome import Json, Reply
from headway.model.text import whole
from headway.model.time import SECOND, Span, span
from headway.model.words import Reason

MAX_ERROR = 2_000
MAX_TRACE = 8_000


def reply_of(result: object) -> Reply:
    """A text is the reply, nothing is an empty one, other values are kept as data."""
    if isinstance(result, str):
        return Reply(whole(result))
    if result is None:
        return Reply()
    if isinstance(result, Reply):
        return msgspec.structs.replace(result, text=whole(result.text))
    try:
        data: Json = msgspec.to_builtins(result)
    except (TypeError, RecursionError) as error:
        raise Permanent(
            f"an agent must return text, a Reply, or data that JSON can hold, not {type(result).__name__}"
        ) from error
    return Reply(data=data)


def bounded(reply: Reply, most: int) -> Reply:
    """The reply, if it is small enough to be kept."""
    if reply.data is None and not reply.attachments and 6 * len(reply.text) <= most:
        return reply
    if nests_too_deep(reply.data):
        raise Permanent(f"the data of a reply may have at most {MAX_LEVELS} levels")
    size = len(msgspec.json.encode(reply))
    if size > most:
        raise Permanent(
            f"the reply has {size:,} bytes, and at most {most:,} are kept: "
            "put large results elsewhere and answer with an attachment, or raise `result_size`"
        )
    return reply


def ending_of(error: BaseException, most: int) -> Ended:
    """How an attempt ended that raised. Of what the error knows besides, so many bytes can be kept."""
    match error:
        case asyncio.CancelledError():
            return Failed("the agent cancelled itself")
        case RateLimited():
            try:
                return Limited(_pause(error.retry_after), cut(str(error)))
            except InvalidInput as wrong:
                return Failed(describe(wrong), permanent=True)
        case Refuse():
            return Failed(cut(str(error)), Reason.REFUSED, permanent=True)
        case Permanent():
            return Failed(describe(error), permanent=True)
        case WorkFailed():
            said, details = cut(str(error)), _details(error.details, most)
            code = cut(str(error.code))
            return Failed(said, permanent=bool(error.permanent), code=code, details=details)
        case WorkerLost():
            return Died(cut(str(error)), error.code, _details(error.details, most))
        case _:
            return Failed(describe(error))


def _details(details: object, most: int) -> Json:
    """What can be kept of them. An error that says too much, or what no JSON can hold, is told all the same."""
    if details is None:
        return None
    try:
        if nests_too_deep(details):
            raise ValueError(f"they have more than {MAX_LEVELS} levels")
        plain: Json = _whole(msgspec.to_builtins(details, str_keys=True))
        size = len(msgspec.json.encode(plain))
    except (TypeError, ValueError, RecursionError) as wrong:
        return {"unkept": describe(wrong)}
    return (
        plain
        if size <= most
        else {"unkept": f"they have {size:,} bytes, and at most {most:,} are kept"}
    )


def _whole(value: Json) -> Json:
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return {whole(key): _whole(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(inner) for inner in value]
    return value


def describe(error: BaseException) -> str:
    """One line that says what was raised."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - an error that cannot be told is told by its name
        said = ""
    return cut(f"{type(error).__name__}: {said}" if said else type(error).__name__)


def is_own_cancel(error: BaseException, task: "asyncio.Task[object] | None") -> bool:
    """Whether it is this task that was cancelled, not something that a user's function awaited."""
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def cut(text: str) -> str:
    """A text of errors that everybody can be told, at most so long."""
    return whole(text if len(text) <= MAX_ERROR else f"{text[: MAX_ERROR - 1]}…")


def trace_of(error: BaseException) -> str:
    """Where it was raised, at most the innermost part of a long way."""
    try:
        text = "".join(traceback.format_exception(error))
    except Exception:  # noqa: BLE001 - an error that cannot be told is told by its name
        return describe(error)
    return whole(text[-MAX_TRACE:])


def _pause(retry_after: object) -> Span:
    """Seconds as a number or its text, as providers answer them in `Retry-After`, or a duration."""
    if isinstance(retry_after, str) and retry_after.isascii() and retry_after.isdigit():
        retry_after = int(retry_after[:9])
    if isinstance(retry_after, int | float) and not isinstance(retry_after, bool):
        if not math.isfinite(retry_after) or not 0 <= retry_after <= 10_000_000:
            raise InvalidInput("retry_after", retry_after, "seconds from 0 to 10,000,000")
        return round(retry_after * SECOND)
    return span(retry_after, "retry_after")
