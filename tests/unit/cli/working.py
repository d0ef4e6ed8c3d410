"""A `headway worker` as a process of its own, while commands are called beside it."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.unit.cli.running import TIMEOUT_S, environment_of


@contextmanager
def worker(folder: Path, store: str, *arguments: str) -> Iterator[None]:
    """Runs as long as the block does; ready when that begins."""
    output = folder / "worker.output"
    with output.open("wb") as written:
        process = subprocess.Popen(
            [sys.executable, "-m", "headway", "worker", "--store", store, *arguments],
            cwd=folder,
            env=environment_of(),
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=written,
        )
    try:
        wait_until(lambda: " runs " in output.read_text(encoding="utf-8"))
        yield
    finally:
        process.kill()
        process.wait()


def wait_until(seen: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + TIMEOUT_S
    while not seen():
        assert time.monotonic() < give_up_at
        time.sleep(0.02)
