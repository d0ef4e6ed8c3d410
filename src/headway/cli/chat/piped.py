"""A chat through a pipe: each line of the standard input is a message, each reply is printed."""

import asyncio
import sys

from headway.calls import in_thread
from headway.cli.chat.link import Link
from headway.cli.chat.talk import Talk, Who
from headway.cli.chat.words import HELP, HELP_WORD, LEAVE, unknown_command
from headway.cli.printing import print_all


class Piped:
    """Lines in, replies out, until all lines have their reply."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._woken = asyncio.Event()

    def wake(self) -> None:
        self._woken.set()

    async def run(self, link: Link) -> None:
        async with asyncio.TaskGroup() as group:
            linked = group.create_task(link.run())
            reading = group.create_task(self._read(link))
            try:
                while not (reading.done() and not self._talk.sent):
                    await self._woken.wait()
                    self._woken.clear()
                    self._print()
            finally:
                linked.cancel()
                reading.cancel()

    async def _read(self, link: Link) -> None:
        while line := await in_thread(sys.stdin.readline):
            word = line.strip().lower()
            if word in LEAVE:
                break
            if word == HELP_WORD:
                self._talk.note(HELP)
            elif word:
                if unknown := unknown_command(line):
                    self._talk.note(unknown)
                link.say(line.rstrip("\n"))
        self.wake()

    def _print(self) -> None:
        while self._talk.entries:
            entry = self._talk.entries.popleft()
            if entry.who is Who.AGENT:
                print_all(entry.text)
            elif entry.who is Who.NOTE:
                print(f"headway: {entry.text}", file=sys.stderr)
