"""The SQL of this store, read from the files beside it, with the schema put in."""

import re
from functools import cache
from importlib.resources import files

from headway.model.value import Value

_SCHEMA = re.compile(r"\bheadway\.")
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_FILE = re.compile(r"(\d{4})_\w+\.sql")


class Migration(Value, frozen=True):
    """One step of the schema; only ever added to."""

    number: int
    name: str
    text: str


@cache
def statements(schema: str) -> dict[str, str]:
    """All named statements, by name."""
    found: dict[str, str] = {}
    for file in ("reads.sql", "writes.sql", "timetable.sql", "tokens.sql", "workers.sql"):
        text = (files(__package__) / "queries" / file).read_text(encoding="utf-8")
        _, *parts = _NAME.split(text)
        for name, statement in zip(parts[::2], parts[1::2], strict=True):
            found[name] = _in_schema(statement.strip(), schema)
    return found


@cache
def migrations(schema: str) -> tuple[Migration, ...]:
    """All steps, the first one first."""
    found = []
    for file in (files(__package__) / "migrations").iterdir():
        matched = _FILE.fullmatch(file.name)
        if matched:
            text = _in_schema(file.read_text(encoding="utf-8"), schema)
            found.append(Migration(int(matched[1]), file.name, text))
    return tuple(sorted(found, key=lambda step: step.number))


def _in_schema(text: str, schema: str) -> str:
    return _SCHEMA.sub(f"{schema}.", text)
