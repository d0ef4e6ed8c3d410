"""The live output of a worker: what it writes is streamed, but no more than anybody could follow.

A command can write faster than the slowest listener reads, and for hours. Whoever listens late must not cost
memory without end, so beyond a rate the middle is left out, and said to be.
"""

import asyncio
import codecs
from collections.abc import Callable

AT_ONCE = 1024 * 1024
"""So many bytes are streamed however fast they come."""
A_SECOND = 512 * 1024
"""So many bytes more each second."""
HELD = 64 * 1024
"""Beyond that, so much of the latest is held until it may be streamed."""
_PIECE = 4 * 1024
"""The most characters that are streamed at once."""


class LiveOutput:
    """Streams bytes as text. Belongs to the loop that it is made on."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._allowed = float(AT_ONCE)
        self._counted_s = self._loop.time()
        self._held = bytearray()
        self._left_out = 0
        self._timer: asyncio.TimerHandle | None = None

    def take(self, data: bytes) -> None:
        self._held += data
        self._stream()

    def skip(self, count: int) -> None:
        """So many bytes were written that nobody has any more."""
        self._left_out += count

    def close(self) -> None:
        """Nothing more will come: what is held is streamed."""
        self._allowed = float(2 * HELD + len(self._held))
        self._stream()
        self._say(self._decoder.decode(b"", final=True))

    def _stream(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now_s = self._loop.time()
        earned = A_SECOND * (now_s - self._counted_s)
        self._allowed = max(self._allowed, min(self._allowed + earned, AT_ONCE))
        self._counted_s = now_s
        if len(self._held) <= self._allowed:
            self._allowed -= len(self._held)
            self._tell()
            return
        excess = max(0, len(self._held) - HELD)
        self._left_out += excess
        del self._held[:excess]
        wait_s = (len(self._held) - self._allowed) / A_SECOND
        self._timer = self._loop.call_later(max(wait_s, 0.001), self._stream)

    def _tell(self) -> None:
        if self._left_out and self._held:
            self._say(self._decoder.decode(b"", final=True))
            self._decoder.reset()
            self._say(f"\n[{self._left_out:,} bytes are not shown]\n")
            self._left_out = 0
        self._say(self._decoder.decode(bytes(self._held)))
        self._held.clear()

    def _say(self, text: str) -> None:
        for start in range(0, len(text), _PIECE):
            self._emit(text[start : start + _PIECE])


def tail(output: bytes, dropped: int) -> str:
    """The kept end of an output as text."""
    if dropped:
        # The first character may have lost its beginning.
        begins = next((i for i, byte in enumerate(output[:4]) if byte & 0xC0 != 0x80), 0)
        output = output[begins:]
    return output.decode(errors="replace").rstrip("\r\n")
