"""The attempts that run here: each a task of its own, known by its ticket.

This table takes the place of a task group, because an attempt that ignores its cancellation must be left behind
(S-3), not waited for. Whatever happens in an attempt, the kernel is told of its end exactly once.
"""

import asyncio
import inspect
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from contextvars import Context, copy_context
from typing import TypeAlias

from headway.calls import call
from headway.core.actions import Died, Done, Ended, Failed, NotBegun, Start
from headway.core.heartbeat import in_hours
from headway.core.kernel import Kernel
from headway.model.errors import InvalidInput, Permanent, TurnOver, WorkerLost
from headway.model.outcome import Reply
from headway.model.run import AgentName, Firing, Run, RunId, SessionKey
from headway.model.time import Instant
from headway.model.words import Cut, Reason
from headway.ports import Clock, Desk
from headway.runtime.herald import Herald
from headway.runtime.ids import new_jitter
from headway.runtime.replies import bounded, ending_of, reply_of
from headway.turn import KeepsWorkers, Runner, Turn, current_turn, with_note

_SURELY_SMALL = 1_000
"""A text of so few characters need not be measured."""

Hook: TypeAlias = Callable[[Turn], object]


class Attempts:
    """Starts, cancels and leaves behind attempts, and tells the kernel when they return."""

    def __init__(  # noqa: PLR0917 - all that an attempt touches, said once
        self,
        desk: Desk,
        kernel: Kernel,
        clock: Clock,
        wake: Callable[[], None],
        fail: Callable[[BaseException], None],
        herald: Herald,
    ) -> None:
        self._break = fail
        self._herald = herald
        self._desk = desk
        self._kernel = kernel
        self._clock = clock
        self.wake = wake
        self.runners: dict[AgentName, Runner] = {}
        self.function: Callable[[str], Callable[..., object]]
        """Finds the function that a job names."""
        self.before: list[Hook] = []
        self.around: Callable[[Turn], AbstractContextManager[object]] | None = None
        """Entered around each call of a runner, in the attempt's own context: for traces. It must not raise."""
        self.jitter = new_jitter()
        """Draws a number from 0 to 1 for the delay of a retry; tests put a seeded one here."""
        self.may_begin: Callable[[], bool] | None = None
        """Whether the node may act just now: asked right before a runner is called (D-3)."""
        self.began: Callable[[Start], None]
        """Told of each attempt that begins only now, though its start was stored before."""
        self._context = Context()
        """In which the latest start that was stored ahead was carried out."""
        self._turns: dict[int, Turn] = {}
        self._left_behind: dict[int, Turn] = {}
        self._lost: dict[int, WorkerLost] = {}
        """Attempts whose worker is dead: whatever their runner raises, that is how they ended."""
        self._interrupted: KeyboardInterrupt | None = None
        """Ctrl-C reached an agent: its run has its outcome first, then the program gets the interrupt."""

    def __len__(self) -> int:
        return len(self._turns)

    @property
    def begun(self) -> int:
        """How many have begun: not those that were started ahead and wait for their slot."""
        return sum(turn.work is not None for turn in self._turns.values())

    def get(self, ticket: int) -> Turn | None:
        return self._turns.get(ticket)

    def is_at(self, run_id: RunId) -> bool:
        """Whether an attempt of this run has not returned yet, be it that it counts no longer."""
        return any(turn.run.id == run_id for turn in self._turns.values())

    def parent_of(self, ticket: int) -> Run:
        """The run of a turn that may still start others (X-3)."""
        turn = self._turns.get(ticket)
        if turn is None or turn.over or turn.cut is not None:
            raise TurnOver("" if turn is None else turn.id)
        return turn.run

    def begin(self, start: Start, loop: asyncio.AbstractEventLoop) -> bool:
        """A start was stored: begin the attempt. False: it has no slot yet, or its session is not ours now."""
        ticket = start.ticket
        live = self._kernel.stage.attempts.get(ticket)
        if self.may_begin is not None and live is None:
            # While its start was being stored the session was lost, or the node began anew.
            return False
        run = start.run
        text = with_note(run) if run.overflow else run.text
        turn = self._turns[ticket] = Turn(self._desk, loop, start, run, text)
        if live is not None and live.next_up:
            self._context = copy_context()
            return False
        turn.work = loop.create_task(self._attempt(turn, ticket))
        return True

    def begin_called(self) -> None:
        """Begin those that have got their slot. One whose start is not stored yet begins as soon as it is."""
        called = self._kernel.stage.called
        for ticket in called:
            turn = self._turns.get(ticket)
            if turn is not None and turn.work is None:
                self._set_off(turn, ticket)
                self._context.copy().run(self.began, turn.start)
        called.clear()

    def _set_off(self, turn: Turn, ticket: int) -> None:
        """Not in the context of who calls this: that may be the turn whose slot it gets."""
        loop = asyncio.get_running_loop()
        turn.work = loop.create_task(self._attempt(turn, ticket), context=self._context.copy())

    def began_at(self, start: Start) -> Instant:
        """When the attempt got its slot: at its start, or later if it was started ahead."""
        live = self._kernel.stage.attempts.get(start.ticket)
        return start.at if live is None else live.started_at

    def cancel(self, ticket: int, cut: Cut) -> None:
        """Ask an attempt to end. One that has not taken its first step sees it then."""
        turn = self._turns.get(ticket)
        if turn is None or turn.cut is Cut.LOST:
            return
        turn.cut = cut
        if turn.work is None and not turn.over:
            # It was started ahead and waits for its slot, which it will not get.
            self._set_off(turn, ticket)
        elif turn.begun and turn.work is not None:
            turn.work.cancel(cut)
        turn.wake_threads()

    def cancel_lost(self, lost: Iterable[tuple[SessionKey, int]]) -> None:
        """Another node decides for these sessions (and under which epoch we did): their attempts here must end."""
        owned = frozenset(lost)
        for ticket, turn in tuple(self._turns.items()):
            if (turn.run.session, turn.start.epoch) in owned:
                self.cancel(ticket, Cut.LOST)

    def cancel_all(self) -> None:
        for ticket in tuple(self._turns):
            self.cancel(ticket, Cut.LOST)

    def lose(self, ticket: int, lost: WorkerLost) -> None:
        """The worker of an attempt is dead. Its runner may notice by itself; if not, it is interrupted."""
        if ticket in self._turns:
            self._lost[ticket] = lost

    def interrupt(self, ticket: int) -> "asyncio.Task[None] | None":
        """End an attempt that was lost, if it has not ended yet. Nobody has cut it: its run may go on."""
        turn = self._turns.get(ticket)
        if turn is None or ticket not in self._lost or not turn.begun or turn.work is None:
            return None
        turn.work.cancel()
        return turn.work

    def give_up(self, ticket: int) -> Run | None:
        """An attempt that was lost did not even return when interrupted: it is over all the same (S-3).

        Answers its run if it was left behind; what it returns later counts for nothing.
        """
        turn, lost = self._turns.get(ticket), self._lost.pop(ticket, None)
        if turn is None or lost is None:
            return None
        self.leave_behind(ticket)
        ended = self._raised(turn, ticket, lost)
        self._kernel.finished(ticket, ended, self._clock.now(), self.jitter())
        self.wake()
        return turn.run

    def leave_all_behind(self) -> None:
        """Nothing goes on here: ask all to end, and wait for none, not even for threads."""
        for ticket in tuple(self._turns):
            self.cancel(ticket, Cut.LOST)
            self.leave_behind(ticket)

    def leave_behind(self, ticket: int) -> None:
        turn = self._turns.pop(ticket, None)
        if turn is not None:
            turn.over = True
            self._left_behind[ticket] = turn

    def take_late(self, ticket: int) -> Turn | None:
        """An attempt that was left behind has returned after all."""
        return self._left_behind.pop(ticket, None)

    def stop(self) -> None:
        """The engine ends: ask once more those that were left behind."""
        for turn in self._left_behind.values():
            if turn.work is not None:
                turn.work.cancel()

    async def _attempt(self, turn: Turn, ticket: int) -> None:
        """One attempt, from its hooks to its return."""
        turn.begun = True
        current_turn.set(turn)
        ended: Ended
        try:
            if turn.cut is not None or (self.before and not await self._gate(turn)):
                ended = await self._not_called(turn)
            elif self.may_begin is not None and not self.may_begin():
                turn.cut = Cut.LOST
                ended = await self._not_called(turn)
            elif turn.run.firing is not None and not await self._has_words(turn, turn.run.firing):
                ended = Done(Reply())
            else:
                runner = self.runners[turn.run.agent]
                if self.around is None:
                    result = await runner.run(turn)
                else:
                    with self.around(turn):
                        result = await runner.run(turn)
                if type(result) is str and len(result) <= _SURELY_SMALL and result.isascii():
                    ended = Done(Reply(result))
                else:
                    ended = Done(self._bounded(reply_of(result)))
        except BaseException as error:  # noqa: BLE001 - whatever an agent raises is its run's outcome
            ended = self._raised(turn, ticket, error)
        turn.over = True
        turn.work = None
        jitter = 0.5 if type(ended) is Done else self.jitter()
        try:
            self._kernel.finished(ticket, ended, self._clock.now(), jitter)
        except Exception as error:  # noqa: BLE001 - the kernel is wrong: nobody shall wait for ever
            self._break(error)
        self._turns.pop(ticket, None)
        if self._kernel.stage.called:
            self.begin_called()
        if self._lost:
            self._lost.pop(ticket, None)
        self.wake()
        if self._interrupted is not None:
            interrupted, self._interrupted = self._interrupted, None
            raise interrupted

    def _raised(self, turn: Turn, ticket: int, error: BaseException) -> Ended:
        most = self._kernel.stage.settings.result_size
        ended = ending_of(self._lost.get(ticket, error), most)
        if isinstance(ended, Died) and ticket in self._kernel.stage.attempts:
            self._herald.worker_died(turn.run, turn.attempt, ended.error)
        if isinstance(ended, Failed) and ended.reason is Reason.ERROR and turn.cut is None:
            self._herald.failed(turn, error)
        if isinstance(error, KeyboardInterrupt):
            self._interrupted = error
        return ended

    def _bounded(self, reply: Reply) -> Reply:
        return bounded(reply, self._kernel.stage.settings.result_size)

    async def _not_called(self, turn: Turn) -> Ended:
        """Its runner is not called: nothing was done. But a worker that was to go on is there (W-2).

        It is ended, unless others may have it by now; then its attempt is lost, and they decide about it.
        """
        if not turn.start.adopts:
            return NotBegun() if turn.cut is Cut.LOST else Failed("cancelled before it began")
        runner = self.runners[turn.run.agent]
        if turn.cut is not Cut.LOST and isinstance(runner, KeepsWorkers):
            await runner.end(turn.run.id, turn.attempt)
        return Failed("cancelled before it went on")

    async def _has_words(self, turn: Turn, firing: Firing) -> bool:
        """Whether there is something to say: a job may ask a function for its text, a heartbeat has its hours."""
        if turn.start.adopts:
            return True
        runs_commands = getattr(self.runners[turn.agent], "runs_commands", False)
        if firing.command is not None and not runs_commands:
            raise Permanent(f"agent {turn.agent!r} runs no commands; give the job one that does")
        if firing.hours is not None and not in_hours(firing.hours, self._clock.wall()):
            return False
        if not firing.function:
            return True
        text = await call(self.function(firing.function))
        if text is not None and not isinstance(text, str):
            raise InvalidInput("text", text, "a string or None, returned by the job's function")
        turn.text = text or ""
        return bool(text)

    async def _gate(self, turn: Turn) -> bool:
        """Call the hooks, then look once more whether the attempt is still wanted (S-11).

        Not for one that goes on: they were called when it began.
        """
        if turn.start.adopts:
            return True
        for hook in self.before:
            result = hook(turn)
            if inspect.isawaitable(result):
                await result
        return self._kernel.began(turn.start.ticket, self._clock.now())
