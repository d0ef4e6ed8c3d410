"""Rotated files: whole lines, no more than was allowed, and no failure that reaches further than its line."""

import errno
import os
from pathlib import Path

import pytest

from headway.logs.files import RotatedFile, files_of


def contents(path: Path) -> list[str]:
    return [file.read_text() for file in files_of(path)]


def test_o3_a_file_that_has_grown_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "log"
    file = RotatedFile(path, max_bytes=8, keep=2)
    for line in (b"one\n", b"two\n", b"three\n", b"four\n", b"five\n"):
        file.write([line])
    file.close()
    assert contents(path) == ["three\n", "four\n", "five\n"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["log", "log.1", "log.2"]


def test_o3_many_lines_at_once_rotate_between_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    file = RotatedFile(path, max_bytes=8, keep=9)
    file.write([b"aaa\n", b"bbb\n", b"ccc\n", b"a line longer than a file\n", b"ddd\n"])
    file.close()
    assert contents(path) == ["aaa\nbbb\n", "ccc\n", "a line longer than a file\n", "ddd\n"]


def test_o3_a_restart_goes_on_in_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for line in (b"one\n", b"two\n", b"six\n"):
        file = RotatedFile(path, max_bytes=8, keep=1)
        file.write([line])
        file.close()
    assert contents(path) == ["one\ntwo\n", "six\n"]


@pytest.mark.parametrize("how", ["moved", "removed"])
def test_o3_somebody_else_may_put_it_aside(tmp_path: Path, how: str) -> None:
    path = tmp_path / "log"
    file = RotatedFile(path, max_bytes=100, keep=1)
    file.write([b"one\n"])
    if how == "moved":
        path.rename(tmp_path / "log.old")
    else:
        path.unlink()
    file.write([b"two\n"])
    file.close()
    assert contents(path) == ["two\n"]


def test_o3_a_full_disk_tears_at_most_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    file = RotatedFile(path, max_bytes=100, keep=1)
    write = os.write

    def nearly_full(target: int, content: bytes) -> int:
        monkeypatch.setattr(os, "write", full)
        return write(target, content[:3])

    def full(target: int, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", nearly_full)
    with pytest.raises(OSError, match="No space left"):
        file.write([b"torn apart\n"])
    with pytest.raises(OSError, match="No space left"):
        file.write([b"lost\n"])
    monkeypatch.undo()
    file.write([b"whole\n"])
    file.write([b"again\n"])
    file.close()
    assert path.read_text() == "tor\nwhole\nagain\n"


def test_o3_where_names_cannot_change_it_goes_on_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    file = RotatedFile(path, max_bytes=8, keep=1)

    def refused(old: Path, new: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "rename", refused)
    for line in (b"one\n", b"two\n", b"six\n"):
        file.write([line])
    file.close()
    assert contents(path) == ["one\ntwo\nsix\n"]


def test_files_are_in_the_order_of_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "a[1].log"
    for name in ("a[1].log", "a[1].log.2", "a[1].log.10", "a[1].log.1", "a[1].log.gz", "a1.log.3"):
        (tmp_path / name).touch()
    assert [file.name for file in files_of(path)] == [
        "a[1].log.10",
        "a[1].log.2",
        "a[1].log.1",
        "a[1].log",
    ]
    path.unlink()
    assert len(files_of(path)) == 3
    assert files_of(tmp_path / "none") == []


def test_o3_what_is_no_file_is_never_put_aside(tmp_path: Path) -> None:
    """A device or a pipe keeps its name, however much was written to it."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        file = RotatedFile(path, max_bytes=8, keep=2)
        for line in (b"one\n", b"two\n", b"three\n"):
            file.write([line])
        file.close()
        assert os.read(reading, 100) == b"one\ntwo\nthree\n"
    finally:
        os.close(reading)
    assert [other.name for other in tmp_path.iterdir()] == ["pipe"]
