"""Server-sent events: how the journal is told over HTTP (the format of the HTML standard, section 9.2).

A block without data sets only the id that a client comes back with. It is sent at the start and as a sign of life,
so that a client which was cut off before its first event, or wants only rare ones, misses nothing either.
"""

import asyncio
from collections.abc import AsyncGenerator

from headway.gateway.stream.journal import Entry
from headway.gateway.stream.listener import Listener

KEEP_ALIVE_S = 15.0
CHUNK = 64 * 1024
"""About how many bytes are sent at once: as many as a connection buffers before it must wait."""
_RETRY_MS = 2_000


def block(entry: Entry) -> bytes:
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (
        entry.id.encode(),
        entry.name.encode(),
        entry.data,
    )


def named(name: str, data: bytes) -> bytes:
    """Something that cannot be asked for again, so it has no id."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


def opening(seen: str | None = None) -> bytes:
    """How soon to come back after a broken connection, and with which id."""
    place = "" if seen is None else f"id: {seen}\n"
    return f"retry: {_RETRY_MS}\n{place}\n".encode()


def sign_of_life(seen: str | None = None) -> bytes:
    place = "" if seen is None else f"id: {seen}\n"
    return f": still here\n{place}\n".encode()


TOO_SLOW = b": too slow, cut off; come back with Last-Event-ID\n\n"


async def told(listener: Listener, *, follow: bool = True) -> AsyncGenerator[bytes, None]:
    """The listener's events as they come, until it falls behind or the node ends.

    Without `follow` only those that are there already.
    """
    yield opening(listener.seen)
    loop = asyncio.get_running_loop()
    said_s = loop.time()
    while True:
        if listener.behind:
            yield TOO_SLOW
            return
        entries = listener.take(CHUNK)
        if entries:
            yield b"".join(map(block, entries))
            said_s = loop.time()
        elif not follow or listener.over:
            return
        else:
            try:
                # Not anew with each event: much may happen that this client does not want.
                async with asyncio.timeout_at(said_s + KEEP_ALIVE_S):
                    await listener.more()
            except TimeoutError:
                yield sign_of_life(listener.seen)
                said_s = loop.time()
