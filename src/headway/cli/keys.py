"""The keyboard of a person at a terminal: each key as it is pressed, without waiting for a line."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


def has_keyboard() -> bool:
    """Whether keys can be read one by one here."""
    try:
        import termios  # noqa: F401
    except ImportError:
        return False
    if not sys.stdin.isatty():
        return False
    try:
        os.close(_opened_again())
    except OSError:
        return False
    return True


def _opened_again() -> int:
    """The terminal, opened for this alone.

    A loop reads from what never blocks, and standard input is mostly one with standard output: that would be cut
    off in the middle whenever the terminal is slow, and the shell would be left so.
    """
    return os.open(os.ttyname(sys.stdin.fileno()), os.O_RDONLY | os.O_NOCTTY)


@asynccontextmanager
async def keyboard(*, signals: bool = True) -> AsyncIterator["asyncio.Queue[str]"]:
    """What is typed, in pieces as the terminal sends them; nothing is echoed.

    Without `signals` Ctrl-C is a key like any other.
    """
    import codecs
    import termios
    import tty

    descriptor = _opened_again()
    before = termios.tcgetattr(descriptor)
    typed: asyncio.Queue[str] = asyncio.Queue()
    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read() -> None:
        text = decoder.decode(os.read(descriptor, 4096))
        if text:
            typed.put_nowait(text)

    loop = asyncio.get_running_loop()
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
        os.close(descriptor)
