"""Printing what may be long, or in words that a terminal cannot show."""

import sys


def print_all(text: str, end: str = "\n") -> None:
    """Print a text whole, whatever it is.

    A plain `print` of a long text to a pipe loses some of it where Python does not buffer (PYTHONUNBUFFERED, as in
    many containers): what the pipe does not take at once is dropped. And a letter that the terminal does not know
    would end the command.
    """
    out = sys.stdout
    out.flush()
    errors = "replace" if out.errors in {None, "strict"} else out.errors
    rest = memoryview(f"{text}{end}".encode(out.encoding, errors))
    while rest:
        rest = rest[out.buffer.write(rest) :]
    out.buffer.flush()
