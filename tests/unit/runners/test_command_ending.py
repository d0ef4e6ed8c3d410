"""How commands are ended: asked, killed, and all of them, however they try to get away (W-1, S-3)."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from headway import Reply, Turn
from headway.model.errors import WorkerLost, WorkFailed
from headway.model.payload import Execute
from headway.model.time import MILLISECOND, SECOND
from headway.runners.home import WorkerHome
from headway.runners.keeper import END
from tests.unit.runners.commands import (
    IGNORES,
    LOOPS,
    RUN,
    exists,
    freeze,
    keeper_of,
    none_alive,
    python,
    quick,
    runner_at,
    turn_of,
    wait_until,
)
from tests.unit.runners.commands import play as play_on
from tests.unit.runners.processes import alive
from tests.unit.runners.turns import Ears
from tests.unit.runtime.worlds import moment

Play = Callable[[Coroutine[object, object, object]], object]

SAYS_GOODBYE = """
import os, signal, sys, time
def bye(number, frame):
    os.write(1, b"bye\\n")  # It may be in the middle of a print.
    sys.exit(0)
signal.signal(signal.SIGTERM, bye)
print("ready", os.getpid(), flush=True)
time.sleep(60)
"""

ESCAPES = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("child", os.getpid(), flush=True)
if os.fork() == 0:
    os.setsid()
    print("child", os.getpid(), flush=True)
    if os.fork() == 0:  # A daemon, whose parent is gone and which has closed what it inherited.
        if os.fork() == 0:
            os.setsid()
            print("child", os.getpid(), flush=True)
            print("ready", flush=True)
            null = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(null, number)
            os.execvpe("sleep", ["sleep", "60"], {"PATH": os.environ["PATH"]})
        os._exit(0)
    os.wait()
time.sleep(60)
"""
"""Its processes leave the group, the session, their parents, their output and their environment."""


@pytest.fixture(params=LOOPS)
def play(request: pytest.FixtureRequest) -> Play:
    return lambda main: play_on(main, LOOPS[request.param])


def start(home: Path, turn: Turn, grace: int = 5 * SECOND) -> "asyncio.Task[Reply]":
    return asyncio.create_task(runner_at(home, grace).run(turn))


async def refused(task: "asyncio.Task[Reply]") -> None:
    """The cancelled run ends as cancelled."""
    with pytest.raises(asyncio.CancelledError):
        await task


def test_w1_a_cancel_asks_first(play: Play, home: Path) -> None:
    async def main() -> None:
        ears = Ears()
        task = start(home, turn_of(python(SAYS_GOODBYE), ears), 60 * SECOND)
        pid = int((await ears.until(r"ready (\d+)\n"))[1])
        keeper = keeper_of(home)
        assert not task.done(), "what it writes is heard while it runs"
        task.cancel()
        await refused(task)
        assert ears.heard.endswith("bye\n"), "what it says last is heard"
        assert not exists(pid), "no zombie"
        assert not exists(keeper)
        assert WorkerHome(home).attempts("shell") == [], "its result counts for nothing"

    play(main())


def test_w1_a_cancel_kills_the_whole_group_after_the_grace(play: Play, home: Path) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        ears = Ears()
        task = start(home, turn_of(python(IGNORES), ears), 200 * MILLISECOND)
        pids = (await ears.until(r"ready (\d+) (\d+)\n")).groups()
        keeper = keeper_of(home)
        began = loop.time()
        task.cancel()
        await refused(task)
        assert loop.time() - began >= 0.19
        assert not any(map(exists, (*pids, keeper))), "none alive, and no zombie"

    play(main())


def test_w1_a_cancel_reaches_what_left_the_group_and_the_session(home: Path) -> None:
    async def main() -> None:
        ears = Ears()
        task = asyncio.create_task(quick(home).run(turn_of(python(ESCAPES), ears)))
        await ears.until("ready")
        pids = [int(line.split()[1]) for line in ears.heard.splitlines() if "child" in line]
        assert len(set(pids)) == 3
        assert all(map(alive, pids))
        task.cancel()
        await refused(task)
        assert not any(map(exists, pids)), "none alive, and no zombie"

    play_on(main())


def test_w1_a_second_cancel_does_not_wait_for_the_grace(play: Play, home: Path) -> None:
    async def main() -> None:
        ears = Ears()
        task = start(home, turn_of(python(IGNORES), ears), 60 * SECOND)
        pids = (await ears.until(r"ready (\d+) (\d+)\n")).groups()
        task.cancel()
        await moment()
        task.cancel()
        await refused(task)
        assert none_alive(*pids)

    play(main())


def test_w1_the_whole_group_has_the_grace_also_when_its_first_process_is_gone(
    home: Path, tmp_path: Path
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
        task = start(
            home, turn_of(Execute(("sh", "-c", shell, sys.executable, agent)), ears), 60 * SECOND
        )
        await ears.until("ready")
        task.cancel()
        await refused(task)
        assert saved.read_text() == "work"

    play_on(main())


@pytest.mark.parametrize("redirect", ["", ">/dev/null 2>&1"], ids=["loud", "silent"])
def test_s3_what_a_command_leaves_behind_ends_with_it(home: Path, redirect: str) -> None:
    async def main() -> None:
        command = Execute(("sh", "-c", f"sleep 60 {redirect} & echo $!"))
        reply = await runner_at(home).run(turn_of(command))
        assert not exists(reply.text)

    play_on(main())


def test_s3_what_ignores_the_end_of_its_command_is_killed(home: Path) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"

    async def main() -> None:
        command = Execute(("sh", "-c", '"$0" -c "$1" & echo $!; sleep 0.4', sys.executable, deaf))
        reply = await quick(home).run(turn_of(command))
        assert not exists(reply.text.split()[0])
        assert reply.data == {"exit": 0}

    play_on(main())


def test_w1_a_daemon_that_left_the_session_does_not_hold_the_run(home: Path) -> None:
    program = (
        "import os, subprocess\n"
        "daemon = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        "os.write(1, b'%d' % daemon.pid)\n"
        "os._exit(0)"
    )

    async def main() -> None:
        runner = runner_at(home)
        reply = await runner.run(turn_of(python(program)))
        try:
            assert alive(int(reply.text))
            await runner.end(RUN, 2)
            assert alive(int(reply.text)), "its command ended by itself: it was left on purpose"
        finally:
            os.kill(int(reply.text), signal.SIGKILL)

    play_on(main())


def test_w1_a_frozen_command_can_be_cancelled(home: Path) -> None:
    async def main() -> None:
        ears = Ears()
        task = start(home, turn_of(python(SAYS_GOODBYE), ears), 60 * SECOND)
        pid = int((await ears.until(r"ready (\d+)\n"))[1])
        freeze(pid)
        task.cancel()
        await refused(task)
        assert ears.heard.endswith("bye\n"), "it was thawed to hear that it shall end"
        assert not exists(pid)

    play_on(main())


def test_w1_a_command_whose_keeper_is_frozen_can_be_cancelled(home: Path) -> None:
    async def main() -> None:
        ears = Ears()
        task = start(home, turn_of(python(IGNORES), ears), 0)
        pids = (await ears.until(r"ready (\d+) (\d+)\n")).groups()
        keeper = keeper_of(home)
        freeze(keeper)
        task.cancel()
        await refused(task)
        assert none_alive(*pids, keeper)
        assert WorkerHome(home).attempts("shell") == []

    play_on(main())


def test_w1_a_cancel_right_at_the_start_leaves_nothing(play: Play, home: Path) -> None:
    async def main() -> None:
        for steps in range(6):
            task = start(home, turn_of(Execute(("sleep", "60"))), 0)
            for _ in range(steps):
                await asyncio.sleep(0.003)
            task.cancel()
            await refused(task)
            assert WorkerHome(home).attempts("shell") == []
            assert keepers_in(home) == []

    play(main())


def test_d8_an_end_kills_whoever_looks_after_it_and_forgets(play: Play, home: Path) -> None:
    async def main() -> None:
        ears = Ears()
        task = start(home, turn_of(python(IGNORES), ears), 60 * SECOND)
        pids = (await ears.until(r"ready (\d+) (\d+)\n")).groups()
        await runner_at(home).end(RUN, 2)
        assert none_alive(*pids)
        with pytest.raises(WorkerLost):
            await task
        assert WorkerHome(home).attempts("shell") == []
        await runner_at(home).end(RUN, 2)

    play(main())


def test_d8_an_end_needs_no_keeper_that_answers(home: Path) -> None:
    async def main() -> None:
        ears = Ears()
        task = asyncio.create_task(quick(home).run(turn_of(python(ESCAPES), ears)))
        await ears.until("ready")
        pids = [int(line.split()[1]) for line in ears.heard.splitlines() if "child" in line]
        keeper = keeper_of(home)
        freeze(keeper)
        await runner_at(home).end(RUN, 2)
        assert none_alive(*pids, keeper)
        with pytest.raises(WorkerLost):
            await task

    play_on(main())


def test_w2_a_killed_keeper_is_a_lost_worker_whose_command_does_not_live_on(home: Path) -> None:
    async def main() -> None:
        ears = Ears()
        task = start(home, turn_of(python(IGNORES), ears))
        pids = (await ears.until(r"ready (\d+) (\d+)\n")).groups()
        os.kill(keeper_of(home), signal.SIGKILL)
        with pytest.raises(WorkerLost, match="its keeper is gone"):
            await task
        assert none_alive(*pids), "also the child, which nobody told"
        assert WorkerHome(home).attempts("shell") == []

    play_on(main())


def test_w2_a_keeper_that_cannot_be_started_says_why(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.runners.starting.keeper.__file__", "/no/such/keeper.py")

    async def main() -> None:
        with pytest.raises(WorkerLost, match=r"can't open file '/no/such/keeper\.py'"):
            await quick(home).run(turn_of(Execute(("true",))))
        assert WorkerHome(home).attempts("shell") == []

    play_on(main())


def test_w2_a_keeper_that_is_asked_to_end_ends_its_command_first(home: Path) -> None:
    """As an administrator or a service manager does who knows nothing of Headway."""

    async def main() -> None:
        ears = Ears()
        task = start(home, turn_of(python(SAYS_GOODBYE), ears), 60 * SECOND)
        await ears.until("ready")
        os.kill(keeper_of(home), signal.SIGTERM)
        assert (await task).text.endswith("bye")

    play_on(main())


def keepers_in(home: Path) -> list[str]:
    """Processes that keep something there."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(home) in words and alive(int(entry.name)):
                found.append(words.replace(b"\0", b" ").decode())
    return found


def test_w2_a_keeper_stays_while_the_end_cannot_be_written_down(home: Path, tmp_path: Path) -> None:
    """As on a full disk: who is attached is told at once, who comes later can still be told."""
    go = tmp_path / "go"
    program = (
        "import os, sys, time; print('ready', flush=True)\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
        "sys.exit(5)"
    )

    async def main() -> None:
        runner = runner_at(home)
        ears = Ears()
        task = asyncio.create_task(runner.run(turn_of(python(program, str(go)), ears)))
        await ears.until("ready")
        keeper = keeper_of(home)
        in_the_way = WorkerHome(home).folder("shell", RUN, 2) / f"{END}.draft"
        in_the_way.mkdir()
        go.touch()
        with pytest.raises(WorkFailed, match="exit code 5"):
            await task
        assert alive(keeper)
        runner.forget(RUN, 2)
        assert runner.has(RUN, 2), "only the keeper knows how it ended"
        with pytest.raises(WorkFailed, match="exit code 5"):
            await runner_at(home).run(turn_of(python(program, str(go)), epoch=4, adopts=True))
        in_the_way.rmdir()
        await asyncio.to_thread(wait_until, lambda: not alive(keeper))
        assert runner.has(RUN, 2)
        runner.forget(RUN, 2)
        assert not runner.has(RUN, 2)

    play_on(main())
