"""From what an agent returned or raised to what its outcome says."""

import msgspec

from headway.model.errors import Permanent
from headway.model.outcome import Json, Reply

MAX_ERROR = 2_000


def reply_of(result: object) -> Reply:
    """A text is the reply, nothing is an empty one, other values are kept as data."""
    if isinstance(result, str):
        return Reply(result)
    if result is None:
        return Reply()
    if isinstance(result, Reply):
        return result
    try:
        data: Json = msgspec.to_builtins(result)
    except TypeError as error:
        raise Permanent(
            f"an agent must return text, a Reply, or data that JSON can hold, not {type(result).__name__}"
        ) from error
    return Reply(data=data)


def describe(error: BaseException) -> str:
    """One line that says what was raised."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return text if len(text) <= MAX_ERROR else f"{text[: MAX_ERROR - 1]}…"
