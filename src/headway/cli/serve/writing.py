"""A transport that sends at once what is written in one turn of the loop.

uvicorn writes the head of an answer and its body apart. That would be two calls of the system and two packets for
each answer, and the client would wake up twice.
"""

import asyncio


class Gathering:
    """Stands where uvicorn expects its transport. What it does not know itself is the transport's."""

    __slots__ = ("_loop", "_pieces", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._pieces:
            self._loop.call_soon(self.flush)
        self._pieces.append(data)

    def flush(self) -> None:
        """Hand over what waits. There may be nothing left: it was closed meanwhile."""
        if self._pieces:
            pieces, self._pieces = self._pieces, []
            self._transport.write(b"".join(pieces))

    def write_eof(self) -> None:
        self.flush()
        self._transport.write_eof()

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        self._pieces = []
        self._transport.abort()

    @property
    def plain(self) -> asyncio.Transport:
        """The transport itself, for who speaks something else from now on."""
        self.flush()
        return self._transport

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)
