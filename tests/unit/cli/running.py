"""Runs `headway` as a process of its own, without a terminal."""

import os
import subprocess
import sys
from pathlib import Path

TIMEOUT_S = 60


def headway(
    *arguments: str, folder: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "headway", *arguments],
        cwd=folder,
        env=environment_of(**environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=TIMEOUT_S,
    )


def environment_of(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "80", **more}
