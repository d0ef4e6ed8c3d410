"""What agents themselves saw: a line for each begin and end of an attempt, written by the agent as it happens.

Each process appends to a file of its own, one line with one `write`, so that a `kill -9` loses nothing that
was written. Instants are of the clock that counts since boot: the same for all processes of a machine.
"""

import os
import time
from pathlib import Path
from typing import Literal

import msgspec

from headway import Turn

FOLDER = "HEADWAY_E2E_LEDGER"
PROCESS = "HEADWAY_E2E_PROCESS"
SUFFIX = ".ledger"


def since_boot() -> int:
    """Microseconds; the same clock in every process."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000


def ask(number: int, milliseconds: int) -> str:
    """The text of a run: which one of its session it is, and how long it shall take."""
    return f"{number} {milliseconds}"


class Line(msgspec.Struct, frozen=True):
    """One thing that an attempt did."""

    kind: Literal["begin", "beat", "end", "cut"]
    run: str
    session: str
    number: int
    """Its place in its session, as whoever submitted it counted."""
    attempt: int
    fence: tuple[int, int]
    at: int
    process: str


class Pen:
    """Writes the ledger of this process."""

    def __init__(self, folder: Path, process: str) -> None:
        self._process = process
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = os.open(folder / f"{process}{SUFFIX}", flags, 0o644)

    @classmethod
    def of_environment(cls) -> "Pen":
        return cls(Path(os.environ[FOLDER]), os.environ[PROCESS])

    def write(self, kind: Literal["begin", "beat", "end", "cut"], turn: Turn, number: int) -> None:
        fence = (turn.fence.epoch, turn.fence.ticket)
        line = Line(
            kind,
            turn.id,
            turn.session,
            number,
            turn.attempt,
            fence,
            since_boot(),
            self._process,
        )
        os.write(self._file, msgspec.json.encode(line) + b"\n")


def read_lines(folder: Path) -> list[Line]:
    """The ledgers of all processes in the order of their instants."""
    decoder = msgspec.json.Decoder(Line)
    lines = [
        decoder.decode(row)
        for path in sorted(folder.glob(f"*{SUFFIX}"))
        for row in whole_lines(path)
    ]
    return sorted(lines, key=lambda line: line.at)


def whole_lines(path: Path) -> list[bytes]:
    """The lines of a file, without one that another process is in the middle of writing."""
    return path.read_bytes().rpartition(b"\n")[0].splitlines() if path.exists() else []
