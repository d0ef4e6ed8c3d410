"""Where in a TOML file each key stands. The parser of the standard library does not say, and people ask."""

import tomllib
from collections.abc import Iterator

from headway.config.layers import KeyPath

_LONGEST_STATEMENT = 50
"""A value that goes on for more lines than this hides where the keys below it are."""


def lines_of(text: str) -> dict[KeyPath, int]:
    """The line of each key and each head of a table, counted from 1. `text` must be TOML."""
    found: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, statement in _statements(text.replace("\r\n", "\n").split("\n")):
        paths = list(_paths(tomllib.loads(statement)))
        if statement.lstrip().startswith("["):
            # A head holds nothing, so the longest of its paths is the table that it opens.
            table = max(paths, key=len)
        else:
            paths = [(*table, *path) for path in paths]
        for path in paths:
            found.setdefault(path, number)
    return found


def _statements(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Each key with its value, and each head of a table, with the line that it begins in."""
    begin = 0
    while begin < len(lines):
        end = begin + 1
        while not _is_whole(statement := "\n".join(lines[begin:end])):
            if end == len(lines) or end - begin == _LONGEST_STATEMENT:
                return
            end += 1
        if statement.strip() and not statement.lstrip().startswith("#"):
            yield begin + 1, statement
        begin = end


def _is_whole(statement: str) -> bool:
    try:
        tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _paths(data: object, above: KeyPath = ()) -> Iterator[KeyPath]:
    """The path of everything in a statement: of `a.b = {c = 1}` those of a, a.b and a.b.c."""
    if above:
        yield above
    match data:
        case dict():
            for name, value in data.items():
                yield from _paths(value, (*above, name))
        case [dict() as only]:
            # `[[a]]`: nothing here is written so, but it must not hide where it stands.
            yield from _paths(only, above)
        case _:
            pass
