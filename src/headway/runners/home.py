"""Where workers live on this machine: a folder for each attempt, whose lock is taken while its keeper lives."""

import atexit
import errno
import hashlib
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, unquote

import msgspec

from headway.model.errors import WorkFailed
from headway.model.run import RunId
from headway.model.time import Instant
from headway.model.value import Value
from headway.runners.keeper import ABOUT, END, machine

Told = TypeVar("Told", bound=Value)

LOCK = "lock"
COMPLAINT = "complaint"
NO_HOME = "worker_home"
"""The code of a failure that is the fault of the folder."""
_LONGEST_NAME = 200
_LONGEST_COMPLAINT = 2_000
_CANNOT_LOOK = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""What is wrong with us, not with the folder; it passes."""
_UNFINISHED = "+"
"""Before the name of a folder that is being made; no other begins so."""

if sys.platform == "win32":

    def lock(file: int, *, shared: bool) -> None:  # noqa: ARG001 - as on other systems
        raise OSError(0, "there are no workers on this system")
else:
    import fcntl

    def lock(file: int, *, shared: bool) -> None:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


class About(Value, frozen=True):
    """Who a worker is, as its keeper has written it down."""

    pid: int
    """Its keeper."""
    born: float
    leader: int
    """The first process of the command, and its group and session; 0: not started yet."""
    leader_born: float
    machine: str
    host: str
    fence: tuple[int, int]
    """Of who looks after it."""
    marks: tuple[tuple[str, str], ...]
    """Variables that all of its processes have."""
    started_at: Instant
    adopted: bool

    @property
    def is_here(self) -> bool:
        """Whether the numbers of its processes mean anything to this one."""
        return self.machine == machine()


class End(Value, frozen=True):
    """How a command ended, or why it never began."""

    exit: int | None = None
    """Negative: the signal that ended it."""
    output: bytes = b""
    """The last part of what it wrote."""
    dropped: int = 0
    """How many bytes before that were not kept."""
    asked: bool = False
    """Whether it ended because Headway wanted it to."""
    stage: str = ""
    """At what it failed to start, if it did."""
    errno: int = 0
    broken: str = ""
    """What was wrong with its keeper, if that is why nobody knows."""

    @property
    def says_something(self) -> bool:
        return self.exit is not None or bool(self.stage or self.broken)


class Attempt(Value, frozen=True):
    """The folder of a worker."""

    run_id: RunId
    number: int
    folder: Path


class WorkerHome:
    """The folders of all workers of one store on this machine, by agent.

    It belongs on a local disk: elsewhere a lock promises less.
    """

    def __init__(self, root: Path) -> None:
        self._root: Path | None = root.absolute()
        self._makes = threading.Lock()

    @classmethod
    def temporary(cls) -> "WorkerHome":
        """A folder that is made when it is needed, and removed when this program ends."""
        home = cls(Path())
        home._root = None
        return home

    def folder(self, agent: str, run_id: RunId, attempt: int) -> Path:
        return self._of_agent(agent) / f"{quote(run_id, safe='')}.{attempt}"

    def attempts(self, agent: str) -> list[Attempt]:
        """All of an agent's workers, dead ones too."""
        if self._root is None:
            return []
        try:
            entries = sorted(self._of_agent(agent).iterdir())
        except OSError:
            return []
        return [found for entry in entries if (found := _attempt(entry)) is not None]

    def make(self, agent: str, run_id: RunId, attempt: int) -> tuple[Path, int]:
        """A new folder and its lock, which is ours before anybody can see the folder.

        Raises `WorkFailed` if there can be none, which may pass.
        """
        folder = self.folder(agent, run_id, attempt)
        try:
            return folder, self._make(folder)
        except OSError as wrong:
            raise no_home(folder, wrong) from wrong

    def _make(self, folder: Path) -> int:
        of_agent = folder.parent
        make_private(of_agent)
        draft = of_agent / f"{_UNFINISHED}{folder.name}.{os.getpid()}"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(0o700)
        try:
            taken = os.open(draft / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                lock(taken, shared=False)
                draft.rename(folder)
            except BaseException:
                os.close(taken)
                raise
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        return taken

    def _of_agent(self, agent: str) -> Path:
        with self._makes:
            if self._root is None:
                self._root = Path(tempfile.mkdtemp(prefix="headway-"))
                atexit.register(shutil.rmtree, self._root, ignore_errors=True)
            return self._root / folder_name(agent)


def make_private(of_agent: Path) -> None:
    """The folder of an agent and that of its store, for our own user alone. Raises `OSError`."""
    of_agent.parent.parent.mkdir(parents=True, exist_ok=True)
    for folder in (of_agent.parent, of_agent):
        folder.mkdir(0o700, exist_ok=True)
        if folder.stat().st_uid != os.geteuid():
            raise PermissionError(0, "it belongs to somebody else")


def is_held(folder: Path) -> bool:
    """Whether the worker's keeper lives."""
    return is_locked(folder / LOCK)


def is_locked(path: Path) -> bool:
    """Whether somebody has this file locked. Looking takes nothing from anybody: all who look share the lock."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as wrong:
        # Who cannot look now must not take it for dead: another one would be started beside it.
        return wrong.errno in _CANNOT_LOOK
    try:
        lock(file, shared=True)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def read_about(folder: Path) -> About | None:
    return _read(folder / ABOUT, About)


def read_end(folder: Path) -> End | None:
    end = _read(folder / END, End)
    return end if end is not None and end.says_something else None


def read_complaint(folder: Path) -> str:
    """The last that a keeper said that could not go on, such as that its Python lacks something."""
    try:
        said = (folder / COMPLAINT).read_bytes()[-_LONGEST_COMPLAINT:]
    except OSError:
        return ""
    lines = said.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def remove(folder: Path) -> None:
    """Nothing of it is needed any more. One whose keeper lives is left alone, unless its end is written down."""
    if not is_held(folder) or (folder / END).exists():
        shutil.rmtree(folder, ignore_errors=True)


def no_home(folder: Path, wrong: OSError) -> WorkFailed:
    reason = wrong.strerror or str(wrong)
    return WorkFailed(
        f"no worker can be started in {str(folder)!r}: {reason}", NO_HOME, {"reason": reason}
    )


def _read(path: Path, kind: type[Told]) -> Told | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None


def _attempt(entry: Path) -> Attempt | None:
    if entry.name.startswith(_UNFINISHED):
        _sweep(entry)
        return None
    run_id, _, number = entry.name.rpartition(".")
    return Attempt(RunId(unquote(run_id)), int(number), entry) if number.isdecimal() else None


def _sweep(draft: Path) -> None:
    """A folder that was never finished, because who made it was killed just then."""
    pid = draft.name.rpartition(".")[2]
    if pid.isdecimal() and not Path(f"/proc/{pid}").exists() and Path("/proc/self").exists():
        shutil.rmtree(draft, ignore_errors=True)


def folder_name(agent: str) -> str:
    """The agent's name as that of a folder; a long one is cut and made unique."""
    name = quote(agent, safe="")
    if name.strip(".") and len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:100]}~{hashlib.sha256(agent.encode()).hexdigest()[:16]}"
