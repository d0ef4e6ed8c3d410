"""Plain tables: columns that line up, for eyes and for `cut`, with or without a terminal."""

from collections.abc import Sequence

_WORDS = frozenset({"agent", "job", "name", "session", "token", "what"})


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lines with a head; columns that hold only numbers are right-aligned, but for names and texts."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    right = [
        bool(rows) and name not in _WORDS and all(cell.isdigit() for cell in column)
        for name, *column in zip(head, *rows, strict=True)
    ] or [False] * len(head)
    return "\n".join(
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in (head, *rows)
    )


def bytes_text(count: int) -> str:
    """A size as a person says it: 512 B, 3.4 MiB."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
