"""What the first process of a pane is told: secret, and not left behind (W-1)."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from headway.model.errors import WorkFailed
from headway.runners.home import NO_HOME
from headway.runners.told import Told, remove_unread, unread

SESSION = "hw-run-1-1"
WRITES_AND_DIES = """
import os, signal, sys
from pathlib import Path
from headway.runners.told import Told
Told(Path(sys.argv[1]), "hw-run-1-1").write("secret")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "panes" / "store" / "agent"


def test_w1_it_is_for_our_own_user_alone(folder: Path) -> None:
    told = Told(folder, SESSION)
    told.write("secret")
    told.let_go()
    assert told.file.read_text() == "secret"
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (told.file, folder, folder.parent)]
    assert modes == [0o600, 0o700, 0o700]


def test_w1_what_a_killed_server_wrote_for_a_pane_that_never_came_is_removed(folder: Path) -> None:
    """It has the environment of the program, so it may hold any secret."""
    subprocess.run([sys.executable, "-c", WRITES_AND_DIES, str(folder)], check=False)
    assert unread(folder) == [SESSION]
    remove_unread(folder, [SESSION], {"hw-run-2-1"})
    assert list(folder.iterdir()) == []


def test_w1_what_a_pane_may_still_read_is_left_alone(folder: Path) -> None:
    told = Told(folder, SESSION)
    told.write("secret")
    assert unread(folder) == [], "its pane is being opened"
    told.let_go()
    remove_unread(folder, unread(folder), {SESSION})
    assert told.file.exists(), "its pane is there"
    (folder / "hw-run-2-1.json").touch()
    assert unread(folder) == [SESSION], "an empty one is locked in a moment"


def test_w1_why_a_program_did_not_start_is_removed_with_its_pane(folder: Path) -> None:
    told = Told(folder, SESSION)
    told.write("secret")
    told.let_go()
    told.file.rename(told.failed)
    remove_unread(folder, unread(folder), set())
    assert list(folder.iterdir()) == []


def test_w1_a_folder_that_is_not_there_has_nothing(folder: Path) -> None:
    assert unread(folder) == []


def test_w1_where_it_cannot_be_written_that_is_said(folder: Path) -> None:
    folder.parent.parent.mkdir()
    folder.parent.write_text("no folder")
    told = Told(folder, SESSION)
    with pytest.raises(WorkFailed, match="no worker can be started in") as failure:
        told.write("secret")
    told.let_go()
    assert (failure.value.code, failure.value.permanent) == (NO_HOME, False)


def test_w1_somebody_elses_folder_is_not_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(WorkFailed, match="it belongs to somebody else"):
        Told(folder, SESSION).write("secret")
