"""A Headway for tests without a line of async code: each call runs until its answer is there.

Time is virtual and passes only inside calls: `send` takes as long as the agent sleeps, `advance`
lets a span pass, `run_until_idle` lets all that was begun come to its end.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from datetime import datetime
from random import Random
from types import TracebackType
from typing import Self, TypeVar, Unpack

from headway.core.actions import Stopped
from headway.core.request import Duration, SubmitOptions
from headway.facade import Headway, QueueChoices
from headway.model.errors import InvalidInput
from headway.model.events import Event
from headway.model.outcome import Outcome
from headway.model.run import Route
from headway.model.time import SECOND, as_datetime, instant_of, span
from headway.model.views import LaneView, RunView, SessionView, Why
from headway.model.words import State
from headway.ports import RunPage
from headway.runtime.handle import Handle
from headway.testing.clock import ORIGIN, VirtualLoop

Result = TypeVar("Result")

_LAST_GRACE_S = 60.0


class Inline:
    """Drives a `Headway` from plain code, in virtual time. Use it as a context manager."""

    def __init__(self, hw: Headway, *, starts_at: datetime | None = None) -> None:
        origin = ORIGIN if starts_at is None else instant_of(starts_at, "starts_at")
        self.hw = hw
        self.events: list[Event] = []
        """Everything that has happened since the start, in order."""
        self._loop = VirtualLoop(origin)
        self._heard = asyncio.Event()

    def __enter__(self) -> Self:
        self._run(self._start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._run(self.hw.close(0 if error is not None else None))
        finally:
            self._close()

    @property
    def now(self) -> datetime:
        """The virtual time."""
        return as_datetime(self._loop.virtual_origin + round(self._loop.time() * SECOND))

    # Working.

    def send(self, agent: str, text: str = "", **options: Unpack[SubmitOptions]) -> str:
        """Ask an agent and get its reply. Raises if there is none: `RunFailed`, `QueueFull`, …"""
        return self._run(self.hw.send(agent, text, **options))

    def submit(self, agent: str, text: str = "", **options: Unpack[SubmitOptions]) -> Handle:
        """Ask an agent and go on. The run may start, but no time passes; `outcome` waits for it."""
        return self._run(self.hw.submit(agent, text, **options))

    def outcome(self, run: Handle) -> Outcome:
        """How the run ends, however long that takes; of a merged run, how the merged one ends."""
        return self._run(run.wait())

    def state(self, run: Handle) -> State:
        """Where the run is now."""
        return self._run(run.state())

    def cancel(self, run: str | Handle) -> Stopped:
        """Cancel one run and all that it started."""
        return self._run(self.hw.cancel(run))

    def stop(self, session: str) -> Stopped:
        """`/stop`: cancel the session's oldest running turn."""
        return self._run(self.hw.stop(session))

    def stop_all(
        self,
        session: str,
        *,
        sent_at: datetime | None = None,
        message_id: str | None = None,
        route: Route | None = None,
    ) -> Stopped:
        """`/stopall`: end all of the session; messages sent before this arrive too late."""
        return self._run(
            self.hw.stop_all(session, sent_at=sent_at, message_id=message_id, route=route)
        )

    def command(self, session: str, text: str) -> str | None:
        """Carry out a chat command and answer its reply; None if the text is no command."""
        return self._run(self.hw.command(session, text))

    def set_queue(self, session: str, **options: Unpack[QueueChoices]) -> None:
        """Give one session its own queue options."""
        self._run(self.hw.set_queue(session, **options))

    # Looking. What needs no waiting can also be asked of `hw` itself.

    def why(self, run: str | Handle) -> Why:
        """Why a run waits: the rule that holds it, its place in line, and an estimate."""
        return self._run(self.hw.why(run))

    def run(self, run: str | Handle) -> RunView:
        """One run as it is now."""
        return self._run(self.hw.run(run))

    def runs(self, *, agent: str | None = None, session: str | None = None) -> RunPage:
        """Runs, newest first."""
        return self._run(self.hw.runs(agent=agent, session=session))

    def lanes(self) -> Mapping[str, LaneView]:
        """Every lane: how wide, how full, how many wait."""
        return self.hw.lanes()

    def sessions(self) -> Mapping[str, SessionView]:
        """Every session that has work."""
        return self.hw.sessions()

    # Time.

    def advance(self, by: Duration) -> None:
        """Let a span of time pass: `30s`, `1h30m`, a timedelta. All that is due by then happens."""
        self._run(asyncio.sleep(span(by, "by") / SECOND))

    def run_until_idle(self) -> None:
        """Let time pass until no run is left. Raises `TimeStandsStill` if some can never end."""
        self._run(self._until_idle())

    async def _start(self) -> None:
        await self.hw.start()
        engine = self.hw.engine
        engine.bus.tap(self._hear)
        engine.attempts.jitter = Random(0).random

    def _hear(self, event: Event) -> None:
        self.events.append(event)
        self._heard.set()

    async def _until_idle(self) -> None:
        while self.hw.engine.kernel.stage.runs:
            self._heard.clear()
            await self._heard.wait()

    def _run(self, work: Coroutine[object, object, Result]) -> Result:
        """Run this to its end, then all that can happen before time passes."""
        if self._loop.is_closed() or _in_async_code():
            work.close()
            raise InvalidInput("Inline", "this call", "made in plain code, inside its `with` block")
        task = self._loop.create_task(work)
        try:
            result = self._loop.run_until_complete(task)
            self._loop.run_until_complete(self._loop.quiet())
        except BaseException:  # also an interrupt: the task must not go on by itself
            self._give_up(task)
            raise
        return result

    def _give_up(self, task: "asyncio.Task[Result]") -> None:
        """A call that cannot end must not go on in the next one."""
        if not task.done():
            task.cancel()
            self._loop.run_until_complete(asyncio.wait((task,)))

    def _close(self) -> None:
        """End what is left in the loop; a task that will not end is left behind after a while."""
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks, timeout=_LAST_GRACE_S))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


def _in_async_code() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
