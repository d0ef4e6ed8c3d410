"""What tests of commands share: turns to run them in, ears for what they write, and a home for their workers."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path

import uvloop

from headway import Turn
from headway.core.actions import Start
from headway.model.payload import Execute
from headway.model.run import AgentName, Firing, JobId, LaneName, Run, RunId, SessionKey
from headway.model.runner import CommandSpec
from headway.model.task import Task
from headway.model.time import MILLISECOND, SECOND, Span
from headway.model.words import Source
from headway.ports import Desk
from headway.runners.command import CommandRunner
from headway.runners.home import WorkerHome, read_about
from headway.runners.starting import Command, start, task_of
from tests.unit.runners.processes import alive
from tests.unit.runners.turns import Ears

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
RUN = RunId(os.environ.setdefault("HEADWAY_TEST_RUN", f"run-{os.getpid()}"))
"""Of this process alone, and of those that it starts: processes are known by their run, also to other tests."""

IGNORES = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if child:
    print("ready", os.getpid(), child, flush=True)
time.sleep(60)
"""
"""A command with a child, both deaf to SIGTERM."""


def play(
    main: Coroutine[object, object, object],
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
) -> object:
    """Run a test's coroutine, never for ever."""

    async def bounded() -> object:
        async with asyncio.timeout(100):
            return await main

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(bounded())


def turn_of(
    command: Execute | None = None,
    desk: Desk | None = None,
    *,
    run_id: str = RUN,
    text: str = "",
    attempt: int = 2,
    epoch: int = 3,
    adopts: bool = False,
    resumes: str | None = None,
    task: Task | None = None,
) -> Turn:
    """An attempt: of a job's command, or else of an agent that has one of its own."""
    run = Run(
        id=RunId(run_id),
        agent=AgentName("shell"),
        session=SessionKey("job:j-1"),
        source=Source.FIRING,
        lane=LaneName("cron"),
        priority=10,
        submitted_at=0,
        trace_id="trace-1",
        firing=Firing(JobId("j-1"), 0, command=command),
        resumes=None if resumes is None else RunId(resumes),
        task=task,
    )
    begins = Start(run, ticket=7, attempt=attempt, epoch=epoch, at=1_000_000, adopts=adopts)
    return Turn(desk or Ears(), asyncio.get_running_loop(), begins, run, text)


def python(program: str, *args: str) -> Execute:
    return Execute((sys.executable, "-c", program, *args))


def runner_at(home: Path, grace: Span = 5 * SECOND, **spec: object) -> CommandRunner:
    """A runner whose workers live there; without a command of its own it runs those of jobs."""
    said = CommandSpec(grace=grace, **spec)  # type: ignore[arg-type]
    return CommandRunner(said, WorkerHome(home), "shell", host="here")


def quick(home: Path) -> CommandRunner:
    return runner_at(home, 200 * MILLISECOND)


def keeper_of(home: Path, run_id: str = RUN, attempt: int = 2) -> int:
    """The process that keeps a command; waits until it has said who it is."""
    folder = WorkerHome(home).folder("shell", RunId(run_id), attempt)
    give_up_at = time.monotonic() + 60
    while (about := read_about(folder)) is None or not about.leader:
        assert time.monotonic() < give_up_at, "no worker has said who it is"
        time.sleep(0.005)
    return about.pid


def left_alone(home: Path, command: Execute) -> "subprocess.Popen[bytes]":
    """A worker whose server is gone: started, and never heard."""
    return started_alone(*WorkerHome(home).make("shell", RUN, 2), command)


def started_alone(folder: Path, lock: int, command: Execute) -> "subprocess.Popen[bytes]":
    """The same, in a folder that is there."""
    marks = {"HEADWAY_RUN_ID": RUN, "HEADWAY_FENCE": "3.7"}
    task = task_of(
        Command(
            argv=command.argv,
            environment={**os.environ, **marks},
            fence=(3, 7),
            marks=tuple(marks),
            started_at=1_000_000,
        )
    )
    started = start(task, folder, lock)
    started.line.close()
    return started.popen


def wait_until(what: Callable[[], bool], within_s: float = 60) -> None:
    give_up_at = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < give_up_at, "it never came to be"
        time.sleep(0.005)


def none_alive(*pids: int | str) -> bool:
    return not any(alive(int(pid)) for pid in pids)


def exists(pid: int | str) -> bool:
    """Also a zombie exists."""
    return Path(f"/proc/{pid}").exists()


def freeze(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: is_frozen(pid))


def is_frozen(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "T"
