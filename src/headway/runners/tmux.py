"""Programs in panes of tmux: a person can look at them, and type (W-1).

The server of tmux is a process of its own. So a pane outlives this process, and with it all that must be known of
a worker: what it writes, how it ended, whose it is (W-2).
"""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import platformdirs

from headway.calls import in_thread
from headway.model.errors import HeadwayError
from headway.model.outcome import Reply
from headway.model.run import AgentName, RunId
from headway.model.runner import PaneSpec
from headway.model.words import WorkerKind
from headway.model.worker import MAX_LINE, MAX_LINES
from headway.runners import family
from headway.runners.family import Leader
from headway.runners.home import folder_name
from headway.runners.pane import Label, Pane
from headway.runners.pane_ending import end_pane
from headway.runners.pane_work import PaneWork
from headway.runners.panes import Panes, Silent
from headway.runners.told import Told, remove_unread, unread
from headway.runners.work import PATIENCE, Environment, folder_of
from headway.turn import Fence, Sight, Turn

_OF_PROCESS = "@"
"""Stands between the name of a store and the process that it is in."""


class PaneRunner:
    """Runs a program for each attempt, in a pane that is named after the run.

    Code 0 is success, with the end of the pane's text as the reply. A cancel is a SIGTERM to all that goes on in
    the pane and, after the grace, a SIGKILL. A person who closes the pane ends the worker, not the run.
    """

    def __init__(
        self,
        spec: PaneSpec,
        agent: str,
        store: str = "",
        home: Path | None = None,
        *,
        outlives: bool = True,
    ) -> None:
        """`store` tells the panes of several Headways apart, `home` is where a program is told what to run.

        Where a store lives in this process, nothing `outlives` it: whoever comes next has another one.
        """
        self._spec = spec
        self._agent = AgentName(agent)
        self._store = store if outlives else f"{store}{_OF_PROCESS}{_this_process()}"
        state = (home or _state()).absolute()
        self._home = state / "panes" / (self._store or "-") / folder_name(agent)
        self.outlives = outlives
        self.patience = spec.grace + PATIENCE
        """So long an attempt may take to return after a cut: longer than the program may (S-3)."""
        self._panes = Panes(spec.socket)
        self._environment = Environment(spec.environment)
        self._works: dict[Label, PaneWork] = {}
        self._fences: dict[Label, Fence] = {}
        """Under which fence each pane was opened or adopted here, until it is forgotten."""
        self._seen: dict[Label, tuple[Sight, float]] = {}
        """What was last seen of each, and how much it had computed by then."""

    async def run(self, turn: Turn) -> Reply:
        label = self._label(turn.id, turn.attempt)
        folder = _absolute(folder_of(self._spec.folder, self._spec.command[0], turn))
        environment = self._environment.of(turn)
        work = PaneWork(self._spec, self._panes, label, turn, self._home)
        self._works[label], self._fences[label] = work, turn.fence
        try:
            return await work.run(folder, environment)
        except asyncio.CancelledError:
            if self._works.get(label) is work:
                self._fences.pop(label, None)  # Nothing is left that could be forgotten.
            raise
        finally:
            if self._works.get(label) is work:
                del self._works[label]

    def has(self, run_id: RunId, attempt: int) -> bool:
        label = self._label(run_id, attempt)
        work = self._works.get(label)
        if work is not None and work.ending:
            return False
        panes = self._panes.list_soon()
        return any(pane.label == label and not pane.ending for pane in panes)

    async def look(self) -> Sequence[Sight]:
        files = await in_thread(unread, self._home)
        try:
            panes = await self._panes.all()
        except Silent:
            return [_silent(sight) for sight, _ in self._seen.values()]
        if files:
            await in_thread(remove_unread, self._home, files, {pane.label.name for pane in panes})
        for pane in panes:
            if _is_nobodys(pane):
                await end_pane(self._panes, pane, 0.0)
        seen = {pane.label: await self._sight(pane) for pane in panes if self._is_ours(pane)}
        self._seen = seen
        return [sight for sight, _ in seen.values()]

    async def end(self, run_id: RunId, attempt: int) -> None:
        label = self._label(run_id, attempt)
        for pane in await self._panes.all():
            if pane.label == label:
                await end_pane(self._panes, pane, 0.0)
        self._forget(label)

    def forget(self, run_id: RunId, attempt: int) -> None:
        label = self._label(run_id, attempt)
        fence = self._fences.get(label)
        self._forget(label)
        in_thread(self._close_dead, label, fence)

    def _close_dead(self, label: Label, fence: Fence | None) -> None:
        """Close its pane, unless that is already a later one of the same attempt."""
        with suppress(HeadwayError):  # Then it stays, and is ended when nobody wants it.
            for pane in self._panes.list_now():
                if pane.label == label and pane.dead and fence in {None, pane.fence}:
                    self._panes.close_now(pane)

    def _forget(self, label: Label) -> None:
        self._fences.pop(label, None)
        self._seen.pop(label, None)
        Told(self._home, label.name).remove()

    def _label(self, run_id: RunId, attempt: int) -> Label:
        return Label(run_id, attempt, self._agent, self._store)

    def _is_ours(self, pane: Pane) -> bool:
        return (pane.label.agent, pane.label.store) == (self._agent, self._store)

    async def _sight(self, pane: Pane) -> tuple[Sight, float]:
        lines = await self._panes.text(pane, screen_only=True) or []
        shown = tuple(line[:MAX_LINE] for line in lines if line)[-MAX_LINES:]
        activity = await in_thread(family.activity, pane.leader)
        before = self._seen.get(pane.label)
        busy = None
        if before is not None:
            busy = shown != before[0].lines or activity.computed != before[1]
        return Sight(
            pane.label.run_id,
            pane.label.attempt,
            WorkerKind.TMUX,
            pane.leader.pid,
            pane.leader.born,
            pane.created_at,
            answers=pane.dead or activity.goes_on,
            over=pane.dead,
            busy=busy and not pane.dead,
            lines=shown,
            pane=f"{self._spec.socket}:{pane.session}",
            adopted=pane.adopted,
            exit_code=pane.exit_code,
        ), activity.computed


def _absolute(folder: str) -> str:
    """Seen from where this process was started: a pane begins elsewhere."""
    try:
        return str(Path(folder).absolute())
    except OSError:
        return folder  # There is no such place any more: whoever is to enter it says so.


def _this_process() -> str:
    pid = os.getpid()
    return f"{pid},{family.born(pid)}"


def _is_nobodys(pane: Pane) -> bool:
    """Whether its store was in a process that is gone, so that nobody can ever know of it."""
    _, mark, process = pane.label.store.partition(_OF_PROCESS)
    pid, _, began = process.partition(",")
    if not mark or family.born(pane.server) is None:
        return False
    return not family.lives(Leader(int(pid), float(began)))


def _silent(sight: Sight) -> Sight:
    return msgspec.structs.replace(sight, answers=False, busy=False)


def _state() -> Path:
    return Path(os.environ.get("HEADWAY_STATE") or platformdirs.user_state_path("headway"))
