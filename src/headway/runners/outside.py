"""Ending a worker from outside: its keeper is gone, frozen, or does not answer.

Nothing is signalled that is not surely of this worker: a number of a process counts only with its birth, and only
on the machine that it was written down on (W-2).
"""

import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil

from headway.runners import keeper
from headway.runners.family import Leader, born, family, send
from headway.runners.home import About, is_held, read_about, read_end

_EVERY_S = 0.02
_LOOKS = 250
"""So often is looked whether all is gone; what then still is hangs in the system itself."""


def end_worker(folder: Path, fence: tuple[int, int] | None = None) -> None:
    """Kill all that there is of a worker, its keeper last, and remove its folder. Blocks until it is so.

    With a fence, only one that nobody has taken over since (X-4): who asks may have been frozen meanwhile.
    """
    if not is_held(folder) and read_end(folder) is not None:
        # It ended by itself: what it has left behind on purpose is not ours.
        shutil.rmtree(folder, ignore_errors=True)
        return
    for _ in range(_LOOKS):
        # Looked up each time, in this order: it may be about to start, and tell who it is only now.
        held = is_held(folder)
        about = read_about(folder)
        if fence is not None and about is not None and about.fence > fence:
            return
        its_keeper = _keeper(folder, about) if held else None
        left = left_of(about, its_keeper)
        if left:
            send(left, signal.SIGKILL)
        elif its_keeper is not None:
            # Only now: while it is there, what its command leaves to nobody comes to it, and is found.
            send([its_keeper], signal.SIGKILL)
        elif not held:
            break
        time.sleep(_EVERY_S)
    shutil.rmtree(folder, ignore_errors=True)


def left_of(about: About | None, its_keeper: psutil.Process | None = None) -> list[psutil.Process]:
    """What goes on of a worker besides its keeper."""
    found: dict[int, psutil.Process] = {}
    spared = () if its_keeper is None else (its_keeper.pid,)
    if its_keeper is not None:
        with suppress(psutil.Error):
            found |= {kin.pid: kin for kin in its_keeper.children(recursive=True) if _lives(kin)}
    if about is not None and about.is_here:
        leader = Leader(about.leader, about.leader_born)
        found |= {kin.pid: kin for kin in family(leader, about.marks, spared)}
    return list(found.values())


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    except psutil.Error:
        return False


def _keeper(folder: Path, about: About | None) -> psutil.Process | None:
    """The keeper of a folder whose lock is held, if it is to be found."""
    try:
        if about is not None:
            if about.is_here and (not about.born or born(about.pid) == about.born):
                return psutil.Process(about.pid)
            return None
    except psutil.Error:
        return None
    # It had no time yet to write down who it is.
    wanted = {keeper.__file__, str(folder)}
    for process in psutil.process_iter():
        try:
            if wanted <= {*process.cmdline()}:
                return process
        except psutil.Error:
            continue
    return None
