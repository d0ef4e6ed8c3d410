"""Commands that are gates (X-7), with real processes in real time."""

import asyncio
import errno
import os
import re
import signal
import subprocess
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from headway import Permanent
from headway.runners.command import run_gate
from headway.runners.process import ExitUnknown
from tests.unit.runners.commands import LOOPS
from tests.unit.runners.commands import play as play_on
from tests.unit.runners.processes import alive

Play = Callable[[Coroutine[object, object, object]], object]


@pytest.fixture(params=LOOPS)
def play(request: pytest.FixtureRequest) -> Play:
    return lambda main: play_on(main, LOOPS[request.param])


@pytest.mark.parametrize(
    ("argv", "answer"),
    [
        (["true"], True),
        (["false"], False),
        (["sh", "-c", "exit 2"], False),
        (["sh", "-c", "kill -9 $$"], False),
        (["sh", "-c", "head -c 1000000 /dev/zero; cat"], True),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_x7_code_0_opens_a_gate(play: Play, argv: list[str], answer: bool) -> None:
    assert play(run_gate(argv, 10)) is answer


def test_x7_a_gate_that_cannot_be_run_says_why(play: Play) -> None:
    with pytest.raises(Permanent, match="'no-such-gate' cannot be run: No such file"):
        play(run_gate(["no-such-gate"], 10))


def test_x7_a_gate_that_takes_too_long_is_ended(play: Play, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with pytest.raises(TimeoutError):
        play(run_gate(["sh", "-c", f"echo $$ >{pid}; sleep 60; true"], 2))
    assert not alive(int(pid.read_text()))


def test_x7_a_cancelled_gate_is_ended(play: Play, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    os.mkfifo(pid)

    async def main() -> None:
        task = asyncio.create_task(run_gate(["sh", "-c", f"echo $$ >{pid}; sleep 60; true"], 60))
        its_pid = int(await asyncio.to_thread(pid.read_text))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not alive(its_pid)

    play(main())


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["/etc/passwd"], "'/etc/passwd' cannot be run: Permission denied"),
        (["true", "a\0b"], "cannot be run: embedded null byte"),
        ([], "the command is empty"),
    ],
)
def test_x7_a_gate_that_can_never_be_run_says_why(argv: list[str], reason: str) -> None:
    with pytest.raises(Permanent, match=re.escape(reason)):
        play_on(run_gate(argv, 10))


def test_x7_a_lack_of_processes_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "Popen", full)
    with pytest.raises(BlockingIOError):
        play_on(run_gate(["true"], 10))


def test_x7_a_gate_that_nobody_could_watch_is_not_left_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A machine that is out of threads may still have had a process to give."""
    started: list[subprocess.Popen[bytes]] = []

    def no_thread(function: object, popen: "subprocess.Popen[bytes]") -> None:
        started.append(popen)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("headway.runners.process.in_thread", no_thread)
    with pytest.raises(RuntimeError, match="thread"):
        play_on(run_gate(["sleep", "60"], 10))
    (popen,) = started
    assert popen.returncode == -signal.SIGKILL


def test_x7_what_a_gate_leaves_behind_ends_with_it(play: Play, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    assert play(run_gate(["sh", "-c", f"sleep 60 & echo $! >{pid}"], 10))
    assert not alive(int(pid.read_text()))


def test_x7_a_gate_whose_exit_somebody_else_collected_does_not_open(play: Play) -> None:
    """A program that ignores SIGCHLD has its children reaped by the system."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    async def main() -> None:
        # uvloop listens for SIGCHLD itself from the start of a loop.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        with pytest.raises(ExitUnknown, match="'true'"):
            await run_gate(["true"], 10)

    try:
        play(main())
    finally:
        signal.signal(signal.SIGCHLD, before)
