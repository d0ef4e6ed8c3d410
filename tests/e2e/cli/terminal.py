"""A command at a terminal: a real pseudo-terminal, keys in, and what is on it out."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.processes import ROOT

_WITHIN_S = 60.0
_CODES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


class Terminal:
    """What a program shows on a terminal, without colours and moves of the cursor."""

    def __init__(self, process: "subprocess.Popen[bytes]", screen: int) -> None:
        self.process = process
        self._screen = screen
        self._shown = ""
        self._seen = 0

    def type(self, keys: str) -> None:
        os.write(self._screen, keys.encode())

    def wait_for(self, text: str) -> str:
        """Until this is shown, after what was waited for before. Answers what came until then."""
        give_up_at = time.monotonic() + _WITHIN_S
        while (found := self._shown.find(text, self._seen)) < 0:
            if not self._read(give_up_at - time.monotonic()):
                raise AssertionError(f"{text!r} was not shown:\n{self._shown[self._seen :]}")
        before = self._shown[self._seen : found]
        self._seen = found + len(text)
        return before

    @property
    def rest(self) -> str:
        """What was shown after what was waited for."""
        return self._shown[self._seen :]

    @property
    def blocks(self) -> bool:
        """Whether the program's standard output waits until the terminal has taken what is written."""
        about = Path(f"/proc/{self.process.pid}/fdinfo/1").read_text()
        flags = re.search(r"flags:\s*(\d+)", about)
        assert flags is not None
        return not int(flags[1], 8) & os.O_NONBLOCK

    def end(self) -> int:
        """Until the program has ended. Answers its exit code."""
        while self._read(_WITHIN_S):
            pass
        return self.process.wait(_WITHIN_S)

    def _read(self, within_s: float) -> bool:
        ready, _, _ = select.select([self._screen], [], [], max(0.0, within_s))
        try:
            piece = os.read(self._screen, 65536) if ready else b""
        except OSError:
            return False  # The program has ended, and its side of the terminal is closed.
        self._shown += _CODES.sub("", piece.decode(errors="replace"))
        return bool(piece)


@contextmanager
def at_terminal(
    arguments: Sequence[str], environment: Mapping[str, str], columns: int = 100, lines: int = 30
) -> Iterator[Terminal]:
    """The command runs at a terminal of this size; it is gone at the end."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    without = {"COLUMNS", "LINES", "NO_COLOR"}
    said = {name: value for name, value in environment.items() if name not in without}
    process = subprocess.Popen(
        [sys.executable, "-m", "headway", *arguments],
        cwd=ROOT,
        env={**said, "TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
