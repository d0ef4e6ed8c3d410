"""A process that is started for a look, and all that it starts in turn: one group, ended as a whole."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from headway.calls import in_thread
from headway.model.errors import HeadwayError, Permanent

NEVER_WORKS = frozenset(
    {
        errno.E2BIG,
        errno.EACCES,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOEXEC,
        errno.ENOTDIR,
        errno.EPERM,
    }
)
"""What is wrong with the command itself; a lack of memory or of processes passes."""
_LOOKS_EVERY_S = 0.02
_PROC = Path("/proc")


class ExitUnknown(HeadwayError):
    """The process has ended, but something else in this program collected how."""

    code = "exit_unknown"

    def __init__(self, program: str) -> None:
        self.program = program
        super().__init__(
            f"how {program!r} ended is not known: something else in this program waits for its children"
        )


class Process:
    """A program in a process group of its own, without a shell; what it writes is not heard.

    Belongs to the loop that it is made on.

    A group can be signalled as long as one of its processes is there, also when the first has ended. While the
    first is not reaped, which only this object does, the number of the group is surely its own.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        """Raises `Permanent` with the reason if this can never be started."""
        self._program = argv[0] if argv else ""
        self._popen = _start(argv)
        self._gone = False
        """Nothing of the group is there any more, so its number may be another's."""
        try:
            self._ended = in_thread(_wait_for_end, self._popen)
        except BaseException:
            # No thread could be had: then nobody would ever know of its end.
            with self._popen:
                self._signal(signal.SIGKILL)
            raise

    async def exit_code(self) -> int:
        """Wait until the first process has ended, and answer how; negative: by which signal."""
        await asyncio.wait((self._ended,))
        code = self._ended.result()
        if code is None:
            raise ExitUnknown(self._program)
        return code

    async def end(self, grace_s: float) -> None:
        """When this returns, nothing of the group goes on: what still does is asked to end, then killed.

        A cancel meanwhile means that there is no more time to ask.
        """
        try:
            if not await self._is_over():
                await self._ask_and_kill(grace_s)
        except asyncio.CancelledError:
            self._signal(signal.SIGKILL)
            await self._over()
            raise
        finally:
            if self._popen.returncode is None:
                # Cancelled even so: it is killed, and somebody must reap it.
                in_thread(self._popen.wait)

    async def _ask_and_kill(self, grace_s: float) -> None:
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace_s):
                await self._over()
        except TimeoutError:
            self._signal(signal.SIGKILL)
            await self._over()

    async def _over(self) -> None:
        await asyncio.wait((self._ended,))
        while not await self._is_over():  # noqa: ASYNC110 - the system tells nobody of a grandchild's end
            await asyncio.sleep(_LOOKS_EVERY_S)

    async def _is_over(self) -> bool:
        if not self._gone and self._ended.done():
            self._popen.poll()
            # The first process is reaped, so whatever is still in the group are others.
            group = self._popen.pid
            self._gone = not (_exists(group) and await in_thread(_lives, group))
        return self._gone

    def _signal(self, number: int) -> None:
        if self._gone:
            return
        try:
            os.killpg(self._popen.pid, number)
        except (ProcessLookupError, PermissionError):
            return  # Nobody is there, or only who has become another user.


def _start(argv: Sequence[str]) -> "subprocess.Popen[bytes]":
    if not hasattr(os, "killpg"):
        raise Permanent("commands need process groups, which this system does not have")
    if not argv or not argv[0]:
        raise Permanent("the command is empty")
    try:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except ValueError as wrong:
        raise Permanent(f"{argv[0]!r} cannot be run: {wrong}") from wrong
    except OSError as wrong:
        if wrong.errno not in NEVER_WORKS:
            raise
        raise Permanent(f"{argv[0]!r} cannot be run: {wrong.strerror}") from wrong


def _wait_for_end(popen: "subprocess.Popen[bytes]") -> int | None:
    """Blocks until the process has ended; answers how, if that is known.

    Leaves it to be reaped, where the system can wait without reaping.
    """
    if not hasattr(os, "waitid"):
        return popen.wait()
    try:
        end = os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:
        return None
    assert end is not None, "only a wait that does not block has no answer"
    return end.si_status if end.si_code == os.CLD_EXITED else -end.si_status


def _exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _lives(group: int) -> bool:
    """Whether a process of the group is more than a zombie that its new parent forgot to reap."""
    if sys.platform != "linux":
        return _exists(group)
    for entry in _PROC.iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_bytes()
            except OSError:
                continue  # It has ended just now.
            # The name, in parentheses, may hold anything: the state and two numbers later the group come after.
            state, _, its_group = stat[stat.rindex(b")") + 2 :].split(maxsplit=3)[:3]
            if int(its_group) == group and state not in b"ZX":
                return True
    return False
