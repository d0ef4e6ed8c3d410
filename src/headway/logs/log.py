"""The log itself: hears events and records, and writes them from a thread of its own."""

import logging
import sys
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TextIO, TypeAlias

from headway.logs.files import RotatedFile
from headway.logs.lines import (
    RANK,
    event_line,
    level_of,
    level_of_record,
    message_of,
    own_line,
    record_line,
    said_at,
)
from headway.logs.repeats import Repeats, condition_of, condition_of_record
from headway.model.errors import InvalidInput
from headway.model.events import CATALOGUE, Event
from headway.model.server import LogSettings
from headway.model.time import Instant
from headway.model.words import LogLevel

_HEARD: Mapping[LogLevel, frozenset[type[Event]]] = {
    level: frozenset(kind for kind in CATALOGUE if RANK[level_of(kind)] >= RANK[level])
    for level in LogLevel
}
"""What is written at each level; events come in numbers, so they are looked up."""
MOST_WAITING = 10_000
"""Lines that wait to be written. More are left out, and how many is said."""
_GATHER_S = 0.02
"""So long the thread lets lines come together: one write for many, and no wake-up for each."""
_CLOSE_WITHIN_S = 2.0

Heard: TypeAlias = Event | logging.LogRecord


def open_log(settings: LogSettings, stream: TextIO | None = None) -> "Log":
    """The log of a process, open. `stream` stands in for stderr. A file that cannot be written is refused."""
    file = None
    if settings.file:
        try:
            path = Path(settings.file).expanduser()
            file = RotatedFile(path, settings.max_bytes, settings.keep)
        except OSError as wrong:
            allowed = f"a file that can be written ({wrong.strerror})"
            raise InvalidInput("log.file", settings.file, allowed) from None
        except RuntimeError:
            allowed = "a file in the folder of a user that is known"
            raise InvalidInput("log.file", settings.file, allowed) from None
    return Log(settings.level, stream or sys.stderr, file)


class Log:
    """Writes what it hears, if its level lets it. Never raises, never waits."""

    def __init__(self, level: LogLevel, stream: TextIO | None, file: RotatedFile | None) -> None:
        self.level = level
        self._stream = stream
        self._file = file
        self._file_is_fine = True
        self._repeats = Repeats()
        self._waiting: deque[Heard] = deque()
        self._logged: Event | None = None
        """The last event that came through `logging`: the tap brings it once more."""
        self._missed = 0
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._handler = _Handler(self)
        self._thread = threading.Thread(target=self._write_all, name="headway-log", daemon=True)
        self._thread.start()
        logging.getLogger().addHandler(self._handler)
        logging.captureWarnings(True)

    def hear(self, event: Event) -> None:
        """What a bus is tapped with."""
        if event is not self._logged and type(event) in _HEARD[self.level]:
            self._put(event)

    def hear_record(self, record: logging.LogRecord) -> None:
        """What a library said. A bus logs its notable events so, just before it hands them to taps."""
        event = getattr(record, "event", None)
        if isinstance(event, Event):
            self.hear(event)
            self._logged = event
        elif RANK[level_of_record(record)] >= RANK[self.level]:
            self._put(record)

    def close(self) -> None:
        """Write what waits, within a bound, and hear no more."""
        logging.getLogger().removeHandler(self._handler)
        logging.captureWarnings(False)
        self._closing.set()
        self._wake.set()
        self._thread.join(_CLOSE_WITHIN_S)
        if self._file is not None and not self._thread.is_alive():
            self._file.close()

    def _put(self, heard: Heard) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self._missed += 1
            return
        self._waiting.append(heard)
        if not self._wake.is_set():
            self._wake.set()

    def _write_all(self) -> None:
        while not self._closing.is_set():
            self._wake.wait()
            self._closing.wait(_GATHER_S)
            self._wake.clear()
            self._write()
        self._write()

    def _write(self) -> None:
        lines: list[bytes] = []
        at: Instant = 0
        while self._waiting:
            heard = self._waiting.popleft()
            at = heard.at if isinstance(heard, Event) else said_at(heard)
            try:
                line = self._line(heard, at)
            except Exception as wrong:  # noqa: BLE001 - whatever is in a line of others: the log goes on
                kind = type(wrong).__name__
                line = own_line(at, LogLevel.ERROR, f"a line could not be written: {kind}")
            if line is not None:
                lines.append(line)
        if self._missed:
            missed, self._missed = self._missed, 0
            message = f"{missed} lines were left out: more came than could be written"
            lines.append(own_line(at, LogLevel.WARNING, message))
        if lines:
            self._write_file(lines, at)
            self._write_stream(lines)

    def _line(self, heard: Heard, at: Instant) -> bytes | None:
        if isinstance(heard, Event):
            held_back = self._repeats.held_back(condition_of(heard), at)
            return None if held_back is None else event_line(heard, held_back)
        message = message_of(heard)
        held_back = self._repeats.held_back(condition_of_record(heard, message), at)
        return None if held_back is None else record_line(heard, message, held_back)

    def _write_file(self, lines: list[bytes], at: Instant) -> None:
        """A file that cannot be written loses lines; stderr has them, and says once that the file does not."""
        if self._file is None:
            return
        try:
            self._file.write(lines)
        except OSError as wrong:
            if self._file_is_fine:
                message = f"the log file cannot be written: {wrong.strerror}"
                lines.append(own_line(at, LogLevel.ERROR, message))
            self._file_is_fine = False
        else:
            if not self._file_is_fine:
                lines.append(own_line(at, LogLevel.WARNING, "the log file can be written again"))
            self._file_is_fine = True

    def _write_stream(self, lines: list[bytes]) -> None:
        if self._stream is None:
            return
        # Nobody reads it any more: the file goes on.
        with suppress(OSError, ValueError):
            self._stream.write(b"".join(lines).decode())
            self._stream.flush()


class _Handler(logging.Handler):
    """Hands records of `logging` to the log."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.hear_record(record)
