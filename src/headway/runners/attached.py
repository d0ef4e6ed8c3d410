"""The server's end of one keeper: hears what its command writes, and how it ended."""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from headway.calls import in_thread
from headway.model.errors import WorkerLost
from headway.model.value import Value
from headway.runners import keeper
from headway.runners.home import End, is_held, read_about, read_complaint, read_end
from headway.runners.starting import Started

_BUFFERED = 256 * 1024
"""So much that was not heard yet is read ahead; then the command waits."""
_ANSWERS_S = 1.0
"""So long has a keeper to answer who looks."""
_LEAVES_S = 2.0
"""So long has a keeper to be gone after its last word."""
_LOOKS_EVERY_S = 0.02
_SELDOM_S = 0.5
_LONGEST_ADDRESS = 100

Hear = Callable[[bytes], None]


class TakenOver(WorkerLost):
    """Another node looks after this worker now: it must not be touched any more (X-4)."""

    def __init__(self) -> None:
        super().__init__("another node has taken it over")


class State(Value, frozen=True):
    """What a keeper tells who looks."""

    written: int
    output: bytes


class Attached:
    """One worker that this process looks after. Belongs to the loop that it is made on."""

    def __init__(
        self,
        folder: Path,
        fence: tuple[int, int],
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        popen: "subprocess.Popen[bytes] | None" = None,
    ) -> None:
        self.folder = folder
        self._fence = fence
        self._reader, self._writer = streams
        self._popen = popen
        self._reaped: asyncio.Future[int] | None = None
        self._head: tuple[bytes, int] | None = None

    @classmethod
    async def to_started(cls, folder: Path, fence: tuple[int, int], started: Started) -> "Attached":
        """To a keeper that is a child of this process."""
        started.line.setblocking(False)
        streams = await asyncio.open_unix_connection(sock=started.line, limit=_BUFFERED)
        return cls(folder, fence, streams, started.popen)

    @classmethod
    async def to_found(cls, folder: Path, fence: tuple[int, int]) -> "Attached | End":
        """To a keeper that outlived who started it; or how its command has ended meanwhile.

        One that does not let us in is waited for as long as it lives. Raises `WorkerLost` if nobody knows.
        """
        pause_s = _LOOKS_EVERY_S
        while await in_thread(is_held, folder):
            line = connected(folder)
            if line is not None:
                streams = await asyncio.open_unix_connection(sock=line, limit=_BUFFERED)
                attached = cls(folder, fence, streams)
                attached._say(keeper.ATTACH, b"%d.%d" % fence)
                return attached
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _SELDOM_S)
        end = await in_thread(read_end, folder)
        if end is None:
            raise WorkerLost("its worker is gone, and nobody knows how it ended")
        return end

    def ask(self) -> None:
        """Ask the command to end; after its grace its keeper kills it."""
        self._say(keeper.ASK)

    def kill(self) -> None:
        self._say(keeper.KILL)

    async def end(self, hear: Hear, skip: Callable[[int], None]) -> End:
        """Hear what it writes until all of it has ended, and answer how. May be called again after a cancel.

        Raises `TakenOver` if another node has it now, and `WorkerLost` if its keeper is gone.
        """
        while (said := await self._next()) is not None:
            match said:
                case keeper.OUTPUT, body:
                    hear(body)
                case keeper.DROPPED, body:
                    skip(int(body))
                case keeper.ENDED, body:
                    return msgspec.json.decode(body, type=End)
                case keeper.TAKEN, _:
                    raise TakenOver
                case _:
                    continue
        return await self._after_silence()

    async def leave(self, within_s: float = _LEAVES_S) -> bool:
        """Hang up, and let the keeper go. Answers whether it is gone, now or soon."""
        self.let_live()
        if self._reaped is None:
            return await gone(self.folder, within_s)
        await asyncio.wait((self._reaped,), timeout=within_s)
        return self._reaped.done()

    def let_live(self) -> None:
        """Hang up, whatever becomes of it. It is our child all the same, and has to be reaped one day."""
        self._writer.close()
        if self._popen is not None and self._reaped is None:
            self._reaped = in_thread(self._popen.wait)

    async def _next(self) -> tuple[bytes, bytes] | None:
        """The next thing that is said; None when there will be no more. Nothing is lost by a cancel."""
        try:
            if self._head is None:
                head = await self._reader.readexactly(keeper.HEAD.size)
                self._head = keeper.HEAD.unpack(head)
            kind, size = self._head
            body = await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, OSError):
            return None
        self._head = None
        return kind, body

    async def _after_silence(self) -> End:
        """Nothing more is said: it was given to another, has ended, or its keeper was killed."""
        for _ in range(int(_LEAVES_S / _LOOKS_EVERY_S)):
            about = await in_thread(read_about, self.folder)
            if about is not None and about.fence > self._fence:
                raise TakenOver
            if not await in_thread(is_held, self.folder):
                break
            await asyncio.sleep(_LOOKS_EVERY_S)
        end = await in_thread(read_end, self.folder)
        if end is not None:
            return end
        said = await in_thread(read_complaint, self.folder)
        raise WorkerLost(
            f"its keeper is gone, and nobody knows how it would have ended{said and f' ({said})'}"
        )

    def _say(self, kind: bytes, body: bytes = b"") -> None:
        if not self._writer.is_closing():
            self._writer.write(keeper.HEAD.pack(kind, len(body)) + body)


async def ask_state(folder: Path) -> State | None:
    """What a keeper says when somebody looks; None: it does not answer."""
    try:
        async with asyncio.timeout(_ANSWERS_S):
            body = await _asked(folder, keeper.LOOK)
    except TimeoutError:
        return None
    return None if body is None else msgspec.json.decode(body, type=State)


async def discard(folder: Path) -> None:
    """Have the keeper kill its command and forget it, if it does so soon."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_ANSWERS_S):
            await _asked(folder, keeper.DISCARD)


async def gone(folder: Path, within_s: float) -> bool:
    """Whether the keeper is gone, now or soon."""
    for _ in range(int(within_s / _LOOKS_EVERY_S)):
        if not await in_thread(is_held, folder):
            return True
        await asyncio.sleep(_LOOKS_EVERY_S)
    return False


async def _asked(folder: Path, kind: bytes) -> bytes | None:
    line = connected(folder)
    if line is None:
        return None
    reader, writer = await asyncio.open_unix_connection(sock=line)
    try:
        writer.write(keeper.HEAD.pack(kind, 0))
        head = await reader.readexactly(keeper.HEAD.size)
        return await reader.readexactly(keeper.HEAD.unpack(head)[1])
    except (asyncio.IncompleteReadError, OSError):
        return None
    finally:
        writer.close()


def connected(folder: Path) -> socket.socket | None:
    """A line to the keeper of a folder; None: it has no ear just now. Never blocks."""
    line = socket.socket(socket.AF_UNIX)
    line.setblocking(False)
    try:
        with _address(folder) as address:
            line.connect(address)
    except OSError:
        line.close()
        return None
    return line


@contextmanager
def _address(folder: Path) -> Iterator[str]:
    """A way to the socket that is short enough for an address, however long the path is."""
    path = str(folder / keeper.SOCKET)
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        yield path
    elif sys.platform == "linux":
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield f"/proc/self/fd/{opened}/{keeper.SOCKET}"
        finally:
            os.close(opened)
    else:
        with tempfile.TemporaryDirectory() as short:
            way = Path(short, "w")
            way.symlink_to(folder)
            yield str(way / keeper.SOCKET)
