"""Ending workers from outside: only what is surely theirs, and all of it (W-2, D-8, X-4)."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from headway.model.errors import WorkerLost
from headway.model.payload import Execute
from headway.runners.command import CommandRunner
from headway.runners.home import LOCK, WorkerHome, read_about
from headway.runners.keeper import ABOUT, process
from headway.runners.outside import end_worker
from headway.turn import Sight
from tests.unit.runners.commands import (
    IGNORES,
    RUN,
    keeper_of,
    left_alone,
    none_alive,
    play,
    python,
    quick,
    started_alone,
    turn_of,
    wait_until,
)
from tests.unit.runners.processes import alive
from tests.unit.runtime.worlds import moment


def stranger() -> "subprocess.Popen[bytes]":
    """A process that has nothing to do with us."""
    return subprocess.Popen(["sleep", "60"], start_new_session=True)


async def only(runner: CommandRunner) -> Sight:
    (sight,) = await runner.look()
    return sight


def test_w2_a_pid_that_is_another_process_now_is_dead_and_never_signalled(home: Path) -> None:
    async def main() -> None:
        runner = quick(home)
        await runner.run(turn_of(Execute(("true",))))
        folder = WorkerHome(home).folder("shell", RUN, 2)
        (folder / "ended.json").unlink()
        about = (folder / ABOUT).read_text()
        before = read_about(folder)
        assert before is not None
        # Births are counted in ticks of 10 ms: the stranger's is another one.
        born = max(before.born, before.leader_born)
        wait_until(lambda: time.clock_gettime(time.CLOCK_BOOTTIME) > born + 0.03)
        with stranger() as innocent:
            try:
                # The numbers of keeper and command have come again, with another birth.
                for pid in (before.pid, before.leader):
                    about = about.replace(f": {pid},", f": {innocent.pid},")
                (folder / ABOUT).write_text(about)
                assert not runner.has(RUN, 2)
                sight = await only(runner)
                assert (sight.over, sight.answers, sight.pid) == (True, False, innocent.pid)
                with pytest.raises(WorkerLost, match="nobody knows how it ended"):
                    await runner.run(turn_of(Execute(("true",)), epoch=4, adopts=True))
                await runner.end(RUN, 2)
                assert not folder.exists()
                assert alive(innocent.pid)
            finally:
                innocent.kill()

    play(main())


def test_w2_numbers_of_another_machine_mean_nothing_here(home: Path) -> None:
    async def main() -> None:
        runner = quick(home)
        with stranger() as innocent:
            try:
                folder, lock = WorkerHome(home).make("shell", RUN, 2)
                os.close(lock)
                found = process(innocent.pid)
                assert found is not None
                who = f'"pid":{innocent.pid},"born":{found.born}'
                leads = f'"leader":{innocent.pid},"leader_born":{found.born}'
                (folder / ABOUT).write_text(
                    f'{{{who},{leads},"machine":"before the last start","host":"here",'
                    '"fence":[1,1],"marks":[],"started_at":0,"adopted":false}'
                )
                assert read_about(folder) is not None
                await runner.end(RUN, 2)
                assert not folder.exists()
                assert alive(innocent.pid)
            finally:
                innocent.kill()

    play(main())


def test_d8_what_a_dead_keeper_left_running_is_seen_and_ended(home: Path) -> None:
    """Nobody was attached when its keeper was killed: the scan finds it."""

    async def main() -> None:
        runner = quick(home)
        keeper = left_alone(home, python(IGNORES))
        await asyncio.to_thread(keeper_of, home)
        while not (said := (await only(runner)).lines):
            await moment()
        leader, child = map(int, said[0].split()[1:])
        keeper.kill()
        await asyncio.to_thread(keeper.wait)
        await asyncio.to_thread(wait_until, lambda: not alive(leader))
        assert alive(child), "nobody told it"
        sight = await only(runner)
        assert (sight.over, sight.answers) == (False, False)
        assert not runner.has(RUN, 2)
        await runner.end(RUN, 2)
        assert none_alive(child)
        assert await runner.look() == []

    play(main())


def test_x4_what_another_has_taken_over_is_not_ended(home: Path) -> None:
    """Who asks for it may have been frozen, and thaws with an old wish."""
    keeper = left_alone(home, Execute(("sleep", "60")))
    keeper_of(home)
    folder = WorkerHome(home).folder("shell", RUN, 2)
    end_worker(folder, (2, 9))
    assert alive(keeper.pid)
    assert folder.exists()
    end_worker(folder, (3, 7))
    keeper.wait()
    assert not folder.exists()


def test_w2_a_worker_that_had_no_time_to_say_who_it_is_is_ended(home: Path) -> None:
    keeper = left_alone(home, Execute(("sleep", "60")))
    folder = WorkerHome(home).folder("shell", RUN, 2)
    keeper_of(home)
    (folder / ABOUT).unlink()
    end_worker(folder)
    keeper.wait()
    assert not folder.exists()


def test_d8_a_worker_that_is_just_being_started_is_ended(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder is there and locked, and its keeper not yet: who ends it waits for that."""
    looked = threading.Event()

    def pause(seconds: float) -> None:
        looked.set()
        time.sleep(seconds)

    monkeypatch.setattr("headway.runners.outside.time", SimpleNamespace(sleep=pause))
    folder, lock = WorkerHome(home).make("shell", RUN, 2)
    with ThreadPoolExecutor(1) as threads:
        ending = threads.submit(end_worker, folder)
        assert looked.wait(60)
        keeper = started_alone(folder, lock, Execute(("sleep", "60")))
        ending.result()
    try:
        assert keeper.wait(60) == -signal.SIGKILL
    finally:
        keeper.terminate()
    assert not folder.exists()


def test_w2_a_command_whose_keeper_is_killed_before_it_begins_does_not_begin() -> None:
    """Nobody would look after it."""
    program = """
import socket, sys
from headway.runners.keeper import Keeper
task = dict(argv=["echo", "begun"], environment=[], folder="/", stdin="", grace_s=1, output=1,
    outlives=True, host="", fence=[1, 1], marks=[], started_at=0)
Keeper(task, ".", socket.socketpair()[0])._become(int(sys.argv[1]), 0, 1, 2)
"""

    def begun(keeper: int) -> tuple[int, bytes, bytes]:
        argv = [sys.executable, "-c", program, str(keeper)]
        done = subprocess.run(argv, capture_output=True, check=False)
        return done.returncode, done.stdout, done.stderr

    assert begun(os.getpid()) == (0, b"begun\n", b"")
    assert begun(2**31 - 1) == (1, b"", b""), "its parent is another one by now"


def test_w2_who_only_names_the_folder_is_not_its_keeper(home: Path) -> None:
    """A person looks into the folder just when its keeper, which had no time to say who it is, is to be ended."""
    folder, lock = WorkerHome(home).make("shell", RUN, 2)
    with subprocess.Popen(["tail", "-f", "/dev/null", str(folder / LOCK), str(folder)]) as looks:
        try:
            with subprocess.Popen(["sleep", "0.3"], pass_fds=(lock,)):
                os.close(lock)
                end_worker(folder)
            assert looks.poll() is None
        finally:
            looks.kill()
    assert not folder.exists()
