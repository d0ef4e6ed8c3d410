"""What holds for all tests."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says nothing on a machine that does other things meanwhile.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

# With it, programs that tests start would write a line word by word, and half of it could be read.
os.environ.pop("PYTHONUNBUFFERED", None)


@pytest.fixture(scope="session", autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Workers outlive the nodes that tests kill: they live in a folder of the tests, and end with them."""
    folder = tmp_path_factory.mktemp("state")
    before = os.environ.get("HEADWAY_STATE")
    os.environ["HEADWAY_STATE"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["HEADWAY_STATE"]
        else:
            os.environ["HEADWAY_STATE"] = before
        _end_what_is_left(str(folder))


def _end_what_is_left(folder: str) -> None:
    """Only workers: a database that tests share has the same environment."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("HEADWAY_STATE") == folder and _is_worker(process):
                process.send_signal(signal.SIGKILL)


def _is_worker(process: psutil.Process) -> bool:
    keeps = any(part.endswith("keeper.py") for part in process.cmdline())
    return keeps or "HEADWAY_RUN_ID" in process.environ()
