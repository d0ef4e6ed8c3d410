"""Commands from their start to their result, with real processes in real time (W-1)."""

import asyncio
import errno
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import cast

import pytest

from headway import Permanent, Reply
from headway.model.errors import InvalidInput, WorkerLost, WorkFailed
from headway.model.payload import Execute
from headway.model.task import Task
from headway.model.time import MILLISECOND
from headway.runners.home import NO_HOME, WorkerHome
from headway.runners.work import NOT_STARTED
from headway.runtime.replies import MAX_ERROR
from tests.unit.runners.commands import LOOPS, RUN, python, runner_at, turn_of
from tests.unit.runners.commands import play as play_on
from tests.unit.runners.processes import alive
from tests.unit.runners.turns import Ears
from tests.unit.runtime.worlds import moment

Play = Callable[[Coroutine[object, object, object]], object]

SAYS_ARGUMENTS = "import sys; print(sys.argv[1:])"
SAYS_ENVIRONMENT = "import os, sys; print(*(os.environ[name] for name in sys.argv[1:]), sep='|')"


@pytest.fixture(params=LOOPS)
def play(request: pytest.FixtureRequest) -> Play:
    return lambda main: play_on(main, LOOPS[request.param])


async def run(home: Path, command: Execute) -> Reply:
    return await runner_at(home).run(turn_of(command))


def test_w1_what_a_command_writes_is_the_reply(play: Play, home: Path) -> None:
    program = (
        "import os; os.write(1, b'one\\n'); os.write(2, b'two\\n'); os.write(1, b'three\\n\\n')"
    )
    assert play(run(home, python(program))) == Reply("one\ntwo\nthree", data={"exit": 0})


def test_w1_a_silent_command_has_an_empty_reply(play: Play, home: Path) -> None:
    assert play(run(home, Execute(("true",)))) == Reply("", data={"exit": 0})


def test_w1_no_shell_reads_the_arguments(home: Path) -> None:
    reply = play_on(run(home, Execute(("echo", "$HOME; exit 1 | *", "'a b'"))))
    assert cast("Reply", reply).text == "$HOME; exit 1 | * 'a b'"


ODD_TEXTS = [
    "two words",
    'it\'s "quoted" `here`',
    "one\ntwo\n",
    "--version",
    "$(touch /tmp/never) && false; {text}",
    "ünïcödé 😀",
    "",
]


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_w1_a_template_puts_any_text_into_one_argument(home: Path, text: str) -> None:
    async def main() -> Reply:
        runner = runner_at(
            home,
            command=(sys.executable, "-c", SAYS_ARGUMENTS, "{text}", "a {text} b", "{{text}}"),
        )
        return await runner.run(turn_of(text=text, attempt=1))

    reply = cast("Reply", play_on(main()))
    assert reply.text == str([text, f"a {text} b", "{text}"])


def test_w1_a_text_that_no_program_can_be_given_is_refused_with_the_reason(home: Path) -> None:
    async def main() -> None:
        runner = runner_at(home, command=("echo", "{text}"))
        with pytest.raises(WorkFailed, match=r"'echo' cannot be run: .*NUL") as failure:
            await runner.run(turn_of(text="a\0b"))
        assert failure.value.permanent
        assert failure.value.code == NOT_STARTED
        assert WorkerHome(home).attempts("shell") == []

    play_on(main())


def test_w1_folder_stdin_and_environment_are_templates_too(home: Path, tmp_path: Path) -> None:
    (tmp_path / "of-a-task").mkdir()

    async def main() -> Reply:
        runner = runner_at(
            home,
            command=("sh", "-c", 'pwd -P; cat; echo "$ASKED"'),
            folder=f"{tmp_path}/of-{{action}}",
            stdin="read {text}\n",
            environment={"ASKED": "{action} on {tab_id}"},
        )
        return await runner.run(turn_of(text="me", task=Task("a-task", tab_id="t-1")))

    said = cast("Reply", play_on(main())).text
    assert said == f"{(tmp_path / 'of-a-task').resolve()}\nread me\na-task on t-1"


def test_w1_a_value_can_come_from_the_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "{not a template}")

    async def main() -> Reply:
        program = (sys.executable, "-c", SAYS_ENVIRONMENT, "KEY")
        runner = runner_at(home, command=program, environment={"KEY": "env:SECRET"})
        return await runner.run(turn_of())

    assert cast("Reply", play_on(main())).text == "{not a template}"
    with pytest.raises(InvalidInput, match=r"environment\.KEY"):
        runner_at(home, command=("true",), environment={"KEY": "env:NOT_SET_ANYWHERE"})


def test_w1_a_command_is_told_about_its_run(
    play: Play, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-4 also: the fence reaches the command."""
    monkeypatch.setenv("INHERITED", "yes")
    monkeypatch.setenv("HEADWAY_RUN_ID", "of a run that started this program")
    names = ["RUN_ID", "TRACE_ID", "JOB_ID", "SESSION", "ATTEMPT", "FENCE", "AGENT"]
    told = [*(f"HEADWAY_{name}" for name in names), "INHERITED", "OWN"]
    command = Execute(
        (sys.executable, "-c", SAYS_ENVIRONMENT, *told),
        environment=(("OWN", "a=b ü"), ("HEADWAY_RUN_ID", "a lie")),
    )
    reply = cast("Reply", play(run(home, command)))
    assert reply.text == f"{RUN}|trace-1|j-1|job:j-1|2|3.7|shell|yes|a=b ü"


def test_w1_bytes_that_are_no_text_pass_through_the_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAW", os.fsdecode(b"a\xffb"))
    program = "import os; print(os.environb[b'RAW'])"
    assert cast("Reply", play_on(run(home, python(program)))).text == r"b'a\xffb'"


def test_w1_a_command_is_looked_for_on_its_own_path(home: Path, tmp_path: Path) -> None:
    tool = tmp_path / "a-tool-of-its-own"
    tool.write_text("#!/bin/sh\necho found\n")
    tool.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    command = Execute((tool.name,), environment=(("PATH", path),))
    assert cast("Reply", play_on(run(home, command))).text == "found"


def test_w1_a_command_runs_in_its_folder(home: Path, tmp_path: Path) -> None:
    script = tmp_path / "here.sh"
    script.write_text("#!/bin/sh\npwd -P\n")
    script.chmod(0o755)
    reply = play_on(run(home, Execute(("./here.sh",), folder=str(tmp_path))))
    assert cast("Reply", reply).text == str(tmp_path.resolve())
    reply = play_on(run(home, Execute(("pwd", "-P"))))
    assert cast("Reply", reply).text == str(Path.cwd().resolve()), "else in the server's own"


@pytest.mark.parametrize("size", [0, 5, 1024 * 1024])
@pytest.mark.parametrize("reads", [True, False])
def test_w1_a_command_reads_its_stdin_or_leaves_it(home: Path, size: int, reads: bool) -> None:
    program = "import sys; print(len(sys.stdin.buffer.read()))" if reads else "print('unread')"
    command = Execute((sys.executable, "-c", program), stdin="x" * size)
    assert cast("Reply", play_on(run(home, command))).text == (str(size) if reads else "unread")


def test_w1_a_command_inherits_nothing_but_its_three_files(home: Path) -> None:
    """Not the lock above all: who has it is alive."""
    assert cast("Reply", play_on(run(home, Execute(("ls", "/proc/self/fd"))))).text.split() == [
        "0",
        "1",
        "2",
        "3",  # The folder that `ls` reads.
    ]


def test_w1_a_command_dies_of_a_broken_pipe_as_others_do(home: Path) -> None:
    command = Execute(("sh", "-c", "yes | head -1; trap"))
    assert cast("Reply", play_on(run(home, command))).text == "y"


def test_w1_another_code_than_0_is_an_error_with_the_code_and_the_output(
    play: Play, home: Path
) -> None:
    async def main() -> None:
        with pytest.raises(WorkFailed, match=r"^exit code 3: no such page$") as failure:
            await run(home, Execute(("sh", "-c", "echo no such page; exit 3")))
        assert failure.value.code == "command_failed"
        assert failure.value.details == {"exit": 3, "output": "no such page"}
        assert not failure.value.permanent, "it may be tried again"

    play(main())


def test_w1_the_end_of_a_long_output_is_what_the_outcome_shows(home: Path) -> None:
    async def main() -> None:
        says = "import sys; print('x' * 100_000, flush=True); sys.exit('the reason')"
        with pytest.raises(WorkFailed) as failure:
            await run(home, python(says))
        shown = str(failure.value)
        assert shown.startswith("exit code 1: …xxx")
        assert shown.endswith("\nthe reason")
        assert len(shown) < MAX_ERROR
        details = cast("dict[str, object]", failure.value.details)
        assert len(str(details["output"])) == 64 * 1024 - 1, "without the last line's end"
        assert details["dropped"] == 100_001 + len("the reason\n") - 64 * 1024

    play_on(main())


DIES = "import os; print('so far', flush=True); os.kill(os.getpid(), 9)"


def test_w1_a_command_that_a_signal_ends_says_so(home: Path) -> None:
    async def main() -> None:
        with pytest.raises(WorkFailed, match=r"^ended by SIGKILL: so far$") as failure:
            await run(home, python(DIES))
        assert failure.value.details == {"exit": -9, "output": "so far"}

    play_on(main())


def test_w3_a_command_that_something_killed_is_dead_where_it_can_be_resumed(home: Path) -> None:
    async def main() -> None:
        runner = runner_at(
            home, command=(sys.executable, "-c", DIES), resume=("echo", "go on with {session_uuid}")
        )
        with pytest.raises(WorkerLost, match=r"^ended by SIGKILL: so far$"):
            await runner.run(turn_of(attempt=1))
        again = await runner.run(turn_of(attempt=2))
        assert re.fullmatch(r"go on with [0-9a-f-]{36}", again.text)
        asked = await runner.run(turn_of(attempt=1, run_id=f"{RUN}-2", resumes=RUN))
        assert asked.text == again.text, "the same session of the agent"

    play_on(main())


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (Execute(("no-such-program-anywhere", "x")), "cannot be run: No such file or directory"),
        (Execute(("/etc/passwd",)), "'/etc/passwd' cannot be run: Permission denied"),
        (Execute(("/etc",)), "cannot be run: Permission denied"),
        (Execute(("true", "x" * 4_000_000)), "cannot be run: Argument list too long"),
        (Execute(("true", "a\0b")), "cannot be run: embedded null byte"),
        (Execute(("true",), environment=(("A=B", "c"),)), "illegal environment variable name"),
        (Execute(("true",), folder="/no/such/folder"), "there is no folder '/no/such/folder'"),
        (Execute(("true",), folder="/etc/passwd"), "there is no folder '/etc/passwd'"),
        (Execute(()), "the command is empty"),
        (Execute(("",)), "the command is empty"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_c9_a_command_that_cannot_be_run_is_not_tried_again(
    home: Path, command: Execute, reason: str
) -> None:
    async def main() -> None:
        with pytest.raises(WorkFailed, match=re.escape(reason)) as failure:
            await run(home, command)
        assert (failure.value.code, failure.value.permanent) == (NOT_STARTED, True)

    play_on(main())


def test_c9_a_run_without_a_command_is_not_tried_again(home: Path) -> None:
    async def main() -> None:
        with pytest.raises(Permanent, match="runs the commands of jobs, and this run has none"):
            await runner_at(home).run(turn_of(None))
        own = runner_at(home, command=("true",))
        assert not own.runs_commands
        with pytest.raises(Permanent, match="runs no commands of jobs"):
            await own.run(turn_of(Execute(("true",))))

    play_on(main())


def test_c9_a_program_of_another_machine_is_not_tried_again(home: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.write_bytes(b"\x00\x01 neither a script nor a program of this machine")
    foreign.chmod(0o755)

    async def main() -> None:
        with pytest.raises(WorkFailed, match="Exec format error") as failure:
            await run(home, Execute((str(foreign),)))
        assert failure.value.permanent

    play_on(main())


def test_c9_a_lack_of_processes_passes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "Popen", full)

    async def main() -> None:
        with pytest.raises(WorkFailed, match="Resource temporarily unavailable") as failure:
            await run(home, Execute(("true",)))
        assert not failure.value.permanent
        assert WorkerHome(home).attempts("shell") == [], "nothing is left of it"

    play_on(main())


def test_w2_a_home_that_cannot_be_written_fails_clearly_and_starts_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "home").write_text("a file, not a folder")
    started = tmp_path / "started"

    async def main() -> None:
        with pytest.raises(WorkFailed, match="no worker can be started in") as failure:
            await run(tmp_path / "home", Execute(("touch", str(started))))
        assert (failure.value.code, failure.value.permanent) == (NO_HOME, False)

    play_on(main())
    assert not started.exists()


def test_w1_many_commands_at_once_have_their_own_output(home: Path) -> None:
    async def main() -> None:
        runner = runner_at(home)
        turns = [turn_of(Execute(("echo", str(n))), run_id=f"{RUN}-{n}") for n in range(20)]
        replies = await asyncio.gather(*map(runner.run, turns))
        assert [reply.text for reply in replies] == [str(n) for n in range(20)]

    play_on(main())


def test_w1_nothing_is_left_open(play: Play, home: Path) -> None:
    async def main() -> None:
        runner = runner_at(home, 50 * MILLISECOND)
        await runner.run(turn_of(Execute(("true",))))
        before = len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(3):
            await runner.run(turn_of(Execute(("true",), stdin="x")))
            with pytest.raises(WorkFailed):
                await runner.run(turn_of(Execute(("no-such-program",))))
            ears = Ears()
            turn = turn_of(Execute(("sh", "-c", "echo ready; sleep 60")), ears)
            task = asyncio.create_task(runner.run(turn))
            await ears.until("ready")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await runner.look()
        await moment()
        assert len(list(Path("/proc/self/fd").iterdir())) == before

    play(main())


def test_w1_an_exit_code_comes_also_where_children_are_reaped_by_the_system(
    play: Play, home: Path
) -> None:
    """A program that ignores SIGCHLD: what it ignores, its children ignore as well."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    async def main() -> None:
        # uvloop listens for SIGCHLD itself from the start of a loop.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        with pytest.raises(WorkFailed, match="exit code 7"):
            await run(home, Execute(("sh", "-c", "sh -c 'exit 7'; exit $?")))

    try:
        play(main())
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_w2_how_it_ended_is_kept_until_it_is_forgotten(home: Path) -> None:
    async def main() -> None:
        runner = runner_at(home)
        assert not runner.has(RUN, 2)
        await runner.run(turn_of(Execute(("true",))))
        assert runner.has(RUN, 2)
        assert not runner.has(RUN, 1)
        runner.forget(RUN, 2)
        assert not runner.has(RUN, 2)
        runner.forget(RUN, 2)

    play_on(main())


def test_s3_a_new_try_starts_only_when_nothing_is_left_of_earlier_ones(home: Path) -> None:
    async def main() -> None:
        runner = runner_at(home)
        ears = Ears()
        program = python("import os, time; print('pid', os.getpid(), flush=True); time.sleep(60)")
        first = asyncio.create_task(runner.run(turn_of(program, ears, attempt=1)))
        pid = int((await ears.until(r"pid (\d+)\n"))[1])
        seen = "import os, sys; print(os.path.exists('/proc/' + sys.argv[1]))"
        reply = await runner.run(turn_of(python(seen, str(pid)), attempt=2, epoch=4))
        assert reply.text == "False"
        assert not alive(pid)
        with pytest.raises(WorkerLost):
            await first

    play_on(main())


def test_x4_an_older_owner_starts_nothing_beside_the_newer_one(home: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    waits = f"echo ready; while [ ! -e {go} ]; do sleep 0.01; done; echo done"

    async def main() -> None:
        runner = runner_at(home)
        ears = Ears()
        program = Execute(("sh", "-c", "echo ready; read line; echo done"))
        newer = asyncio.create_task(
            runner.run(turn_of(Execute(("sh", "-c", waits)), ears, epoch=9))
        )
        await ears.until("ready")
        with pytest.raises(WorkerLost, match="another node has taken it over"):
            await runner.run(turn_of(program, epoch=8))
        go.touch()
        assert (await newer).text == "ready\ndone"

    play_on(main())
