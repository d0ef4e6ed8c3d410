"""Looking at processes."""

import os
from pathlib import Path


def alive(pid: int) -> bool:
    """Whether it does anything: a zombie waits only for whoever inherited it."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text().rpartition(") ")[2][0] not in "ZX"
    except (ProcessLookupError, FileNotFoundError):
        return False
