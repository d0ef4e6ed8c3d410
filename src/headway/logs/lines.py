"""What a line of the log holds: `{"at", "level", "event", …}`, from an event or from a record of `logging`."""

import logging
import traceback
from collections.abc import Mapping

import msgspec

from headway.model.events import Event, NodeBroken, OutputEmitted, RunSubmitted, TokensUsed
from headway.model.outcome import Json
from headway.model.telling import told
from headway.model.text import whole
from headway.model.time import SECOND, Instant, instant_text
from headway.model.words import LogLevel

RECORD = "log"
"""What the lines of `logging` are called among the events."""
RANK: Mapping[LogLevel, int] = {level: rank for rank, level in enumerate(LogLevel)}
_LEVELS: Mapping[type[Event], LogLevel] = {
    RunSubmitted: LogLevel.DEBUG,
    OutputEmitted: LogLevel.DEBUG,
    TokensUsed: LogLevel.DEBUG,
    NodeBroken: LogLevel.ERROR,
}
_ENCODER = msgspec.json.Encoder()


def level_of(kind: type[Event]) -> LogLevel:
    """Notable events are warnings, starts and ends of runs information; the rest is for finding faults."""
    return _LEVELS.get(kind, LogLevel.WARNING if kind.notable else LogLevel.INFO)


def level_of_record(record: logging.LogRecord) -> LogLevel:
    if record.levelno >= logging.ERROR:
        return LogLevel.ERROR
    if record.levelno >= logging.WARNING:
        return LogLevel.WARNING
    return LogLevel.INFO if record.levelno >= logging.INFO else LogLevel.DEBUG


def event_line(event: Event, held_back: int = 0) -> bytes:
    """The line of an event. `held_back`: so many lines like it were left out before it."""
    data = told(event)
    return _line(data.pop("at"), level_of(type(event)), data, held_back)


def record_line(record: logging.LogRecord, message: str, held_back: int = 0) -> bytes:
    """The line of what a library said."""
    data: dict[str, Json] = {"event": RECORD, "logger": record.name, "message": message}
    if record.exc_info and record.exc_info[1] is not None:
        data["trace"] = whole("".join(traceback.format_exception(record.exc_info[1])))
    return _line(instant_text(said_at(record)), level_of_record(record), data, held_back)


def own_line(at: Instant, level: LogLevel, message: str) -> bytes:
    """A line that the log says about itself."""
    data: dict[str, Json] = {"event": RECORD, "logger": __package__, "message": message}
    return _line(instant_text(at), level, data, 0)


def said_at(record: logging.LogRecord) -> Instant:
    return round(record.created * SECOND)


def message_of(record: logging.LogRecord) -> str:
    """What a library said, its arguments filled in."""
    try:
        return whole(record.getMessage())
    except Exception:  # noqa: BLE001 - arguments that do not fit their text are somebody else's bug
        return whole(record.msg if isinstance(record.msg, str) else object.__repr__(record.msg))


def _line(at: Json, level: LogLevel, data: dict[str, Json], held_back: int) -> bytes:
    line: dict[str, Json] = {"at": at, "level": level.value, **data}
    if held_back:
        line["heldBack"] = held_back
    return _ENCODER.encode(line) + b"\n"
