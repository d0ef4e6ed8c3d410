"""One attempt in a pane: opened or found again, followed to its end, or cut short."""

import asyncio
import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from headway.calls import finished, in_thread
from headway.model.errors import HeadwayError, WorkerLost, WorkFailed
from headway.model.outcome import Reply
from headway.model.runner import PaneSpec
from headway.model.time import SECOND
from headway.runners import family
from headway.runners.exit import Exit
from headway.runners.family import Leader
from headway.runners.pane import Label, Pane
from headway.runners.pane_ending import ENDING, end_family, end_pane, leader_of
from headway.runners.panes import Panes, Silent, TmuxRefused
from headway.runners.process import NEVER_WORKS
from headway.runners.scroll import Scroll
from headway.runners.starting import check_system
from headway.runners.told import Told
from headway.runners.work import cannot_start, command_of, cut_short, result_of
from headway.turn import Turn

CLOSED = "its pane was closed"
PANE_CLOSED = "pane_closed"
TAKEN = "another node has taken it over"
UNWANTED = "it was ended, because it was not wanted any more"
_QUICK_S = 0.1
"""How soon is looked again at a pane in which something happens."""
_QUIET_S = 1.0
"""And at one in which nothing does."""
_LOOKS_EVERY_S = 0.02
_LOOKS_FOR_A_CODE = 150
"""So often is looked, after the end of a program, whether tmux says how it ended."""
_FIRST_PROCESS = str(Path(__file__).with_name("pane_start.py"))
_PIECE = 4 * 1024
"""The most characters that are streamed at once."""
_BYTES_OF_A_LINE = 16
_MOST_LINES = 100_000
_FORGOTTEN_FROM = 0.8
"""From here on tmux may have forgotten the oldest lines, which it does by the tenth part."""


class PaneWork:
    """The program of one attempt, in its pane."""

    def __init__(self, spec: PaneSpec, panes: Panes, label: Label, turn: Turn, home: Path) -> None:
        self._spec = spec
        self._panes = panes
        self._label = label
        self._turn = turn
        self._fence = turn.fence
        self._told = Told(home, label.name)
        self._scroll = Scroll()
        self._server = 0
        self._leader = Leader(0, 0)
        """The first process of its pane, and the parent of that; not known before the pane was seen."""
        self.ending = False
        """It was cut, so nobody may adopt it."""
        self._lines: list[str] = []
        self._forgets = False
        """tmux may have forgotten the beginning."""
        self._streamed = 0

    async def run(self, folder: str, environment: Mapping[str, str]) -> Reply:
        """Its reply. When this ends, nothing of the program goes on, unless it is another node's."""
        try:
            if self._turn.start.adopts:
                pane = await self._adopt()
            else:
                pane = await self._start(folder, environment)
            code = await self._watched(pane)
        except asyncio.CancelledError:
            await self._cut()
            if self._turn.cut is None:
                raise
            raise cut_short(None, *self._kept()) from None
        self._raise_if_never_started(code)
        text, dropped = self._kept()
        return result_of(code, text, dropped, resumable=bool(self._spec.resume))

    # Its beginning.

    async def _start(self, folder: str, environment: Mapping[str, str]) -> Pane:
        check_system()
        argv = command_of(self._spec.command, self._spec.resume, self._turn)
        await self._clear_away()
        marked = {**environment, **dict((self._label.mark,))}
        told = {"argv": argv, "environment": marked, "folder": folder}
        try:
            await finished(in_thread(self._told.write, json.dumps(told)))
            await self._panes.open(
                self._label,
                self._fence,
                (sys.executable, "-I", "-S", _FIRST_PROCESS, str(self._told.file)),
                (self._spec.width, self._spec.height),
                history_of(self._spec),
            )
        except HeadwayError:
            self._told.remove()
            raise
        finally:
            self._told.let_go()
        pane = await self._look()
        if pane is None:
            raise WorkerLost(CLOSED)
        return await self._identify(pane)

    async def _clear_away(self) -> None:
        """End what is left of this run: one that is started anew must be alone."""
        for pane in await self._panes.all():
            if self._is_of_the_run(pane):
                if pane.fence > self._fence:
                    raise WorkerLost(TAKEN)
                await end_pane(self._panes, pane, 0.0)

    def _is_of_the_run(self, pane: Pane) -> bool:
        ours, its = self._label, pane.label
        return (its.run_id, its.store) == (ours.run_id, ours.store)

    async def _adopt(self) -> Pane:
        """Go on with a pane that outlived its node (W-2)."""
        while (pane := await self._look()) is not None:
            if pane.fence > self._fence:
                raise WorkerLost(TAKEN)
            if pane.fence == self._fence:
                await self._panes.mark(pane, "adopted", "1")
                return await self._identify(pane)
            await self._panes.take_over(pane, self._fence)
        raise WorkerLost(CLOSED)

    async def _identify(self, pane: Pane) -> Pane:
        """Note when its process began, unless that is noted: with that its number is no other's (W-2)."""
        if pane.leader.born == 0 and self._leader.born:
            await self._panes.mark(pane, "born", repr(self._leader.born))
            pane = await self._look() or pane
        return pane

    # Its course.

    async def _watched(self, pane: Pane) -> int:
        try:
            code = await self._follow(pane)
        except TmuxRefused:
            # Nobody would look after it any more.
            await self._cut()
            raise
        await self._end_all(self._spec.grace / SECOND)
        return code

    async def _follow(self, pane: Pane) -> int:
        """Stream what it writes until it has ended; answers how."""
        pause = _QUICK_S
        stamp: tuple[str, ...] = ()
        with Exit(pane.leader) as end:
            while True:
                try:
                    pane = await self._present(fresh=end.came)
                    changed = pane.stamp != stamp
                    if changed:
                        await self._tell(pane)
                        stamp = pane.stamp
                except Silent:
                    # Nothing is known then; whether the worker is dead is decided by its beats (D-8).
                    await asyncio.sleep(_QUIET_S)
                    continue
                if pane.dead and pane.exit_code is not None:
                    return pane.exit_code
                if pane.dead or not family.lives(pane.leader):
                    return await self._code_of()
                pause = _QUICK_S if changed else min(1.5 * pause, _QUIET_S)
                await end.wait(pause)

    async def _present(self, *, fresh: bool = True) -> Pane:
        """The pane as it is now, if it is there and still ours."""
        seen = await self._look(fresh=fresh)
        if seen is None:
            await self._end_all(0.0)
            raise self._closed()
        if seen.fence > self._fence:
            raise WorkerLost(TAKEN)
        if seen.ending and not self.ending:
            await self._end_all(0.0)
            raise WorkerLost(UNWANTED)
        return seen

    def _closed(self) -> HeadwayError:
        """Whoever closes a pane means to end it, as one who kills a command does; else it is resumed."""
        if self._spec.resume:
            return WorkerLost(CLOSED)
        return WorkFailed(CLOSED, PANE_CLOSED, {"output": self._kept()[0]})

    async def _code_of(self) -> int:
        """How a program ended that is gone: tmux may wait for who still holds its terminal open."""
        await self._end_all(self._spec.grace / SECOND)
        for _ in range(_LOOKS_FOR_A_CODE):
            with suppress(Silent):
                pane = await self._present()
                if pane.dead and pane.exit_code is not None:
                    await self._tell(pane)
                    return pane.exit_code
                # tmux sometimes sleeps through the end of a child; this wakes it, and does nothing else.
                family.nudge(pane.server)
            await asyncio.sleep(_LOOKS_EVERY_S)
        raise WorkerLost("how it ended is not known", {"output": self._kept()[0]})

    async def _look(self, *, fresh: bool = True) -> Pane | None:
        panes = await (self._panes.all() if fresh else self._panes.lately())
        pane = next((pane for pane in panes if pane.label == self._label), None)
        if pane is not None and pane.fence <= self._fence:
            self._server, self._leader = pane.server, leader_of(pane)
        return pane

    async def _tell(self, pane: Pane) -> None:
        lines = await self._panes.text(pane)
        if lines is None:
            return
        self._lines = lines
        self._forgets = pane.history > _FORGOTTEN_FROM * pane.limit
        news = self._scroll.news(lines, ended=pane.column == 0, full=self._forgets, last=pane.dead)
        self._streamed += len(news.encode(errors="replace"))
        for start in range(0, len(news), _PIECE):
            self._turn.emit(news[start : start + _PIECE])

    def _kept(self) -> tuple[str, int]:
        """The end of what it wrote, and how many bytes of it are known to be missing."""
        text = "\n".join(self._lines)
        whole = text.encode(errors="replace")
        if len(whole) <= self._spec.output and not self._forgets:
            return text, 0
        text = whole[-self._spec.output :].decode(errors="ignore")
        return text, max(0, self._streamed - len(text.encode()))

    def _raise_if_never_started(self, code: int) -> None:
        if code == 0 or not self._told.failed.exists():
            return
        told = json.loads(self._told.failed.read_text())
        program = command_of(self._spec.command, self._spec.resume, self._turn)[0]
        wrong = cannot_start(program, told["reason"])
        if told["errno"] is None or told["errno"] in NEVER_WORKS:
            raise wrong
        raise WorkFailed(str(wrong), wrong.code)

    # Its end.

    async def _cut(self) -> None:
        """It is not wanted any more: ask, kill, and leave nothing.

        A further cancel means that there is no more time to ask; it must be gone all the same.
        """
        self.ending = True
        grace_s = self._spec.grace / SECOND
        while True:
            try:
                await self._put_away(grace_s)
            except asyncio.CancelledError:
                grace_s = 0.0
            else:
                return

    async def _put_away(self, grace_s: float) -> None:
        try:
            pane = await self._look()
        except Silent:
            await self._end_all(grace_s)
            return
        if pane is not None and pane.fence > self._fence:
            return  # Another node has it by now.
        if pane is not None:
            await self._panes.mark(pane, ENDING, "1")
        await self._end_all(grace_s)
        if pane is not None:
            await self._panes.close(pane)
        self._told.remove()

    async def _end_all(self, grace_s: float) -> None:
        """When this returns, none of its processes goes on."""
        spared = (self._server,) if self._server else ()
        await end_family(self._leader, self._label, spared, grace_s)


def history_of(spec: PaneSpec) -> int:
    """So many lines tmux keeps above the screen: enough for what is kept of them."""
    return min(max(spec.output // _BYTES_OF_A_LINE, spec.height), _MOST_LINES)
