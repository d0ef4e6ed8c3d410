"""Keeps a user's `Headway` running: from its start to the signal that ends it."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from headway.config.secrets import without_password
from headway.facade import Headway
from headway.model.errors import NotRunning, Unavailable
from headway.model.text import whole
from headway.model.time import SECOND, Span, as_timedelta, span_text
from headway.wiring import MEMORY

PROGRESS_EVERY: Span = 5 * SECOND
TELLING_WITHIN: Span = 2 * SECOND
"""How long a worker that is in a hurry waits for a store that is away, once its turns have returned."""


class Front(Protocol):
    """What stands in front of a node and lets people ask it: it opens after the start and closes after the drain.

    While the node drains it stays open, so that callers are told to come later instead of finding nobody (L-5).
    """

    closing: Span
    """How much of the grace it needs for its own end."""

    async def open(self) -> None: ...

    async def ended(self) -> None:
        """Wait until it was closed. Raises if it broke."""

    async def close(self) -> None: ...

    async def reload(self) -> None:
        """Read the settings anew; whatever is wrong with them is told, not raised."""

    def introduction(self) -> str:
        """Where it listens and what it uses."""


class Service:
    """One node under signals: SIGTERM and SIGINT drain it, a second one cuts, SIGUSR1 restarts it in place.

    With something in front of it, SIGHUP reloads the settings. Without a grace of its own it has that of the
    settings, as they are when it is needed.
    """

    def __init__(
        self,
        headway: Headway,
        grace: Span | None = None,
        say: Callable[[str], None] | None = None,
        front: Front | None = None,
    ) -> None:
        self._headway = headway
        self._front = front
        self._said_grace = grace
        self._say = say or print_line
        self._stopping = asyncio.Event()
        self._hurried = asyncio.Event()
        self._restarting = asyncio.Event()
        self._reloading = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        """A drain inside a restart would be undone by the restart's end."""
        self._at_terminal = _has_terminal()
        self._broken: Exception | None = None

    async def serve(self) -> None:
        """Run until a signal ends it. Raises what broke the node, if something did."""
        headway = self._headway
        with self._signals():
            await headway.start()
            try:
                if self._front is not None:
                    await self._front.open()
                self._say(self._introduction())
                await self._live()
            finally:
                try:
                    if self._front is not None:
                        await self._front.close()
                finally:
                    told = await self._close()
        if self._broken is not None:
            raise self._broken
        self._say(f"stopped; {self._what_is_kept(told)}")

    def stop(self) -> None:
        """Drain and end. Asked for a second time, cut what still runs."""
        if self._stopping.is_set():
            self._hurried.set()
        self._stopping.set()

    def restart(self) -> None:
        """Drain and come back in place, unless it is stopping anyway."""
        if not self._stopping.is_set():
            self._restarting.set()

    def reload(self) -> None:
        """Read the settings anew."""
        if _hung_up(self._at_terminal):
            # Whoever had started it by hand has gone.
            self.stop()
        elif not self._stopping.is_set():
            self._reloading.set()

    async def _live(self) -> None:
        async with asyncio.TaskGroup() as group:
            restarting = group.create_task(self._restart_when_asked())
            tasks = [
                group.create_task(self._cut_when_hurried()),
                group.create_task(self._watch(self._headway.ended)),
            ]
            if self._front is not None:
                tasks += [
                    group.create_task(self._watch(self._front.ended)),
                    group.create_task(self._reload_when_asked(self._front)),
                ]
            await self._stopping.wait()
            # A restart that waits for the store gives way: closing goes on from where it is.
            restarting.cancel()
            async with self._one_at_a_time:
                if self._broken is None:
                    await self._drain()
            for task in tasks:
                task.cancel()

    async def _restart_when_asked(self) -> None:
        while True:
            await self._restarting.wait()
            self._restarting.clear()
            async with self._one_at_a_time:
                self._say(f"restarting in place: {self._waiting_for()}")
                try:
                    await self._headway.restart(as_timedelta(self._grace))
                except (Unavailable, NotRunning) as away:
                    # It cannot come back in place; whoever watches this process starts another.
                    self._broken = self._broken or away
                    self._stopping.set()
                    return
                self._say(self._introduction())

    async def _reload_when_asked(self, front: Front) -> None:
        while True:
            await self._reloading.wait()
            self._reloading.clear()
            await front.reload()

    async def _cut_when_hurried(self) -> None:
        await self._hurried.wait()
        running = self._running()
        if running:
            self._say(f"cutting {_turns(running)}")
        await self._wait_for_turns(0)

    async def _wait_for_turns(self, grace: Span) -> None:
        # If the node breaks meanwhile, the watch says so.
        with suppress(NotRunning):
            await self._headway.drain(as_timedelta(grace))

    async def _watch(self, ended: Callable[[], Awaitable[None]]) -> None:
        """A node that broke does nothing any more: end, so that whoever watches this process starts another."""
        try:
            await ended()
        except Exception as error:  # noqa: BLE001 - whatever broke the node ends this process with it
            self._broken = error
        else:
            self._broken = NotRunning()
        self._stopping.set()

    async def _drain(self) -> None:
        """Until nothing runs any more, the grace is over, or somebody is in a hurry."""
        self._say(f"stopping: {self._waiting_for()}")
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._wait_for_turns(self._grace)),
                group.create_task(self._hurried.wait()),
            ]
            progress = group.create_task(self._tell_progress(self._grace))
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in (*tasks, progress):
                task.cancel()

    async def _close(self) -> bool:
        """Cut what still runs and leave. False: the store is away, and could not be told."""
        headway = self._headway
        is_there = self._broken is not None or headway.store_away is None
        within = headway.settings.cancel_grace + TELLING_WITHIN
        try:
            async with asyncio.timeout(within / SECOND if self._hurried.is_set() else None):
                await headway.close(0)
        except TimeoutError:
            attempts = headway.engine.attempts
            attempts.leave_all_behind()
            attempts.stop()
            return False
        return is_there

    async def _tell_progress(self, grace: Span) -> None:
        left = grace
        while left > PROGRESS_EVERY:
            await asyncio.sleep(PROGRESS_EVERY / SECOND)
            left -= PROGRESS_EVERY
            if running := self._running():
                self._say(f"still waiting for {_turns(running)}, up to {span_text(left)}")

    @property
    def _grace(self) -> Span:
        """How long turns may take. What is in front needs some of the whole for its own end."""
        said = self._said_grace
        grace = self._headway.settings.drain_grace if said is None else said
        return grace if self._front is None else grace - min(self._front.closing, grace // 5)

    def _what_is_kept(self, told: bool) -> str:
        if self._headway.store == MEMORY:
            return "nothing is kept, as its store was memory"
        if told:
            return "what waits is kept in the store"
        return "the store cannot be told, so others take over when the lease is over"

    def _waiting_for(self) -> str:
        running = self._running()
        if not running:
            return "nothing runs"
        return f"waiting for {_turns(running)}, up to {span_text(self._grace)}"

    def _running(self) -> int:
        return sum(lane.running for lane in self._headway.lanes().values())

    def _introduction(self) -> str:
        if self._front is not None:
            return self._front.introduction()
        headway = self._headway
        agents = ", ".join(sorted(headway.agents))
        return f"node {headway.node} ({headway.name}) runs {agents} on {without_password(headway.store)}"

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """From here on signals are wishes. Where the loop cannot hear them, Ctrl-C still ends the program."""
        loop = asyncio.get_running_loop()
        before: dict[signal.Signals, signal._HANDLER] = {}
        wishes = {"SIGTERM": self.stop, "SIGINT": self.stop, "SIGUSR1": self.restart}
        if self._front is not None:
            wishes["SIGHUP"] = self.reload
        for name, wish in wishes.items():
            number = getattr(signal, name, None)
            if number is None:
                continue
            handler = signal.getsignal(number)
            try:
                loop.add_signal_handler(number, wish)
            except NotImplementedError:
                continue
            before[number] = handler
        try:
            yield
        finally:
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)


def _turns(count: int) -> str:
    return f"{count} running turn{'' if count == 1 else 's'}"


def print_line(line: str) -> None:
    """What a service says unless it is given another way."""
    # A terminal that was closed must not keep a node from ending well.
    with suppress(OSError):
        print(whole(line), flush=True)


def _has_terminal() -> bool:
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


def _hung_up(had_terminal: bool) -> bool:
    return had_terminal and not _has_terminal()
