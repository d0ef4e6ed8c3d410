"""Panes of one tmux server: a thin layer over libtmux, whose calls block and so have threads of their own.

The server is Headway's own, by the name of its socket, and reads no config: a person's panes and settings are left
alone. What a pane is for is written on it, as options of the pane: so it is found again by whoever comes after a
crash, with nothing that could have been lost in between; and it is not found by a Headway with another store.
"""

import asyncio
import os
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from headway.calls import finished, in_thread
from headway.model.errors import HeadwayError, Refused, Unavailable, WorkFailed
from headway.runners.pane import FORMAT, Label, Pane, escaped, read_pane
from headway.turn import Fence

if TYPE_CHECKING:
    from libtmux import Server

Result = TypeVar("Result")

MISSING = (
    "tmux is not installed here: install it, such as with `apt install tmux` or `brew install tmux`"
)
_ANSWERS_WITHIN_S = 10.0
"""A server of tmux that takes longer is stuck."""
_HOLDS_UP_S = 2.0
"""So long at most does everything wait for an answer of the server, where it has to."""
_FRESH_S = 0.08
"""So old may be what several runs are told of their panes by one question."""
_KEPT_VARIABLES = frozenset(
    {"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TMUX_TMPDIR", "USER"}
)
"""What the server of tmux gets. It lives on, so it must not keep what is meant for one run."""
_NO_SERVER = ("no server running", "error connecting", "server exited", "lost server")
_NO_PANE = ("can't find", "no current", "no sessions")


class Silent(Unavailable):
    """The server of tmux is there, and does not answer."""

    code = "tmux_silent"

    def __init__(self, socket: str) -> None:
        super().__init__(f"the tmux server {socket!r} does not answer")


class TmuxRefused(WorkFailed):
    """The server of tmux did not do what it was asked."""

    def __init__(self, said: str) -> None:
        super().__init__(f"tmux: {said}", "tmux_refused")


class Panes:
    """The panes of one server. Which may not be there: then there are none."""

    def __init__(self, socket: str) -> None:
        self.socket = socket
        self._server = _open(socket)
        self._asked: asyncio.Future[tuple[Pane, ...]] | None = None
        self._asked_at = 0.0
        self._asks: threading.Thread | None = None
        self._told: tuple[Pane, ...] | None = None
        """What was found in this step of the loop, by those who cannot await."""

    async def all(self) -> tuple[Pane, ...]:
        """All panes of all Headways on this server."""
        self._asked_at = asyncio.get_running_loop().time()
        self._asked = in_thread(self.list_now)
        return await _answer(self._asked, self.socket)

    async def lately(self) -> tuple[Pane, ...]:
        """The same, for those who look again and again: they are told together, by one question."""
        now = asyncio.get_running_loop().time()
        if self._asked is None or (self._asked.done() and now - self._asked_at > _FRESH_S):
            return await self.all()
        return await _answer(self._asked, self.socket)

    def list_now(self) -> tuple[Pane, ...]:
        """The same, for threads."""
        lines = self._ask("list-panes", "-a", "-F", FORMAT)
        return tuple(pane for pane in map(read_pane, lines or ()) if pane is not None)

    def list_soon(self) -> tuple[Pane, ...]:
        """The same, for those who cannot await; none if the server does not answer so soon.

        The whole loop waits meanwhile. So it is asked once in a step of the loop, however many want to know, and
        not again while it has not answered.
        """
        if not _socket_exists(self.socket) or (self._asks is not None and self._asks.is_alive()):
            return ()
        if self._told is not None:
            return self._told
        found: list[Pane] = []

        def look() -> None:
            with suppress(HeadwayError):
                found.extend(self.list_now())

        self._asks = threading.Thread(target=look, daemon=True)
        self._asks.start()
        self._asks.join(_HOLDS_UP_S)
        told = tuple(found)
        with suppress(RuntimeError):  # There is no loop that waits.
            asyncio.get_running_loop().call_soon(self._forget_told)
            self._told = told
        return told

    def _forget_told(self) -> None:
        self._told = None

    async def open(
        self,
        label: Label,
        fence: Fence,
        argv: Sequence[str],
        size: tuple[int, int],
        history: int,
    ) -> None:
        """A new pane in a session of its own, with its label on it: all of it or nothing.

        The command has more than one argument, so tmux starts it without a shell.
        """
        width, height = size
        options = {
            "@headway_run": escaped(label.run_id),
            "@headway_attempt": str(label.attempt),
            "@headway_agent": escaped(label.agent),
            "@headway_store": label.store,
            "@headway_fence": str(fence),
        }
        asked = [
            *("set-option", "-g", "remain-on-exit", "on", ";"),
            *("set-option", "-gq", "remain-on-exit-format", "", ";"),
            *("set-option", "-g", "history-limit", str(history), ";"),
            *("new-session", "-d", "-s", label.name, "-x", str(width), "-y", str(height), *argv),
        ]
        for name, value in options.items():
            asked += [";", "set-option", "-p", "-t", f"={label.name}:", name, value]
        await finished(in_thread(self._start, asked))

    def _start(self, asked: Sequence[str]) -> None:
        code, said = self._try(asked)
        if any(words in said for words in _NO_SERVER):
            # A server ends with its last pane: this one was about to.
            code, said = self._try(asked)
        if code or said:
            raise TmuxRefused(said or f"exit code {code}")

    def _try(self, asked: Sequence[str]) -> tuple[int, str]:
        """Not by libtmux: it would give a new server all of our environment."""
        command = [_program(), "-u", "-f/dev/null", f"-L{self.socket}", *asked]
        try:
            done = subprocess.run(
                command,
                env=_bare(os.environ),
                cwd="/",
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_ANSWERS_WITHIN_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Silent(self.socket) from None
        return done.returncode, done.stderr.decode(errors="replace").strip()

    async def text(self, pane: Pane, *, screen_only: bool = False) -> list[str] | None:
        """Its lines, those that are too long for it in one piece; None if it is not there any more."""
        lines = await self._do(
            "capture-pane", "-p", "-J", "-S", "0" if screen_only else "-", "-t", pane.id
        )
        if lines is None:
            return None
        lines = [line.rstrip() for line in lines]
        if pane.dead and lines and lines[-1].startswith("Pane is dead"):
            lines.pop()  # Before 3.3 tmux cannot be kept from saying so.
        while lines and not lines[-1]:
            lines.pop()
        return lines

    async def mark(self, pane: Pane, name: str, value: str) -> None:
        await self._do("set-option", "-p", "-t", pane.id, f"@headway_{name}", value)

    async def take_over(self, pane: Pane, fence: Fence) -> None:
        """Write another fence on it, unless somebody did so meanwhile: the server compares and sets at once."""
        unchanged = f"#{{==:#{{@headway_fence}},{pane.fence}}}"
        change = f"set-option -p -t {pane.id} @headway_fence {fence}"
        await self._do("if-shell", "-F", "-t", pane.id, unchanged, change)

    async def close(self, pane: Pane) -> None:
        await finished(in_thread(self.close_now, pane))

    def close_now(self, pane: Pane) -> None:
        """End the session that it is in."""
        self._ask("kill-session", "-t", pane.id)

    async def _do(self, *asked: str) -> list[str] | None:
        return await _answer(in_thread(self._ask, *asked), self.socket)

    def _ask(self, *asked: str) -> list[str] | None:
        """Blocks. None: there is no such server or pane."""
        from libtmux.exc import TmuxCommandNotFound  # noqa: PLC0415 - an optional part

        try:
            done = self._server.cmd("-u", *asked)
        except TmuxCommandNotFound:
            raise _missing() from None
        said = "\n".join(done.stderr)
        if any(words in said for words in (*_NO_SERVER, *_NO_PANE)):
            return None
        if done.returncode or said:
            raise TmuxRefused(said or f"exit code {done.returncode}")
        return done.stdout


async def _answer(work: "asyncio.Future[Result]", socket: str) -> Result:
    """Others may wait for the same answer: it goes on even if this task is cancelled."""
    done, _ = await asyncio.wait((work,), timeout=_ANSWERS_WITHIN_S)
    if not done:
        raise Silent(socket)
    return work.result()


def _open(socket: str) -> "Server":
    try:
        from libtmux import Server  # noqa: PLC0415 - an optional part
    except ImportError:
        raise Refused("libtmux is not installed: pip install 'headway[tmux]'") from None
    return Server(socket_name=socket, config_file="/dev/null")


def _program() -> str:
    program = shutil.which("tmux")
    if program is None:
        raise _missing()
    return program


def _missing() -> WorkFailed:
    return WorkFailed(MISSING, "tmux_missing", permanent=True)


def _bare(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name in _KEPT_VARIABLES or name.startswith("LC_")
    }


def _socket_exists(socket: str) -> bool:
    folder = os.environ.get("TMUX_TMPDIR") or "/tmp"
    return os.path.exists(f"{folder}/tmux-{os.getuid()}/{socket}")  # noqa: PTH110 - called on the loop, often
