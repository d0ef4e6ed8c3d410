"""Commands, with real processes in real time: W-1 for runs, X-7 for gates."""

import asyncio
import errno
import os
import re
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import cast

import pytest
import uvloop

from headway import Permanent, Reply, Turn
from headway.core.actions import Start
from headway.model.payload import Execute
from headway.model.run import AgentName, Firing, JobId, LaneName, Run, RunId, SessionKey
from headway.model.time import MILLISECOND, SECOND
from headway.model.words import Source
from headway.ports import Desk, SubRun
from headway.runners.command import KEPT_BYTES, CommandFailed, CommandRunner, run_gate
from headway.runners.process import ExitUnknown
from headway.runtime.replies import MAX_ERROR, describe
from tests.unit.runners.processes import alive
from tests.unit.runtime.worlds import moment

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(params=LOOPS, autouse=True)
def loop_factory(request: pytest.FixtureRequest) -> Callable[[], asyncio.AbstractEventLoop]:
    return LOOPS[request.param]


@pytest.fixture
def play(
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
) -> Callable[[Coroutine[object, object, object]], object]:
    """Run a test's coroutine, never for ever."""

    def run(main: Coroutine[object, object, object]) -> object:
        async def bounded() -> object:
            async with asyncio.timeout(20):
                return await main

        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(bounded())

    return run


class Ears:
    """A desk that only listens."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._came = asyncio.Event()

    @property
    def heard(self) -> str:
        return "".join(self.pieces)

    async def until(self, pattern: str) -> re.Match[str]:
        while (match := re.search(pattern, self.heard)) is None:
            self._came.clear()
            await self._came.wait()
        return match

    def emit(self, ticket: int, text: str) -> None:
        self.pieces.append(text)
        self._came.set()

    def say(self, ticket: int, text: str) -> None:
        raise AssertionError

    def use(self, ticket: int, tokens_in: int, tokens_out: int) -> None:
        raise AssertionError

    def take_message(self, ticket: int, message: RunId) -> bool:
        raise AssertionError

    async def delegate(
        self, ticket: int, agent: str, text: str, options: dict[str, object]
    ) -> SubRun:
        raise AssertionError


def turn_of(command: Execute | None, desk: Desk | None = None) -> Turn:
    run = Run(
        id=RunId("run-1"),
        agent=AgentName("shell"),
        session=SessionKey("job:j-1"),
        source=Source.FIRING,
        lane=LaneName("cron"),
        priority=10,
        submitted_at=0,
        trace_id="trace-1",
        firing=Firing(JobId("j-1"), 0, command=command),
    )
    start = Start(run, ticket=7, attempt=2, epoch=3, at=0)
    return Turn(desk or Ears(), asyncio.get_running_loop(), start, run, "")


async def run_python(program: str, *args: str, runner: CommandRunner | None = None) -> Reply:
    command = Execute((sys.executable, "-c", program, *args))
    return await (runner or CommandRunner()).run(turn_of(command))


def start(turn: Turn, grace: int = 5 * SECOND) -> "asyncio.Task[Reply]":
    return asyncio.create_task(CommandRunner(grace).run(turn))


async def refused(task: "asyncio.Task[Reply]") -> None:
    """The cancelled run ends as cancelled."""
    with pytest.raises(asyncio.CancelledError):
        await task


Play = Callable[[Coroutine[object, object, object]], object]


def test_w1_what_a_command_writes_is_the_reply(play: Play) -> None:
    program = (
        "import os; os.write(1, b'one\\n'); os.write(2, b'two\\n'); os.write(1, b'three\\n\\n')"
    )
    assert play(run_python(program)) == Reply("one\ntwo\nthree", data={"exit": 0})


def test_w1_a_silent_command_has_an_empty_reply(play: Play) -> None:
    async def main() -> Reply:
        return await CommandRunner().run(turn_of(Execute(("true",))))

    assert play(main()) == Reply("", data={"exit": 0})


def test_w1_no_shell_reads_the_arguments(play: Play) -> None:
    async def main() -> Reply:
        return await CommandRunner().run(turn_of(Execute(("echo", "$HOME; exit 1 | *", "'a b'"))))

    assert cast("Reply", play(main())).text == "$HOME; exit 1 | * 'a b'"


def test_w1_a_command_is_told_about_its_run(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """X-4 also: the fence reaches the command."""
    monkeypatch.setenv("INHERITED", "yes")
    monkeypatch.setenv("HEADWAY_RUN_ID", "of a run that started this program")
    names = ["RUN_ID", "TRACE_ID", "JOB_ID", "SESSION", "ATTEMPT", "FENCE"]
    program = "import os, sys; print(*(os.environ[name] for name in sys.argv[1:]), sep='|')"
    argv = (sys.executable, "-c", program, *(f"HEADWAY_{name}" for name in names))

    async def main() -> Reply:
        command = Execute(
            (*argv, "INHERITED", "OWN"),
            environment=(("OWN", "a=b ü"), ("HEADWAY_RUN_ID", "a lie")),
        )
        return await CommandRunner().run(turn_of(command))

    told = cast("Reply", play(main())).text
    assert told == "run-1|trace-1|j-1|job:j-1|2|3.7|yes|a=b ü"


def test_w1_a_command_is_looked_for_on_its_own_path(play: Play, tmp_path: Path) -> None:
    tool = tmp_path / "a-tool-of-its-own"
    tool.write_text("#!/bin/sh\necho found\n")
    tool.chmod(0o755)

    async def main() -> Reply:
        command = Execute((tool.name,), environment=(("PATH", f"{tmp_path}:{os.environ['PATH']}"),))
        return await CommandRunner().run(turn_of(command))

    assert cast("Reply", play(main())).text == "found"


def test_w1_a_command_runs_in_its_folder(play: Play, tmp_path: Path) -> None:
    script = tmp_path / "here.sh"
    script.write_text("#!/bin/sh\npwd -P\n")
    script.chmod(0o755)

    async def main() -> Reply:
        return await CommandRunner().run(turn_of(Execute(("./here.sh",), folder=str(tmp_path))))

    assert cast("Reply", play(main())).text == str(tmp_path.resolve())


@pytest.mark.parametrize("size", [0, 5, 1024 * 1024])
@pytest.mark.parametrize("reads", [True, False])
def test_w1_a_command_reads_its_stdin_or_leaves_it(play: Play, size: int, reads: bool) -> None:
    program = "import sys; print(len(sys.stdin.buffer.read()))" if reads else "print('unread')"

    async def main() -> Reply:
        command = Execute((sys.executable, "-c", program), stdin="x" * size)
        return await CommandRunner().run(turn_of(command))

    assert cast("Reply", play(main())).text == (str(size) if reads else "unread")


def test_w1_another_code_than_0_is_an_error_with_the_code_and_the_output(play: Play) -> None:
    async def main() -> None:
        with pytest.raises(CommandFailed) as failure:
            await run_python("import sys; sys.exit('no such page')")
        assert failure.value.exit_code == 1
        assert failure.value.output == "no such page"
        assert describe(failure.value) == "CommandFailed: exit code 1: no such page"
        assert not isinstance(failure.value, Permanent), "it may be tried again"

    play(main())


def test_w1_the_end_of_a_long_output_is_what_the_outcome_shows(play: Play) -> None:
    async def main() -> None:
        with pytest.raises(CommandFailed) as failure:
            await run_python("import sys; print('x' * 100_000); sys.exit('the reason')")
        assert len(failure.value.output) == KEPT_BYTES - 1, "without the last line's end"
        shown = describe(failure.value)
        assert shown.startswith("CommandFailed: exit code 1: …xxx")
        assert shown.endswith("\nthe reason")
        assert len(shown) < MAX_ERROR

    play(main())


def test_w1_a_command_that_a_signal_ends_says_so(play: Play) -> None:
    async def main() -> None:
        with pytest.raises(CommandFailed, match=r"^ended by SIGKILL: so far$") as failure:
            await run_python(
                "import os; print('so far', flush=True); os.kill(os.getpid(), 9)",
            )
        assert failure.value.exit_code == -9

    play(main())


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (
            Execute(("no-such-program-anywhere", "x")),
            "'no-such-program-anywhere' cannot be run: No",
        ),
        (Execute(("/etc/passwd",)), "cannot be run: Permission denied"),
        (Execute(("/etc",)), "cannot be run: Permission denied"),
        (Execute(("true", "x" * 4_000_000)), "cannot be run: Argument list too long"),
        (Execute(("true", "a\0b")), "cannot be run: embedded null byte"),
        (Execute(("true",), environment=(("A=B", "c"),)), "cannot be run: illegal environment"),
        (Execute(("true",), folder="/no/such/folder"), "no folder '/no/such/folder'"),
        (Execute(("true",), folder="/etc/passwd"), "no folder '/etc/passwd'"),
        (Execute(()), "the command is empty"),
        (Execute(("",)), "the command is empty"),
        (None, "'shell' runs the commands of jobs, and this run has none"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_c9_a_command_that_cannot_be_run_is_not_tried_again(
    play: Play, command: Execute | None, reason: str
) -> None:
    async def main() -> None:
        with pytest.raises(Permanent, match=re.escape(reason)):
            await CommandRunner().run(turn_of(command))

    play(main())


def test_c9_a_program_of_another_machine_is_not_tried_again(play: Play, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.write_bytes(b"\x00\x01 neither a script nor a program of this machine")
    foreign.chmod(0o755)

    async def main() -> None:
        with pytest.raises(Permanent, match="Exec format error"):
            await CommandRunner().run(turn_of(Execute((str(foreign),))))

    play(main())


def test_c9_a_lack_of_processes_passes(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "Popen", full)

    async def main() -> None:
        with pytest.raises(BlockingIOError):
            await CommandRunner().run(turn_of(Execute(("true",))))

    play(main())


def test_c9_a_command_that_nobody_could_watch_is_not_left_running(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that is out of threads may still have had a process to give."""
    started: list[subprocess.Popen[bytes]] = []

    def no_thread(function: object, popen: "subprocess.Popen[bytes]") -> None:
        started.append(popen)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("headway.runners.process.in_thread", no_thread)

    async def main() -> None:
        with pytest.raises(RuntimeError, match="thread"):
            await CommandRunner().run(turn_of(Execute(("sleep", "60"))))
        (popen,) = started
        assert popen.returncode == -signal.SIGKILL

    play(main())


def test_w1_characters_and_broken_bytes_arrive_as_they_can(play: Play) -> None:
    """A character in two writes is one character; what is no UTF-8 is replaced, not refused."""
    program = (
        "import os, time; text = 'a€ü😀'.encode()\n"
        "for byte in text: os.write(1, bytes([byte])); time.sleep(0.002)\n"
        "os.write(1, b'\\xff|\\x00|\\xf0\\x9f')"
    )

    async def main() -> None:
        ears = Ears()
        reply = await start(turn_of(Execute((sys.executable, "-c", program)), ears))
        assert reply.text == "a€ü😀\ufffd|\x00|\ufffd"
        assert ears.heard == reply.text

    play(main())


def test_w1_the_tail_begins_with_a_whole_character(play: Play) -> None:
    async def main() -> None:
        for width in ("é", "€", "😀"):
            written = len(width.encode()) * 50_000 + 1
            reply = await run_python(
                f"import sys; sys.stdout.buffer.write({width!r}.encode() * 50_000 + b'.')"
            )
            assert set(reply.text) == {width, "."}
            assert KEPT_BYTES - 4 < len(reply.text.encode()) <= KEPT_BYTES
            assert reply.data == {"exit": 0, "dropped": written - KEPT_BYTES}

    play(main())


def test_w1_much_output_needs_little_memory(play: Play) -> None:
    class Counts(Ears):
        most = total = 0

        def emit(self, ticket: int, text: str) -> None:
            self.total += len(text)
            self.most = max(self.most, len(text))

    async def main() -> None:
        ears = Counts()
        turn = turn_of(Execute(("head", "-c", "100000000", "/dev/zero")), ears)
        tracemalloc.start()
        try:
            reply = await start(turn)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert (ears.total, ears.most) == (100_000_000, 4096)
        assert len(reply.text) == KEPT_BYTES
        assert peak < 2_000_000, f"{peak:,} bytes"

    play(main())


SAYS_GOODBYE = """
import os, signal, sys, time
def bye(number, frame):
    print("bye", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, bye)
print("ready", os.getpid(), flush=True)
time.sleep(60)
"""

IGNORES = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if child:
    print("ready", os.getpid(), child, flush=True)
time.sleep(60)
"""


def test_w1_a_cancel_asks_first(play: Play) -> None:
    async def main() -> None:
        ears = Ears()
        task = start(turn_of(Execute((sys.executable, "-c", SAYS_GOODBYE)), ears), 60 * SECOND)
        pid = int((await ears.until(r"ready (\d+)\n"))[1])
        assert not task.done(), "what it writes is heard while it runs"
        task.cancel()
        await refused(task)
        assert ears.heard.endswith("bye\n"), "what it says last is heard"
        assert not Path(f"/proc/{pid}").exists(), "no zombie"

    play(main())


def test_w1_a_cancel_kills_the_whole_group_after_the_grace(play: Play) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        ears = Ears()
        turn = turn_of(Execute((sys.executable, "-c", IGNORES)), ears)
        task = start(turn, 200 * MILLISECOND)
        pids = (await ears.until(r"ready (\d+) (\d+)\n")).groups()
        began = loop.time()
        task.cancel()
        await refused(task)
        assert loop.time() - began >= 0.19
        assert [pid for pid in pids if alive(int(pid))] == []
        assert not Path(f"/proc/{pids[0]}").exists(), "no zombie"

    play(main())


def test_w1_a_second_cancel_does_not_wait_for_the_grace(play: Play) -> None:
    async def main() -> None:
        ears = Ears()
        task = start(turn_of(Execute((sys.executable, "-c", IGNORES)), ears), 60 * SECOND)
        pids = (await ears.until(r"ready (\d+) (\d+)\n")).groups()
        task.cancel()
        await moment()
        task.cancel()
        await refused(task)
        assert [pid for pid in pids if alive(int(pid))] == []

    play(main())


def test_w1_the_whole_group_has_the_grace_also_when_its_first_process_is_gone(
    play: Play, tmp_path: Path
) -> None:
    """A shell dies of SIGTERM at once; the agent that it started may have to save its work."""
    saved = tmp_path / "saved"
    agent = (
        "import os, pathlib, signal, sys, time\n"
        "def save(number, frame):\n"
        "    time.sleep(0.2)\n"
        f"    pathlib.Path({str(saved)!r}).write_text('work')\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, save)\n"
        "os.write(3, b'ready\\n')\n"
        "os.close(3)\n"
        "time.sleep(60)\n"
    )
    shell = '"$0" -c "$1" 3>&1 >/dev/null 2>&1; echo never'

    async def main() -> None:
        ears = Ears()
        task = start(turn_of(Execute(("sh", "-c", shell, sys.executable, agent)), ears))
        await ears.until("ready")
        task.cancel()
        await refused(task)
        assert saved.read_text() == "work"

    play(main())


@pytest.mark.parametrize("redirect", ["", ">/dev/null 2>&1"], ids=["loud", "silent"])
def test_s3_what_a_command_leaves_behind_ends_with_it(play: Play, redirect: str) -> None:
    async def main() -> None:
        command = Execute(("sh", "-c", f"sleep 60 {redirect} & echo $!"))
        reply = await CommandRunner().run(turn_of(command))
        assert not alive(int(reply.text))

    play(main())


def test_w1_a_daemon_that_left_the_group_does_not_hold_the_run(play: Play) -> None:
    program = (
        "import os, subprocess\n"
        "daemon = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        "os.write(1, b'%d' % daemon.pid)\n"
        "os._exit(0)"
    )

    async def main() -> None:
        reply = await run_python(program)
        assert alive(int(reply.text))
        os.kill(int(reply.text), signal.SIGKILL)

    play(main())


def test_w1_nothing_is_left_open(play: Play) -> None:
    async def main() -> None:
        runner = CommandRunner(0)
        await runner.run(turn_of(Execute(("true",))))
        before = len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(5):
            await runner.run(turn_of(Execute(("true",), stdin="x")))
            with pytest.raises(Permanent):
                await runner.run(turn_of(Execute(("no-such-program",))))
            ears = Ears()
            task = start(turn_of(Execute(("sh", "-c", "echo ready; sleep 60")), ears), 0)
            await ears.until("ready")
            task.cancel()
            await refused(task)
            assert await run_gate(["true"], 5)
        assert len(list(Path("/proc/self/fd").iterdir())) == before

    play(main())


def test_w1_many_commands_at_once_have_their_own_output(play: Play) -> None:
    async def main() -> None:
        replies = await asyncio.gather(
            *(CommandRunner().run(turn_of(Execute(("echo", str(n))))) for n in range(20))
        )
        assert [reply.text for reply in replies] == [str(n) for n in range(20)]

    play(main())


def test_w1_an_exit_that_somebody_else_collected_is_not_taken_for_success(play: Play) -> None:
    """A program that ignores SIGCHLD has its children reaped by the system."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    async def main() -> None:
        # uvloop listens for SIGCHLD itself from the start of a loop.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        with pytest.raises(ExitUnknown, match="'true'"):
            await CommandRunner().run(turn_of(Execute(("true",))))

    try:
        play(main())
    finally:
        signal.signal(signal.SIGCHLD, before)


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
        play(run_gate(["sh", "-c", f"echo $$ >{pid}; sleep 60; true"], 0.3))
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
