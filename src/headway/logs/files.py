"""A file of lines that is put aside when it has grown to its size: `log`, then `log.1`, `log.2`, …"""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_MODE = 0o640
"""Lines may hold what agents and people said."""


class RotatedFile:
    """Appends whole lines. A full disk loses lines, never more: every failure is an `OSError` of one `write`."""

    def __init__(self, path: Path, max_bytes: int, keep: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._torn = False
        """The last line was cut short, so the next one begins with the end of it."""
        self._file = self._open()
        self._size = os.fstat(self._file).st_size

    def write(self, lines: Iterable[bytes]) -> None:
        """Append lines, in as few writes as rotation allows."""
        self._follow()
        batch: list[bytes] = []
        size = self._size
        for line in lines:
            if size and size + len(line) > self._max_bytes:
                self._append(b"".join(batch))
                self._put_aside()
                batch, size = [], self._size
            batch.append(line)
            size += len(line)
        self._append(b"".join(batch))

    def close(self) -> None:
        with suppress(OSError):
            os.close(self._file)

    def _append(self, content: bytes) -> None:
        if self._torn and content:
            content = b"\n" + content
        rest = memoryview(content)
        try:
            while rest:
                written = os.write(self._file, rest)
                rest = rest[written:]
                self._size += written
                self._torn = False
        except OSError:
            self._torn = self._torn or 0 < len(rest) < len(content)
            raise

    def _put_aside(self) -> None:
        """Begin anew. Where names cannot be changed, go on with the file as it is, and try again much later."""
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            # A pipe or a device such as /dev/null is never full, and its name is not ours to change.
            self._size = 0
            return
        try:
            self._rotate()
        except OSError:
            self._size = 0

    def _rotate(self) -> None:
        with suppress(FileNotFoundError):
            numbered(self._path, self._keep).unlink()
        for number in range(self._keep - 1, 0, -1):
            with suppress(FileNotFoundError):
                numbered(self._path, number).rename(numbered(self._path, number + 1))
        self._path.rename(numbered(self._path, 1))
        self._reopen()

    def _follow(self) -> None:
        """If somebody else put the file aside or removed it, go on with the one that has its name now."""
        try:
            there = self._path.stat()
        except FileNotFoundError:
            self._reopen()
            return
        if not os.path.samestat(there, os.fstat(self._file)):
            self._reopen()

    def _reopen(self) -> None:
        fresh = self._open()
        self.close()
        self._file = fresh
        self._size = os.fstat(fresh).st_size
        self._torn = False

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, _MODE)


def numbered(path: Path, number: int) -> Path:
    """A file that was put aside: 1 is the newest of them."""
    return path.with_name(f"{path.name}.{number}")


def files_of(path: Path) -> list[Path]:
    """The file and those of it that were put aside, the oldest first."""
    numbers = sorted(
        int(number)
        for other in path.parent.glob(f"{_escaped(path.name)}.*")
        if (number := other.name.removeprefix(f"{path.name}.")).isdecimal()
    )
    aside = [numbered(path, number) for number in reversed(numbers)]
    return [*aside, path] if path.exists() else aside


def _escaped(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
