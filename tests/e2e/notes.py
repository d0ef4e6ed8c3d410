"""What a submitting process was promised and told, written down as it happens."""

import os
from pathlib import Path
from typing import TypeVar

import msgspec

from headway import Outcome
from tests.e2e.checker import Asked, Ending

ASKED = "asked.jsonl"
TOLD = "told.jsonl"


class AskedRow(msgspec.Struct):
    """A submission that was acknowledged as this run."""

    run: str
    asked: Asked


class ToldRow(msgspec.Struct):
    """How a run ended, as its caller was told."""

    run: str
    told: Ending


Row = TypeVar("Row", AskedRow, ToldRow)


class Notebook:
    """Appends rows to a file; each is there once `write` returned, whatever happens to this process."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, row: msgspec.Struct) -> None:
        os.write(self._file, msgspec.json.encode(row) + b"\n")


def rows(path: Path, kind: type[Row]) -> list[Row]:
    """All rows of a notebook; none if it was never begun."""
    if not path.exists():
        return []
    decoder = msgspec.json.Decoder(kind)
    return [decoder.decode(row) for row in path.read_bytes().splitlines()]


def ending_of(outcome: Outcome) -> Ending:
    return Ending(outcome.state, outcome.reason or "", outcome.text)
