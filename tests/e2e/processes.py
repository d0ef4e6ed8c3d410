"""Real processes: `headway worker` and others, started, watched, frozen and killed."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.e2e.ledger import FOLDER, PROCESS, since_boot

ROOT = Path(__file__).resolve().parents[2]
_PARENT_DIED = 1
_WITHIN_S = 60.0


class Process:
    """A child process with its own name in the ledger; what it prints goes to a file. It dies with us."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.output = folder / f"{name}.output"
        said = {FOLDER: str(folder), PROCESS: name, "PYTHONUNBUFFERED": "1", **(environment or {})}
        with self.output.open("wb") as output:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=ROOT,
                env={**os.environ, **said},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - one call that needs no lock
            )

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def alive(self) -> bool:
        return self.popen.poll() is None

    @property
    def printed(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, text: str, within_s: float = _WITHIN_S) -> None:
        """Until it has printed this."""
        give_up_at = time.monotonic() + within_s
        while True:
            # In this order: it may print this and end between the two.
            alive = self.alive
            if text in self.printed:
                return
            if not alive or time.monotonic() > give_up_at:
                raise AssertionError(f"{self.name} did not print {text!r}:\n{self.printed}")
            time.sleep(0.01)

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self.popen.send_signal(number)

    def kill(self) -> int:
        """`kill -9`. Answers until when it was alive for sure."""
        alive_at = since_boot()
        self.popen.kill()
        self.popen.wait(_WITHIN_S)
        return alive_at

    def freeze(self) -> int:
        """Stop it where it stands. Answers until when it may have moved for sure."""
        at = since_boot()
        self.signal(signal.SIGSTOP)
        stat = Path(f"/proc/{self.pid}/stat")
        while self.alive and stat.read_text().rpartition(")")[2].split()[0] != "T":
            time.sleep(0.001)
        return at

    def thaw(self) -> int:
        at = since_boot()
        self.signal(signal.SIGCONT)
        return at

    def end(self, within_s: float = _WITHIN_S) -> int:
        """SIGTERM, and wait for its end. Answers its exit code."""
        self.signal(signal.SIGTERM)
        return self.popen.wait(within_s)


@contextmanager
def ended_at_last(processes: Sequence[Process]) -> Iterator[None]:
    """Nothing is left running; if something fails meanwhile, it is shown what each process printed."""
    try:
        yield
    except BaseException as error:
        for process in processes:
            error.add_note(f"{process.name} printed:\n{process.printed[-3000:]}")
        raise
    finally:
        for process in processes:
            if process.alive:
                process.kill()


def say(line: object) -> None:
    """Print a line at once, for whoever started this process."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def worker(
    name: str, agents: str, store: str, folder: Path, environment: Mapping[str, str] | None = None
) -> Process:
    """A `headway worker`. It is ready when it has printed `runs`."""
    command = ["headway", "worker", "--agents", agents, "--store", store, "--name", name]
    return Process(name, command, folder, environment)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PARENT_DIED, signal.SIGKILL)
