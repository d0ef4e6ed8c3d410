"""What the first process of a pane is told: in a file, because the command line of tmux is no place for secrets.

The file is for our own user alone, and is gone once it was read. Who wrote it has it locked until the pane is
there: so one whose writer was killed before that is known to be nobody's, and is removed by whoever looks next.
"""

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from headway.runners.home import is_locked, lock, make_private, no_home

_TOLD = ".json"
_FAILED = ".failed"


class Told:
    """The file of one pane, and what its first process leaves beside it if it fails."""

    def __init__(self, home: Path, session: str) -> None:
        self.file = home / f"{session}{_TOLD}"
        self.failed = Path(f"{self.file}{_FAILED}")
        self._lock: int | None = None

    def write(self, text: str) -> None:
        """Only for our own user, from its first byte. Raises `WorkFailed` if that cannot be, which may pass."""
        try:
            make_private(self.file.parent)
            self.remove()
            self._lock = os.open(
                self.file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600
            )
            lock(self._lock, shared=False)
            with os.fdopen(self._lock, "w", closefd=False) as out:
                out.write(text)
        except OSError as wrong:
            self.remove()
            raise no_home(self.file.parent, wrong) from wrong

    def let_go(self) -> None:
        """Its pane is there, or will never be."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def remove(self) -> None:
        """As far as the disk lets us: what stays is for nobody else's eyes."""
        for path in (self.file, self.failed):
            with suppress(OSError):
                path.unlink(missing_ok=True)


def unread(home: Path) -> list[str]:
    """The sessions of which there are files that nobody is writing. Ask before looking which panes there are."""
    try:
        names = {entry.name.partition(_TOLD)[0] for entry in home.iterdir()}
    except OSError:
        return []
    return [name for name in names if not _is_being_written(home / f"{name}{_TOLD}")]


def remove_unread(home: Path, sessions: Collection[str], panes: Collection[str]) -> None:
    """Remove what was written for panes that never came to be, or are gone."""
    for session in sessions:
        if session not in panes:
            Told(home, session).remove()


def _is_being_written(file: Path) -> bool:
    """An empty one has its lock in a moment."""
    try:
        return file.stat().st_size == 0 or is_locked(file)
    except OSError:
        return False
