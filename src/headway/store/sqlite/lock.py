"""The lock beside the file: only its holder owns or recovers sessions (N-21). And how others wake the holder."""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from headway.model.errors import StoreRefused, StoreUnavailable

_LONGEST_PID = 20

if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        os.lseek(file, _LONGEST_PID, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class FileLock:
    """Held by one process, until it lets go or dies."""

    def __init__(self, path: str) -> None:
        self._path = Path(f"{path}.lock")
        self._store = path
        self._file: int | None = None

    def take(self) -> None:
        """Get the lock, or say who has it."""
        if self._file is not None:
            return
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            reason = f"{self._path} cannot be opened: {error.strerror}"
            raise StoreUnavailable(self._store, reason, "check the rights of its folder") from None
        try:
            _lock(file)
        except OSError:
            os.lseek(file, 0, os.SEEK_SET)
            pid = os.read(file, _LONGEST_PID).decode("ascii", "replace").strip()
            os.close(file)
            raise StoreRefused(
                self._store,
                f"process {pid or 'unknown'} owns it already: a SQLite database has one owner",
                "stop that process, or only send work from here (remote_agent), "
                "or use PostgreSQL for many nodes",
            ) from None
        os.ftruncate(file, 0)
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, f"{os.getpid()}\n".encode())
        self._file = file

    def drop(self) -> None:
        """The file stays: to delete it would let two processes lock two files of the same name."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class Poke:
    """A socket beside the file: a datagram to it says that something was added."""

    def __init__(self, path: str) -> None:
        self._path = f"{path}.poke"
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def listen(self, loop: asyncio.AbstractEventLoop, poked: Callable[[], None]) -> None:
        """As the holder of the lock. Where sockets cannot be had, the owner finds what is new by polling."""
        if self._socket is not None or not hasattr(socket, "AF_UNIX"):
            return
        with contextlib.suppress(OSError):
            Path(self._path).unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        listening.setblocking(False)
        try:
            listening.bind(self._path)
            loop.add_reader(listening.fileno(), self._heard, listening, poked)
        except (OSError, NotImplementedError):
            # The path is too long for a socket, the file system knows none, or the loop keeps virtual time.
            listening.close()
            return
        self._socket, self._loop = listening, loop

    def tell(self) -> None:
        """As anyone else. Nobody there, or too many pokes on the way: nothing is lost by it."""
        if not hasattr(socket, "AF_UNIX"):
            return
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending,
        ):
            sending.setblocking(False)
            sending.sendto(b".", self._path)

    def close(self) -> None:
        if self._socket is not None and self._loop is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._socket.fileno())
            self._socket.close()
            self._socket = None
            with contextlib.suppress(OSError):
                Path(self._path).unlink(missing_ok=True)

    @staticmethod
    def _heard(listening: socket.socket, poked: Callable[[], None]) -> None:
        with contextlib.suppress(OSError):
            while listening.recv(64):
                pass
        poked()
