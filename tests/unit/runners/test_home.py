"""Where workers live: their folders and locks (W-2)."""

import os
import resource
import stat
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headway.model.errors import WorkFailed
from headway.model.run import RunId
from headway.runners.home import (
    LOCK,
    NO_HOME,
    WorkerHome,
    is_held,
    read_about,
    read_end,
    remove,
)
from headway.runners.keeper import ABOUT, END

RUN = RunId("run-1")


@pytest.mark.parametrize("agent", ["a", "a/b", "..", ".", "übermut", "x" * 300, "€" * 200, " \n"])
@pytest.mark.parametrize("run_id", ["1k3f-42", "a.b.c", "../../etc", "ü"])
def test_w2_any_agent_and_run_has_its_folder(home: Path, agent: str, run_id: str) -> None:
    workers = WorkerHome(home)
    folder, lock = workers.make(agent, RunId(run_id), 3)
    os.close(lock)
    assert folder.parent.parent == home
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    (found,) = workers.attempts(agent)
    assert (found.run_id, found.number, found.folder) == (run_id, 3, folder)
    assert folder == workers.folder(agent, RunId(run_id), 3)
    assert workers.attempts("another") == []


def test_w2_long_names_that_begin_alike_are_told_apart(home: Path) -> None:
    workers = WorkerHome(home)
    one = workers.folder("x" * 300 + "1", RUN, 1)
    assert one != workers.folder("x" * 300 + "2", RUN, 1)


def test_w2_a_lock_is_held_as_long_as_anybody_has_it_open(home: Path) -> None:
    folder, lock = WorkerHome(home).make("a", RUN, 1)
    assert is_held(folder)
    assert is_held(folder), "to look takes nothing"
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(lock,)
    ) as other:
        os.close(lock)
        assert is_held(folder), "who inherited it has it"
        other.kill()
    assert not is_held(folder)


def test_w2_who_has_no_file_left_to_look_with_takes_nobody_for_dead(home: Path) -> None:
    """Else a second one would be started beside the first."""
    folder, lock = WorkerHome(home).make("a", RUN, 1)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        held = is_held(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        os.close(lock)
    assert held
    assert not is_held(folder)
    assert not is_held(folder / "nobody")


def test_w2_a_folder_is_seen_only_when_its_lock_is_taken(home: Path) -> None:
    """Who was killed in between leaves nothing that looks like a dead worker."""
    workers = WorkerHome(home)
    ended = subprocess.Popen(["true"])
    ended.wait()
    unfinished = workers.folder("a", RUN, 1).with_name(f"+run-1.1.{ended.pid}")
    unfinished.mkdir(parents=True)
    being_made = unfinished.with_name(f"+run-2.1.{os.getpid()}")
    being_made.mkdir()
    assert workers.attempts("a") == []
    assert not unfinished.exists()
    assert being_made.exists()


def test_w2_what_is_alive_is_not_removed(home: Path) -> None:
    folder, lock = WorkerHome(home).make("a", RUN, 1)
    remove(folder)
    assert folder.exists()
    os.close(lock)
    remove(folder)
    assert not folder.exists()
    remove(folder)


def test_w2_what_has_ended_is_removed_also_while_its_keeper_says_goodbye(home: Path) -> None:
    folder, lock = WorkerHome(home).make("a", RUN, 1)
    (folder / END).write_text('{"exit":0}')
    remove(folder)
    assert not folder.exists()
    os.close(lock)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid":"x"}', "\xff"])
def test_w2_half_a_file_is_none(home: Path, text: str) -> None:
    folder, lock = WorkerHome(home).make("a", RUN, 1)
    os.close(lock)
    for name in (ABOUT, END):
        (folder / name).write_text(text, "latin-1")
    assert read_about(folder) is None
    assert read_end(folder) is None


def test_w2_two_cannot_make_the_same_folder(home: Path) -> None:
    workers = WorkerHome(home)
    _, lock = workers.make("a", RUN, 1)
    with pytest.raises(WorkFailed) as failure:
        workers.make("a", RUN, 1)
    assert failure.value.code == NO_HOME
    os.close(lock)
    assert [entry.name for entry in workers.folder("a", RUN, 1).parent.iterdir()] == ["run-1.1"]


def test_w2_somebody_elses_folder_is_not_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: home.stat().st_uid + 1)
    with pytest.raises(WorkFailed, match="it belongs to somebody else"):
        WorkerHome(home).make("a", RUN, 1)


def test_w2_a_temporary_home_is_made_when_needed_and_goes_with_its_program() -> None:
    program = (
        "from headway.runners.home import WorkerHome\n"
        "home = WorkerHome.temporary()\n"
        "assert home.attempts('a') == []\n"
        "print(home.make('a', 'run-1', 1)[0])\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    folder = Path(said.stdout.strip())
    assert folder.name == "run-1.1"
    assert not folder.parent.parent.exists()


def test_w2_a_temporary_home_is_one_for_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def slow(prefix: str) -> str:
        made.append(prefix)
        time.sleep(0.01)
        return f"/nowhere/{prefix}{len(made)}"

    monkeypatch.setattr(tempfile, "mkdtemp", slow)
    workers = WorkerHome.temporary()
    with ThreadPoolExecutor(8) as pool:
        folders = set(pool.map(lambda _: workers.folder("a", RUN, 1), range(8)))
    assert len(folders) == len(made) == 1


def test_w2_the_lock_is_closed_to_programs_that_are_started_meanwhile(home: Path) -> None:
    folder, lock = WorkerHome(home).make("a", RUN, 1)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        os.close(lock)
        assert not is_held(folder)
        other.kill()
    assert (folder / LOCK).exists()
