"""From what a command shall be to the keeper that has started it."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from headway.model.errors import Permanent
from headway.model.time import SECOND, Instant, Span
from headway.model.value import Value
from headway.runners import keeper
from headway.runners.home import COMPLAINT, no_home
from headway.runners.work import cannot_start

if TYPE_CHECKING:
    from headway.runners.keeper import Task


class Command(Value, frozen=True):
    """What a keeper shall start, and how it shall end it."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str = ""
    stdin: str = ""
    grace: Span = 5 * SECOND
    output: int = 64 * 1024
    """So many bytes of what it writes last are kept."""
    outlives: bool = True
    """Whether it goes on when whoever looks after it is gone."""
    host: str = ""
    fence: tuple[int, int] = (0, 0)
    marks: tuple[str, ...] = ()
    """The variables that tell its processes from all others."""
    started_at: Instant = 0


class Started(NamedTuple):
    """A keeper that is a child of this process."""

    popen: "subprocess.Popen[bytes]"
    line: socket.socket
    """Our end of what it speaks on."""


def check_system() -> None:
    if not hasattr(os, "killpg") or not hasattr(socket, "AF_UNIX"):
        raise Permanent("commands need process groups, which this system does not have")
    if not sys.executable:
        raise Permanent(
            "commands need a Python to be started with, and this program does not say which"
        )


def task_of(command: Command) -> bytes:
    """What the keeper is told. Raises what is wrong with the command itself."""
    program = command.argv[0] if command.argv else ""
    if not program:
        raise cannot_start(program, "the command is empty")
    try:
        pairs = [(_bare(name), _bare(value)) for name, value in command.environment.items()]
        if any(not name or "=" in name for name, _ in pairs):
            raise ValueError("illegal environment variable name")
        task: Task = {
            "argv": [_bare(text) for text in command.argv],
            "environment": pairs,
            "folder": _bare(str(Path(command.folder).absolute())),
            "stdin": command.stdin.encode(errors="replace").decode("latin-1"),
            "grace_s": command.grace / SECOND,
            "output": command.output,
            "outlives": command.outlives,
            "host": command.host,
            "fence": list(command.fence),
            "marks": [(name, command.environment[name]) for name in command.marks],
            "started_at": command.started_at,
        }
    except OSError as wrong:
        raise cannot_start(program, f"there is no folder to run it in: {wrong.strerror}") from wrong
    except ValueError as wrong:
        raise cannot_start(program, str(wrong)) from wrong
    return json.dumps(task).encode()


def start(task: bytes, folder: Path, lock: int) -> Started:
    """Start a keeper in its folder. It has the lock from then on, and we have it no more; blocks a little."""
    try:
        with ExitStack() as ours_only:
            ours_only.callback(os.close, lock)
            ours, its = socket.socketpair()
            ours_only.callback(its.close)
            try:
                said = _nameless(folder, task)
                ours_only.callback(os.close, said)
                complaint = ours_only.enter_context((folder / COMPLAINT).open("wb"))
                popen = _started(folder, (lock, its.fileno(), said), complaint)
            except BaseException:
                ours.close()
                raise
    except OSError as wrong:
        shutil.rmtree(folder, ignore_errors=True)
        raise no_home(folder, wrong) from wrong
    return Started(popen, ours)


def _started(
    folder: Path, inherited: tuple[int, ...], complaint: BinaryIO
) -> "subprocess.Popen[bytes]":
    argv = [sys.executable, "-I", "-S", keeper.__file__, str(folder), *map(str, inherited)]
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=complaint,
        cwd="/",
        start_new_session=True,
        pass_fds=inherited,
    )


def _nameless(folder: Path, data: bytes) -> int:
    """An open file that nobody else can open: secrets are in it."""
    path = folder / "task"
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        path.unlink()
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]
        os.lseek(file, 0, os.SEEK_SET)
    except BaseException:
        os.close(file)
        raise
    return file


def _bare(text: str) -> str:
    """The bytes that the system knows a text by, one character for each."""
    if "\0" in text:
        raise ValueError("embedded null byte")
    return os.fsencode(text).decode("latin-1")
