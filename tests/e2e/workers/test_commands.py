"""Commands that outlive the process that has started them, with real `kill -9` (W-2, X-4)."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.model.run import RunId
from headway.runners.home import WorkerHome, is_held, read_about
from tests.e2e.processes import ROOT, Process
from tests.unit.runners.commands import (
    RUN,
    exists,
    freeze,
    is_frozen,
    keeper_of,
    none_alive,
    wait_until,
)
from tests.unit.runners.processes import alive

SCRIPT = """
echo began >>"$1/began"
echo first $$
while [ ! -e "$1/go" ]; do sleep 0.02; done
echo second
exit 7
"""


class Scene:
    """A home for workers, and servers that come and go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self._servers: list[Process] = []

    def server(self, name: str, epoch: int, *words: str, argv: tuple[str, ...] = ()) -> Process:
        argv = argv or ("sh", "-c", SCRIPT, "sh", str(self.folder))
        module = "tests.e2e.workers.serving"
        command = [module, str(self.home), str(epoch), *words, "--", *argv]
        server = Process(name, command, self.folder)
        self._servers.append(server)
        return server

    def go(self) -> None:
        (self.folder / "go").touch()

    @property
    def starts(self) -> int:
        """How often the command was started."""
        return len((self.folder / "began").read_text().split())

    @property
    def worker(self) -> Path:
        return WorkerHome(self.home).folder("shell", RunId(RUN), 2)

    def clean(self) -> None:
        for server in self._servers:
            if server.alive:
                server.kill()
        about = read_about(self.worker)
        if about is not None:
            for pid in (about.leader, about.pid):
                if pid and alive(pid) and is_held(self.worker):
                    os.kill(pid, signal.SIGKILL)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    try:
        yield scene
    finally:
        scene.clean()


def test_w2_a_killed_servers_command_goes_on_and_its_exit_code_arrives(scene: Scene) -> None:
    first = scene.server("first", 1)
    first.wait_for("heard")
    keeper = keeper_of(scene.home)
    first.kill()
    assert alive(keeper)
    second = scene.server("second", 2, "adopt")
    second.wait_for('heard "first')
    assert "has True" in second.printed
    scene.go()
    second.wait_for("failed command_failed")
    assert '"exit": 7' in second.printed
    assert 'heard "second\\n"' in second.printed
    assert "first" in second.printed.partition("failed")[2], "all that it wrote is kept"
    assert scene.starts == 1
    wait_until(lambda: not alive(keeper))


def test_w2_a_server_that_is_killed_right_after_the_start_is_found_out(scene: Scene) -> None:
    """The worker had no time to say who it is, and has none while the next server looks."""
    first = scene.server("first", 1, "die", "freeze")
    first.wait_for("started")
    keeper = int(first.printed.rpartition("started ")[2])
    wait_until(lambda: not first.alive)
    wait_until(lambda: is_frozen(keeper))
    assert read_about(scene.worker) is None
    second = scene.server("second", 2, "adopt")
    second.wait_for("serves")
    assert "has True" in second.printed
    os.kill(keeper, signal.SIGCONT)
    scene.go()
    second.wait_for("failed command_failed")
    assert '"exit": 7' in second.printed
    assert scene.starts == 1


def test_w2_a_command_that_ends_while_nobody_is_there_is_not_forgotten(scene: Scene) -> None:
    first = scene.server("first", 1, "die")
    first.wait_for("started")
    keeper = int(first.printed.rpartition("started ")[2])
    scene.go()
    wait_until(lambda: not alive(keeper))
    second = scene.server("second", 2, "adopt")
    second.wait_for("failed command_failed")
    assert "has True" in second.printed
    assert '"exit": 7' in second.printed
    assert "second" in second.printed.partition("failed")[2]
    assert scene.starts == 1


def test_w2_output_that_nobody_heard_is_bounded_and_counted(scene: Scene) -> None:
    script = 'echo began >>"$1/began"; head -c 5000000 /dev/zero | tr "\\0" x; echo; echo last'
    first = scene.server("first", 1, "die", argv=("sh", "-c", script, "sh", str(scene.folder)))
    first.wait_for("started")
    keeper = int(first.printed.rpartition("started ")[2])
    wait_until(lambda: not alive(keeper))
    assert sum(file.stat().st_size for file in scene.worker.iterdir()) < 200_000
    second = scene.server("second", 2, "adopt")
    second.wait_for("replied")
    assert "last" in second.printed
    assert f'"dropped": {5_000_006 - 64 * 1024}' in second.printed


def test_x4_a_higher_fence_takes_over_and_a_lower_one_is_refused(scene: Scene) -> None:
    first = scene.server("first", 5)
    first.wait_for("heard")
    older = scene.server("older", 4, "adopt")
    older.wait_for("raised TakenOver another node has taken it over")
    assert "heard" not in older.printed
    assert first.alive
    second = scene.server("second", 6, "adopt")
    second.wait_for("heard")
    first.wait_for("raised TakenOver")
    scene.go()
    second.wait_for("failed command_failed")
    assert '"exit": 7' in second.printed
    assert "second" not in first.printed
    assert scene.starts == 1


def test_x4_a_frozen_server_that_thaws_does_not_touch_what_was_adopted(scene: Scene) -> None:
    first = scene.server("first", 5)
    first.wait_for("heard")
    about = read_about(scene.worker)
    assert about is not None
    first.freeze()
    second = scene.server("second", 6, "adopt")
    second.wait_for("heard")
    # It is told to end its worker before it has seen that it is not its own any more.
    first.signal(signal.SIGUSR1)
    first.thaw()
    wait_until(lambda: not first.alive)
    assert "cancelled" in first.printed or "raised TakenOver" in first.printed
    assert alive(about.leader)
    scene.go()
    second.wait_for("failed command_failed")
    assert '"exit": 7' in second.printed


def test_x4_a_frozen_server_holds_its_command_only_until_another_takes_over(scene: Scene) -> None:
    """It hears nothing more, so the command waits; the next one hears the end of it."""
    wait = 'echo ready; while [ ! -e "$1/go" ]; do sleep 0.02; done'
    script = f'{wait}; head -c 3000000 /dev/zero | tr "\\0" x; echo; echo last'
    first = scene.server("first", 5, argv=("sh", "-c", script, "sh", str(scene.folder)))
    first.wait_for("heard")
    keeper = keeper_of(scene.home)
    first.freeze()
    scene.go()
    second = scene.server("second", 6, "adopt")
    second.wait_for("replied")
    assert "last" in second.printed
    first.thaw()
    first.wait_for("raised TakenOver")
    wait_until(lambda: not exists(keeper) or not alive(keeper))


def test_w2_an_adopted_command_can_be_cancelled(scene: Scene) -> None:
    first = scene.server("first", 1)
    first.wait_for("heard")
    about = read_about(scene.worker)
    assert about is not None
    first.kill()
    second = scene.server("second", 2, "adopt")
    second.wait_for("heard")
    second.signal(signal.SIGUSR1)
    second.wait_for("cancelled")
    assert none_alive(about.leader, about.pid)
    assert not scene.worker.exists()


def test_w2_a_cancel_that_was_begun_by_a_killed_server_is_finished(scene: Scene) -> None:
    """Its keeper kills it when its grace is over; what it was asked to do is no result of it."""
    deaf = "trap 'touch \"$1/asked\"' TERM; echo ready; while :; do sleep 0.02; done"
    argv = ("sh", "-c", deaf, "sh", str(scene.folder))
    first = scene.server("first", 1, "patient", argv=argv)
    first.wait_for("heard")
    about = read_about(scene.worker)
    assert about is not None
    first.signal(signal.SIGUSR1)
    wait_until((scene.folder / "asked").exists)
    first.kill()
    assert alive(about.leader)
    second = scene.server("second", 2, "adopt")
    second.wait_for("raised WorkerLost it was asked to end")
    assert "has True" in second.printed, "its session is busy until it is gone"
    assert none_alive(about.leader)


def test_w2_a_worker_that_no_store_remembers_ends_with_its_server(scene: Scene) -> None:
    first = scene.server("first", 1, "alone")
    first.wait_for("heard")
    about = read_about(scene.worker)
    assert about is not None
    first.kill()
    wait_until(lambda: none_alive(about.leader, about.pid))
    wait_until(lambda: not scene.worker.exists())


def test_w2_a_frozen_keeper_is_waited_for_and_can_be_cancelled(scene: Scene) -> None:
    first = scene.server("first", 1)
    first.wait_for("heard")
    keeper = keeper_of(scene.home)
    first.kill()
    freeze(keeper)
    second = scene.server("second", 2, "adopt")
    second.wait_for("serves")
    second.signal(signal.SIGUSR1)
    second.wait_for("cancelled")
    assert none_alive(keeper)
    assert not scene.worker.exists()


def test_w2_a_full_disk_fails_clearly_and_starts_nothing(scene: Scene) -> None:
    def no_byte_more() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    words = [str(scene.home), "1", "--", "sh", "-c", SCRIPT, "sh", str(scene.folder)]
    said = subprocess.run(
        [sys.executable, "-m", "tests.e2e.workers.serving", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        preexec_fn=no_byte_more,
    )
    assert "failed worker_home" in said.stdout, said.stderr
    assert "File too large" in said.stdout
    assert not (scene.folder / "began").exists()
    assert WorkerHome(scene.home).attempts("shell") == []


def test_w2_a_home_with_a_long_path_works(scene: Scene) -> None:
    """An address of a socket has 108 bytes, a path may have more."""
    scene.home = scene.folder / ("long" * 30) / ("longer" * 30)
    first = scene.server("first", 1)
    first.wait_for("heard")
    first.kill()
    second = scene.server("second", 2, "adopt")
    second.wait_for("heard")
    scene.go()
    second.wait_for("failed command_failed")
    assert scene.starts == 1
