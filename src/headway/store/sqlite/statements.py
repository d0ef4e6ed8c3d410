"""The SQL of this store: named statements from the files beside it, read once."""

import re
from collections.abc import Iterator, Mapping
from importlib import resources
from types import MappingProxyType
from typing import NamedTuple

MOST_ROWS = 128
"""So many rows go into one statement at most."""

_ROWS = re.compile(r"/\* rows \*/ (\([?, ]+\))")
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


class Statement:
    """One statement. Where it has a `rows` mark, it takes a whole batch of rows at once."""

    def __init__(self, text: str) -> None:
        self.text = text
        row = _ROWS.search(text)
        self.width = row[1].count("?") if row else 0
        self._sized: dict[int, str] = {}

    def sized(self, rows: int) -> tuple[str, int]:
        """The text for these rows or the first of them, and for how many it is.

        Powers of two, so that few are prepared: the next one if little of it stays empty, else the one below.
        """
        size = min(1 << (rows - 1).bit_length(), MOST_ROWS)
        if size * 3 > rows * 4:
            size //= 2
        text = self._sized.get(size)
        if text is None:
            text = _ROWS.sub(lambda row: ", ".join([row[1]] * size), self.text)
            self._sized[size] = text
        return text, size


class Migration(NamedTuple):
    """One step of the schema."""

    version: int
    name: str
    text: str


def _texts(folder: str) -> Iterator[tuple[str, str]]:
    for file in sorted(
        (resources.files(__package__) / folder).iterdir(), key=lambda file: file.name
    ):
        if file.name.endswith(".sql"):
            yield file.name.removesuffix(".sql"), file.read_text(encoding="utf-8")


def _load() -> Mapping[str, Statement]:
    found: dict[str, Statement] = {}
    for file, text in _texts("queries"):
        _, *parts = _NAME.split(text)
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            if name in found:
                raise ValueError(f"{file}.sql: a second statement {name}")
            found[name] = Statement(body.strip().removesuffix(";"))
    return MappingProxyType(found)


STATEMENTS = _load()

MIGRATIONS = tuple(
    Migration(int(name.partition("_")[0]), name, text) for name, text in _texts("migrations")
)
