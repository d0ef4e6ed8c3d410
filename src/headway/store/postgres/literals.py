"""Columns as PostgreSQL writes arrays in text: `{1,2}`, `{"a","b"}`.

The driver looks at each element of an array for what it is, and encodes it by itself. Joining whole columns costs
half as much, and the server reads the text as fast as the other form.
"""

from collections.abc import Sequence
from typing import cast

_BETWEEN = "\x01"


def numbers(column: Sequence[object]) -> str:
    """Whole numbers or truth values; None is null."""
    if not column:
        return "{}"
    return f"{{{','.join(map(str, column)).replace('None', 'NULL')}}}"


def texts(column: Sequence[object]) -> str:
    """Texts; None is null."""
    if not column:
        return "{}"
    try:
        joined = _BETWEEN.join(cast(Sequence[str], column))
    except TypeError:
        return _one_by_one(column)
    if joined.count(_BETWEEN) >= len(column):
        return _one_by_one(column)
    if '"' in joined or "\\" in joined:
        joined = _escaped(joined)
    joined = joined.replace(_BETWEEN, '","')
    return f'{{"{joined}"}}'


def _one_by_one(column: Sequence[object]) -> str:
    """A column with nulls, or with a text that has the very sign that stands between two."""
    quoted = ("NULL" if text is None else f'"{_escaped(cast(str, text))}"' for text in column)
    return f"{{{','.join(quoted)}}}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


class Call:
    """A call of a function whose arguments are columns."""

    def __init__(self, function: str, *kinds: str) -> None:
        values = ", ".join(
            f"${place}::text::{kind}" if kind.endswith("[]") else f"${place}"
            for place, kind in enumerate(kinds, 1)
        )
        self.statement = f"select * from {function}({values})"
        self._writers = [
            (texts if kind == "text[]" else numbers) if kind.endswith("[]") else None
            for kind in kinds
        ]

    def values(self, columns: Sequence[object]) -> list[object]:
        """The arguments as the statement takes them."""
        return [
            column if write is None else write(cast(Sequence[object], column))
            for write, column in zip(self._writers, columns, strict=True)
        ]


_TEXT, _INTEGER, _BIGINT, _BOOLEAN = "text[]", "integer[]", "bigint[]", "boolean[]"

RECORD = (
    "bigint", "bigint", _TEXT, _BIGINT,
    _TEXT, _TEXT, _TEXT, _INTEGER, _BIGINT, _BIGINT, _BOOLEAN, _TEXT,
    _INTEGER, _TEXT, _INTEGER, _BIGINT, _BIGINT, "boolean",
    _TEXT, _BIGINT,
)  # fmt: skip
"""The parameters of `record_v1`."""

ADMIT = (
    "bigint", "bigint", _TEXT, _INTEGER, _BOOLEAN, _TEXT, _TEXT, _BIGINT, _BIGINT, _BIGINT,
    _TEXT, _TEXT, _INTEGER, _INTEGER, _TEXT, _TEXT, _BOOLEAN, _BIGINT, _BIGINT, _BIGINT, _TEXT,
    _TEXT, _TEXT, _TEXT, _TEXT,
)  # fmt: skip
"""The parameters of `admit_v1`."""
