"""Reading a log again: the newest lines over all its files, and those that come."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Self, TypeAlias

import msgspec

from headway.logs.files import files_of
from headway.logs.lines import RANK
from headway.model.words import LogLevel

Line: TypeAlias = dict[str, object]
_RUN_FIELDS = ("runId", "into", "message", "parts")
_DECODER = msgspec.json.Decoder(dict[str, object])


def line_matches(
    line: Line,
    *,
    level: LogLevel = LogLevel.DEBUG,
    event: str | None = None,
    run: str | None = None,
    session: str | None = None,
) -> bool:
    """Whether a line is among those that were asked for."""
    rank = next((RANK[known] for known in LogLevel if known == line.get("level")), 0)
    if rank < RANK[level]:
        return False
    if event is not None and line.get("event") != event:
        return False
    if session is not None and line.get("session") != session:
        return False
    return run is None or any(_holds(line.get(field), run) for field in _RUN_FIELDS)


def newest_lines(
    path: Path, count: int, wanted: Callable[[Line], bool], before: "Tail | None" = None
) -> list[Line]:
    """The last `count` lines that are wanted, of all files of a log, the oldest first.

    Given a tail, only those that it does not show: each line is then shown once.
    """
    newest: deque[Line] = deque(maxlen=count)
    for file in files_of(path):
        try:
            lines = file.open("rb")
        except FileNotFoundError:
            # The last of those that are kept; another one was just put aside.
            continue
        with lines:
            end = None if before is None else before.begins_in(lines)
            for raw in lines:
                if end is not None and lines.tell() > end:
                    break
                if (line := read_line(raw)) and wanted(line):
                    newest.append(line)
            if end is not None:
                break
    return list(newest)


def read_line(raw: bytes) -> Line | None:
    """A line of JSON; None if it is none: a disk was full, or something else wrote there."""
    try:
        return _DECODER.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class Tail:
    """The lines that are added to a log from now on, over rotations."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = b""
        self._file: BinaryIO | None = self._open()
        self._begin = 0 if self._file is None else self._file.seek(0, os.SEEK_END)

    def begins_in(self, file: BinaryIO) -> int | None:
        """Where in this file it began; None if it did in another one."""
        if self._file is None or not _same(file, self._file):
            return None
        return self._begin

    def lines(self) -> Iterator[Line]:
        """Those that came since the last call."""
        while True:
            yield from self._rest()
            after = self._next()
            if after is None:
                return
            # What was still written between the last look and the rotation.
            yield from self._rest()
            self.close()
            self._file, self._part = after, b""

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rest(self) -> Iterator[Line]:
        for raw in self._file or ():
            self._part += raw
            if self._part.endswith(b"\n"):
                whole, self._part = self._part, b""
                if line := read_line(whole):
                    yield line

    def _next(self) -> BinaryIO | None:
        """The file that was begun after the one that is read; None: that is still the newest."""
        try:
            files = files_of(self._path)
            if self._file is not None:
                mine = os.fstat(self._file.fileno())
                places = [
                    at for at, file in enumerate(files) if os.path.samestat(file.stat(), mine)
                ]
                # If it is gone: go on with what has its name, if something has.
                files = files[places[0] + 1 :] if places else files[-1:]
            return files[0].open("rb") if files else None
        except FileNotFoundError:
            # They are being put aside just now: the next look finds them in order.
            return None

    def _open(self) -> BinaryIO | None:
        try:
            return self._path.open("rb")
        except FileNotFoundError:
            return None


def _same(one: BinaryIO, other: BinaryIO) -> bool:
    return os.path.samestat(os.fstat(one.fileno()), os.fstat(other.fileno()))


def _holds(value: object, run: str) -> bool:
    return run in value if isinstance(value, list) else value == run
