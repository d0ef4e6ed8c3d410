"""Chat commands, recognised before the debouncer: `/stop`, `/stopall`, `/status` and `/queue …` (S-5, S-9)."""

import re
from typing import TypeAlias

from headway.core.request import queue_options
from headway.model.errors import InvalidInput
from headway.model.run import QueueOptions
from headway.model.value import Value
from headway.model.words import Mode

_COMMAND = re.compile(
    r"/(stop|stopall|status|queue)(?:@\S+)?(?:\s+(.*))?", re.ASCII | re.IGNORECASE | re.DOTALL
)
_NUMBER = re.compile(r"[0-9]{1,9}")
_ALLOWED = (
    "/queue status, clear or reset, or a mode and options such as "
    "/queue collect debounce:2s cap:25 drop:summarize"
)
_OPTION_NAMES = {"debounce", "cap", "drop", "steer_fallback", "max_concurrent", "mode"}


class StopOne(Value, frozen=True):
    """`/stop`"""


class StopEverything(Value, frozen=True):
    """`/stopall`"""


class Status(Value, frozen=True):
    """`/status`: what runs, what waits, and why."""


class QueueStatus(Value, frozen=True):
    """`/queue` or `/queue status`"""


class QueueClear(Value, frozen=True):
    """`/queue clear`"""


class QueueReset(Value, frozen=True):
    """`/queue reset`"""


class QueueSet(Value, frozen=True):
    """`/queue collect debounce:2s …`"""

    options: QueueOptions


Command: TypeAlias = (
    StopOne | StopEverything | Status | QueueStatus | QueueClear | QueueReset | QueueSet
)
_SINGLE: dict[str, Command] = {
    "stop": StopOne(),
    "stopall": StopEverything(),
    "status": Status(),
}


def parse(text: str) -> Command | None:
    """The command that a message is, or None if it is ordinary text. A bad `/queue` raises `InvalidInput`."""
    found = _COMMAND.fullmatch(text.strip())
    if found is None:
        return None
    name, rest = found.group(1).lower(), (found.group(2) or "").split()
    if name != "queue":
        return None if rest else _SINGLE[name]
    match [word.lower() for word in rest]:
        case [] | ["status"]:
            return QueueStatus()
        case ["clear"]:
            return QueueClear()
        case ["reset"]:
            return QueueReset()
        case words:
            return QueueSet(_options(words))


def _options(words: list[str]) -> QueueOptions:
    said: dict[str, object] = {}
    for word in words:
        name, colon, value = word.partition(":")
        if not colon:
            if name not in set(Mode):
                raise InvalidInput("queue", word, _ALLOWED)
            said["mode"] = name
        elif name not in _OPTION_NAMES:
            raise InvalidInput("queue", word, _ALLOWED)
        else:
            said[name] = int(value) if _NUMBER.fullmatch(value) else value
    return queue_options(said)
