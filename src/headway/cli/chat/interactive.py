"""A chat at a terminal: one may type at any time, also while the agent works."""

import asyncio
from collections.abc import Callable

from rich.console import Console
from rich.live import Live

from headway.cli.chat.editor import END, INTERRUPT, Editor
from headway.cli.chat.link import Link
from headway.cli.chat.screen import Screen
from headway.cli.chat.talk import Talk
from headway.cli.chat.words import HELP, HELP_WORD, LEAVE, unknown_command
from headway.cli.keys import keyboard

_TICK_S = 0.1
_PASTE_ON, _PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"


class Interactive:
    """Keys in, pictures out, until the person leaves."""

    def __init__(self, talk: Talk, console: Console) -> None:
        self._talk = talk
        self._console = console
        self._editor = Editor()
        self._screen = Screen(talk.agent, ascii_only=console.options.ascii_only)
        self._woken = asyncio.Event()
        self._over = False

    def wake(self) -> None:
        """There is something new to draw."""
        self._woken.set()

    async def run(self, link: Link) -> None:
        async with keyboard(signals=False) as typed, asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(link.run()),
                group.create_task(self._type(typed, link, group)),
            ]
            try:
                await self._draw()
            finally:
                for task in tasks:
                    task.cancel()

    async def _draw(self) -> None:
        tick = 0
        console = self._console
        console.file.write(_PASTE_ON)
        try:
            with Live(console=console, auto_refresh=False, transient=True) as live:
                while not self._over:
                    while self._talk.entries:
                        entry = self._talk.entries.popleft()
                        console.print(self._screen.entry(entry), soft_wrap=False)
                    width = console.width
                    live.update(
                        self._screen.below(self._talk, self._editor, tick, width=width),
                        refresh=True,
                    )
                    tick += await self._rest()
        finally:
            console.file.write(_PASTE_OFF)
            console.file.flush()

    async def _rest(self) -> int:
        """Until there is news; while the agent works only for a moment, so that something moves."""
        try:
            async with asyncio.timeout(_TICK_S if self._talk.busy else None):
                await self._woken.wait()
        except TimeoutError:
            return 1
        self._woken.clear()
        return 0

    async def _type(
        self, typed: "asyncio.Queue[str]", link: Link, group: asyncio.TaskGroup
    ) -> None:
        def command(text: str) -> None:
            group.create_task(link.command(text))

        while not self._over:
            for line in self._editor.feed(await typed.get()):
                self._entered(line, link.say, command)
            self.wake()

    def _entered(
        self, line: str, say: Callable[[str], None], command: Callable[[str], None]
    ) -> None:
        word = line.strip().lower()
        if line == END or word in LEAVE:
            self._over = True
        elif line == INTERRUPT:
            if (self._talk.busy or self._talk.sent) and not self._talk.trouble:
                command("/stop")
            else:
                self._over = True
        elif word == HELP_WORD:
            self._talk.note(HELP)
        elif word.startswith("/"):
            if unknown := unknown_command(line):
                self._talk.note(unknown)
            command(line.strip())
        elif word:
            say(line.strip("\n"))
