"""All processes that belong to a worker, though none of them is a child of ours.

A worker's first process leads a session of the system. What it starts is in that session, or descends from
something that is, or at least still has the run in its environment: a daemon that left both is found by that.
"""

import os
import signal
import sys
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from headway.model.value import Value

_OVER = frozenset({psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD})
_PROC = Path("/proc")
_HAS_PROC = sys.platform == "linux"


class Leader(Value, frozen=True):
    """The first process of a worker: a number alone may be another's later."""

    pid: int
    born: float
    """When it began; 0: not known, so only what has the run in its environment belongs to it."""


class Activity(Value, frozen=True):
    """What a process is at."""

    goes_on: bool
    """It is there, and not all of it is stopped."""
    computed: float = 0.0
    """How many seconds it has computed, all that it started and that is there included."""


def born(pid: int) -> float | None:
    """When a process began, in seconds that no step of the wall clock changes; None if there is none such."""
    if _HAS_PROC:
        try:
            stat = (_PROC / str(pid) / "stat").read_bytes()
        except OSError:
            return None
        # The name, in parentheses, may hold anything: the state is the first field after it, the start the 20th.
        fields = stat[stat.rindex(b")") + 2 :].split()
        return None if fields[0] in b"ZX" else int(fields[19]) / os.sysconf("SC_CLK_TCK")
    try:
        process = psutil.Process(pid)
        return None if process.status() in _OVER else process.create_time()
    except psutil.Error:
        return None


def lives(leader: Leader) -> bool:
    """Whether the very process is there, and not one that got its number later (W-2)."""
    return leader.born != 0 and born(leader.pid) == leader.born


def child(pid: int, parent: int) -> Leader:
    """A process that was seen just now as a child of that one; its birth is not known if it is there no more."""
    began = born(pid)
    with suppress(psutil.Error):
        if began is not None and psutil.Process(pid).ppid() == parent:
            return Leader(pid, began)
    return Leader(pid, 0)


def activity(leader: Leader) -> Activity:
    """What a worker is at: its first process, and what that started."""
    if not lives(leader):
        return Activity(goes_on=False)
    try:
        first = psutil.Process(leader.pid)
        others = first.children(recursive=True)
    except psutil.Error:
        return Activity(goes_on=False)
    computed, goes_on = 0.0, not others
    for process in (first, *others):
        try:
            computed += sum(process.cpu_times())
            goes_on = goes_on or (process != first and process.status() != psutil.STATUS_STOPPED)
        except psutil.Error:
            continue  # It has ended just now.
    return Activity(goes_on, computed)


def family(
    leader: Leader, marks: Iterable[tuple[str, str]], spared: Iterable[int] = ()
) -> list[psutil.Process]:
    """All processes of a worker that go on. `marks` are variables that all of its processes have."""
    marked = frozenset(marks)
    spare = {os.getpid(), *spared}
    # While anything of a session goes on, no new process gets its number: if one has it, nothing is left.
    at = born(leader.pid)
    is_ours = leader.born != 0 and at in {None, leader.born}
    children: dict[int, list[psutil.Process]] = defaultdict(list)
    found: list[psutil.Process] = []
    for process in psutil.process_iter(["ppid", "status"]):
        if process.info["status"] in _OVER or process.pid in spare:
            continue
        children[process.info["ppid"]].append(process)
        if (is_ours and _session(process.pid) == leader.pid) or _has(process, marked):
            found.append(process)
    known = {process.pid for process in found}
    for process in found:  # Grows meanwhile: children of children.
        for child in children[process.pid]:
            if child.pid not in known:
                known.add(child.pid)
                found.append(child)
    return found


def send(processes: Iterable[psutil.Process], number: int) -> None:
    """Signal them all; psutil looks that each is still the same."""
    for process in processes:
        try:
            process.send_signal(number)
        except psutil.Error:
            continue  # It has ended just now, or has become another user's.


def nudge(parent: int) -> None:
    """Have a process look which of its children have ended."""
    with suppress(OSError):
        os.kill(parent, signal.SIGCHLD)


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -1


def _has(process: psutil.Process, marks: frozenset[tuple[str, str]]) -> bool:
    if not marks:
        return False
    try:
        environment = process.environ()
    except (psutil.Error, OSError):
        return False  # Another user's, or it has ended just now.
    return all(environment.get(name) == value for name, value in marks)
