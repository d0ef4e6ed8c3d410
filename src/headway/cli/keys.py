"""The keyboard of a person at a terminal: each key as it is pressed, without waiting for a line."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager


def has_keyboard() -> bool:
    """Whether keys can be read one by one here."""
    try:
        import termios  # noqa: F401
    except ImportError:
        return False
    return sys.stdin.isatty()


@asynccontextmanager
async def keyboard(*, signals: bool = True) -> AsyncIterator["asyncio.Queue[str]"]:
    """What is typed, in pieces as the terminal sends them; nothing is echoed.

    Without `signals` Ctrl-C is a key like any other.
    """
    import codecs
    import termios
    import tty

    typed: asyncio.Queue[str] = asyncio.Queue()
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    loop = asyncio.get_running_loop()
    with _opened_again() as descriptor:

        def read() -> None:
            text = decoder.decode(os.read(descriptor, 4096))
            if text:
                typed.put_nowait(text)

        before = termios.tcgetattr(descriptor)
        # At once, so that what was typed before is not thrown away.
        tty.setcbreak(descriptor, termios.TCSANOW)
        if not signals:
            modes = termios.tcgetattr(descriptor)
            modes[3] &= ~termios.ISIG
            termios.tcsetattr(descriptor, termios.TCSANOW, modes)
        loop.add_reader(descriptor, read)
        try:
            yield typed
        finally:
            loop.remove_reader(descriptor)
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextmanager
def _opened_again() -> Iterator[int]:
    """The terminal, opened for this alone.

    A loop reads from what never blocks, and standard input is mostly one with standard output: that would be cut
    off in the middle whenever the terminal is slow, and the shell would be left so.
    """
    descriptor = sys.stdin.fileno()
    for name in (os.ttyname, lambda _: os.ctermid()):
        try:
            opened = os.open(name(descriptor), os.O_RDONLY | os.O_NOCTTY)
        except OSError:
            # It belongs to somebody else, as after `su`, or has no name in this container.
            continue
        try:
            yield opened
        finally:
            os.close(opened)
        return
    try:
        yield descriptor
    finally:
        os.set_blocking(descriptor, True)
