"""Commands: programs that run for a while, say something, and end with a code (W-1, W-2, X-7)."""

import asyncio
import errno
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from headway.calls import finished, in_thread
from headway.core.template import fill
from headway.model.errors import Permanent, WorkerLost, WorkFailed
from headway.model.outcome import Reply
from headway.model.run import RunId
from headway.model.runner import CommandSpec
from headway.model.time import SECOND
from headway.model.words import Cut
from headway.runners.attached import Attached, TakenOver, discard
from headway.runners.home import (
    NO_HOME,
    End,
    WorkerHome,
    is_held,
    read_about,
    read_end,
    remove,
)
from headway.runners.live import LiveOutput, tail
from headway.runners.process import NEVER_WORKS, Process
from headway.runners.seeing import Eyes
from headway.runners.starting import Command, Started, check_system, start, task_of
from headway.runners.values import values_of
from headway.runners.work import (
    PATIENCE,
    Environment,
    about,
    cannot_start,
    command_of,
    cut_short,
    folder_of,
    result_of,
)
from headway.turn import Sight, Turn

_GATE_GRACE_S = 1.0
_MARGIN_S = 2.0
"""So long is waited for a keeper to have done what it was told; then it is done from outside."""
_GOES_S = 0.5
"""So long is waited for a keeper to be gone that has said all. One that still has to write it down stays."""
_MARKS = ("HEADWAY_RUN_ID", "HEADWAY_FENCE")
"""All that descends from a command has these in its environment, and nothing else has the same."""


class CommandRunner:
    """Runs a program for each attempt, or the commands that jobs name, without a shell.

    Each command has a keeper, which outlives this process if that is killed; whoever comes next attaches to it and
    gets the rest of the output and the exit code (W-2). The run is over when nothing of the command's session goes
    on. A cancel asks all that descends from the command to end and, after the grace, kills it. Code 0 is success,
    with the end of the output as the reply; any other is an error that may be tried again, but a command that
    cannot be started never is.
    """

    def __init__(
        self,
        spec: CommandSpec,
        home: WorkerHome,
        agent: str = "command",
        *,
        host: str = "",
        outlives: bool = True,
    ) -> None:
        self._spec = spec
        self._home = home
        self._agent = agent
        self._host = host
        self._environment = Environment(spec.environment)
        self._eyes = Eyes(home, agent)
        self._unwanted: set[tuple[RunId, int]] = set()
        """Those that are being ended here."""
        self.runs_commands = not spec.command
        self.outlives = outlives
        self.patience = spec.grace + PATIENCE
        """So long an attempt may take to return after a cut: longer than the command may (S-3)."""

    async def run(self, turn: Turn) -> Reply:
        check_system()
        live = LiveOutput(turn.emit)
        try:
            end = await self._run(turn, live)
        finally:
            live.close()
        return self._result(turn, end)

    # Workers, also those that another process has started.

    def has(self, run_id: RunId, attempt: int) -> bool:
        if (run_id, attempt) in self._unwanted:
            return False
        folder = self._home.folder(self._agent, run_id, attempt)
        return is_held(folder) or read_end(folder) is not None

    async def look(self) -> Sequence[Sight]:
        return await self._eyes.look()

    async def end(self, run_id: RunId, attempt: int) -> None:
        folder = self._home.folder(self._agent, run_id, attempt)
        if not await in_thread(folder.exists):
            return
        self._unwanted.add((run_id, attempt))
        try:
            if await in_thread(is_held, folder):
                await discard(folder)
            await finished(in_thread(_end_from_outside, folder))
        finally:
            self._unwanted.discard((run_id, attempt))

    def forget(self, run_id: RunId, attempt: int) -> None:
        remove(self._home.folder(self._agent, run_id, attempt))

    # One attempt.

    async def _run(self, turn: Turn, live: LiveOutput) -> End:
        worker = await self._begin(turn, live)
        if isinstance(worker, End):
            return worker
        try:
            end = await worker.end(live.take, live.skip)
        except asyncio.CancelledError:
            heard = await self._cut(turn, worker, live)
            if heard is None or turn.cut is None:
                raise
            raise cut_short(heard.exit, tail(heard.output, heard.dropped), heard.dropped) from None
        except TakenOver:
            worker.let_live()
            raise
        except WorkerLost:
            worker.let_live()
            await finished(in_thread(_end_from_outside, worker.folder, _fence(turn)))
            raise
        await worker.leave(_GOES_S)
        return end

    async def _begin(self, turn: Turn, live: LiveOutput) -> Attached | End:
        adopts = turn.start.adopts
        loop = asyncio.get_running_loop()
        beginning = loop.create_task(self._adopt(turn) if adopts else self._start(turn))
        try:
            return await asyncio.shield(beginning)
        except asyncio.CancelledError:
            if beginning.cancelled():
                raise
            # What is being started cannot be called back; what was found and does not answer can be left.
            if adopts:
                beginning.cancel()
            with suppress(BaseException):
                await finished(beginning)
            await self._cut_early(turn, beginning, live)
            raise

    async def _cut_early(
        self, turn: Turn, beginning: "asyncio.Task[Attached | End]", live: LiveOutput
    ) -> None:
        begun = not beginning.cancelled() and beginning.exception() is None
        if begun and isinstance(worker := beginning.result(), Attached):
            await self._cut(turn, worker, live)
        elif beginning.cancelled() and turn.cut is not Cut.LOST:
            folder = self._home.folder(self._agent, turn.id, turn.attempt)
            await finished(in_thread(_end_from_outside, folder, _fence(turn)))

    async def _start(self, turn: Turn) -> Attached | End:
        command = self._command(turn)
        task = task_of(command)
        await self._end_earlier(turn)
        folder, started = await in_thread(self._spawn, turn, task)
        try:
            return await Attached.to_started(folder, command.fence, started)
        except BaseException:
            started.line.close()
            await finished(in_thread(_end_from_outside, folder, command.fence))
            await finished(in_thread(started.popen.wait))
            raise

    def _spawn(self, turn: Turn, task: bytes) -> tuple[Path, Started]:
        folder, lock = self._home.make(self._agent, turn.id, turn.attempt)
        return folder, start(task, folder, lock)

    async def _adopt(self, turn: Turn) -> Attached | End:
        folder = self._home.folder(self._agent, turn.id, turn.attempt)
        return await Attached.to_found(folder, _fence(turn))

    async def _end_earlier(self, turn: Turn) -> None:
        """What is left of earlier tries of the same run must be gone before this one starts (S-3)."""
        for found in await in_thread(self._home.attempts, self._agent):
            if found.run_id == turn.id and found.number <= turn.attempt:
                worker = await in_thread(read_about, found.folder)
                if worker is not None and worker.fence > _fence(turn):
                    raise TakenOver
                await self.end(found.run_id, found.number)

    async def _cut(self, turn: Turn, worker: Attached, live: LiveOutput) -> End | None:
        """End it: when this returns, nothing of it goes on, unless it is another node's by now.

        Answers how it ended, if it was heard. A further cancel meanwhile means that there is no more time to ask.
        """
        key = (turn.id, turn.attempt)
        self._unwanted.add(key)
        try:
            return await self._cut_unwanted(worker, live, _fence(turn))
        except TakenOver:
            worker.let_live()
            return None
        finally:
            self._unwanted.discard(key)

    async def _cut_unwanted(
        self, worker: Attached, live: LiveOutput, fence: tuple[int, int]
    ) -> End | None:
        patience_s = self._spec.grace / SECOND + _MARGIN_S
        worker.ask()
        ended: bool | None = None
        how: End | None = None
        while ended is None:
            try:
                async with asyncio.timeout(patience_s):
                    how = await worker.end(live.take, live.skip)
                    ended = await worker.leave()
            except asyncio.CancelledError:
                worker.kill()
                patience_s = _MARGIN_S
            except TakenOver:
                raise
            except (TimeoutError, WorkerLost):
                worker.let_live()
                ended = False
        if ended:
            await finished(in_thread(remove, worker.folder))
        else:
            await finished(in_thread(_end_from_outside, worker.folder, fence))
        return how

    def _command(self, turn: Turn) -> Command:
        firing = turn.run.firing
        said = None if firing is None else firing.command
        if said is not None and self._spec.command:
            raise Permanent(
                f"agent {turn.agent!r} runs no commands of jobs; give the job one that does"
            )
        if said is not None:
            environment = {**self._environment.of(turn), **dict(said.environment), **about(turn)}
            return self._made(turn, said.argv, environment, said.folder, said.stdin)
        if not self._spec.command:
            raise Permanent(f"{turn.agent!r} runs the commands of jobs, and this run has none")
        argv = command_of(self._spec.command, self._spec.resume, turn)
        return self._made(
            turn,
            argv,
            self._environment.of(turn),
            folder_of(self._spec.folder, argv[0], turn),
            fill(self._spec.stdin, values_of(turn)),
        )

    def _made(
        self,
        turn: Turn,
        argv: tuple[str, ...],
        environment: Mapping[str, str],
        folder: str,
        stdin: str,
    ) -> Command:
        return Command(
            argv=argv,
            environment=environment,
            folder=folder,
            stdin=stdin,
            grace=self._spec.grace,
            output=self._spec.output,
            outlives=self.outlives,
            host=self._host,
            fence=_fence(turn),
            marks=_MARKS,
            started_at=turn.start.at,
        )

    def _result(self, turn: Turn, end: End) -> Reply:
        if end.broken:
            raise WorkerLost(f"its keeper is broken: {end.broken}")
        if end.stage:
            raise self._not_started(turn, end)
        if end.asked:
            raise WorkerLost("it was asked to end by who looked after it before")
        if end.exit is None:
            raise WorkerLost("nobody knows how it ended")
        text = tail(end.output, end.dropped)
        return result_of(end.exit, text, end.dropped, resumable=bool(self._spec.resume))

    def _not_started(self, turn: Turn, end: End) -> WorkFailed:
        command = self._command(turn)
        program, reason = command.argv[0], os.strerror(end.errno)
        if end.stage in {"program", "folder"} and end.errno in NEVER_WORKS:
            if end.stage == "folder":
                is_missing = end.errno in {errno.ENOENT, errno.ENOTDIR}
                reason = "" if is_missing else f" ({reason})"
                reason = f"there is no folder {command.folder!r} to run it in{reason}"
            return cannot_start(program, reason)
        return WorkFailed(
            f"{program!r} could not be started: {reason}", NO_HOME, {"reason": reason}
        )


async def run_gate(argv: Sequence[str], timeout_s: float) -> bool:
    """Whether a command says yes, which is code 0 (X-7).

    Raises `Permanent` if it cannot be run, and `TimeoutError` if it takes too long.
    """
    process = Process(argv)
    try:
        async with asyncio.timeout(timeout_s):
            return await process.exit_code() == 0
    finally:
        await process.end(_GATE_GRACE_S)


def _end_from_outside(folder: Path, fence: tuple[int, int] | None = None) -> None:
    # It loads slowly, and is seldom needed.
    from headway.runners.outside import end_worker  # noqa: PLC0415

    end_worker(folder, fence)


def _fence(turn: Turn) -> tuple[int, int]:
    return turn.fence.epoch, turn.fence.ticket
