"""Answers of the wire, printed: as JSON for programs just as HTTP has them, or as lines for people."""

from collections.abc import Callable, Sequence
from shlex import quote
from typing import TypeVar

import msgspec
import typer

from headway.cli.printing import print_all

NOTHING = "-"
LONGEST_CELL = 60
_encode = msgspec.json.Encoder().encode

Said = TypeVar("Said")


def as_json(data: object) -> str:
    return msgspec.json.format(_encode(data), indent=2).decode()


def show(answer: Said, lines: Callable[[Said], str], *, json: bool) -> None:
    """Print one answer."""
    print_all(as_json(answer) if json else lines(answer))


def more(cursor: str | None) -> None:
    """Say on stderr that a page has a next one."""
    if cursor:
        typer.echo(f"there are more: --cursor {quote(cursor)}", err=True)


def one_line(text: str, longest: int | None = None) -> str:
    """A text that cannot break a table or a terminal: one line, without control characters."""
    lines = " ".join(line.strip() for line in text.splitlines() if line.strip())
    plain = "".join(sign if sign.isprintable() else " " for sign in lines)
    return plain if longest is None or len(plain) <= longest else f"{plain[: longest - 1]}…"


def lines_of(rows: Sequence[tuple[str, str]]) -> str:
    """Names on the left, texts on the right."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name.ljust(width)}  {text}".rstrip() for name, text in rows)


def count_of(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
