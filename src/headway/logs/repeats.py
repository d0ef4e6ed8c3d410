"""What lasts is said once: a condition that comes again unchanged within a while is counted, not written (O-3)."""

import logging
from collections import OrderedDict
from typing import TypeAlias

from headway.model.events import (
    CallbackFailed,
    DeliveryFailed,
    Event,
    NodeDraining,
    NodeRestarted,
    ProviderHeld,
    StoreAway,
    StoreBack,
)
from headway.model.time import MINUTE, Instant, Span

HOLD: Span = MINUTE
"""After so long a condition that still lasts is said again, with how often it was held back."""
_MOST = 1_000

Condition: TypeAlias = tuple[tuple[str, ...], str]
"""What it is about, and how that is."""


class Repeats:
    """Knows which conditions were said, and when. Forgets the oldest beyond a bound."""

    def __init__(self) -> None:
        self._said: OrderedDict[tuple[str, ...], tuple[str, Instant, int]] = OrderedDict()

    def held_back(self, condition: Condition | None, at: Instant) -> int | None:
        """None: do not write it. Else how many like it were left out before it."""
        if condition is None:
            return 0
        subject, how = condition
        before, since, count = self._said.get(subject, ("", 0, 0))
        known = subject in self._said
        if known and before == how and at - since < HOLD:
            self._said[subject] = (how, since, count + 1)
            return None
        self._said[subject] = (how, at, 0)
        self._said.move_to_end(subject)
        if len(self._said) > _MOST:
            self._said.popitem(last=False)
        return count


def condition_of(event: Event) -> Condition | None:
    """The condition that an event tells of; None: it is news each time."""
    match event:
        case StoreAway(error=error):
            return ("store",), f"away: {error}"
        case StoreBack():
            return ("store",), "back"
        case NodeDraining(running=running):
            return ("node",), f"draining: {running}"
        case NodeRestarted():
            return ("node",), "restarted"
        case CallbackFailed(callback=callback, error=error):
            return ("callback", callback), error
        case ProviderHeld(provider=provider):
            return ("provider", provider), "held"
        case DeliveryFailed(channel=channel, error=error, again_at=int()):
            return ("delivery", channel), error
        case _:
            return None


def condition_of_record(record: logging.LogRecord, message: str) -> Condition:
    """A library that says the same again, about an error that comes from the same place."""
    return ("log", record.name, record.levelname, message, _raised(record)), ""


def _raised(record: logging.LogRecord) -> str:
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return ""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    return f"{type(error).__name__} {place}"
