"""A program on SQLite that works and submits until it is killed.

    python -m tests.e2e.sqlite_program FILE FOLDER work | finish

`work` recovers what is there and goes on submitting; each acknowledged run is written down. `finish` submits
nothing new: it asks for everything that was ever acknowledged, by the same keys, and writes down how each ended.
"""

import asyncio
import random
import sys
from collections import Counter
from pathlib import Path

import headway
from headway import Handle
from headway.model.settings import MAIN
from tests.e2e.agents import hw
from tests.e2e.checker import Asked
from tests.e2e.ledger import ask
from tests.e2e.notes import ASKED, TOLD, AskedRow, Notebook, ToldRow, ending_of, rows
from tests.e2e.processes import say

SESSIONS = 8
MANY_ATTEMPTS = 1000
CAREFUL_EVERY = 10


class Program:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before = rows(folder / ASKED, AskedRow)
        self._random = random.Random(len(self._before))
        self._saw_ahead = False

    async def work(self) -> None:
        last = Counter[str]()
        for row in self._before:
            last[row.asked.session] = max(last[row.asked.session], row.asked.number)
        notebook = Notebook(self._folder / ASKED)
        say("opening")
        async with hw, asyncio.TaskGroup() as group:
            say("ready")
            for index in range(SESSIONS):
                session = f"chat:{index}"
                group.create_task(self._converse(session, last[session], notebook))

    async def finish(self) -> None:
        notebook = Notebook(self._folder / TOLD)
        async with hw:
            for row in self._before:
                handle = await self._submit(row.asked)
                if handle.id != row.run:
                    raise SystemExit(f"{row} is known as {handle.id} now")
                notebook.write(ToldRow(row.run, ending_of(await handle.wait())))
        say("finished")

    async def _converse(self, session: str, number: int, notebook: Notebook) -> None:
        while True:
            number += 1
            careful = number % CAREFUL_EVERY == 0
            asked = Asked(session, number, 1 if careful else MANY_ATTEMPTS)
            handle = await self._submit(asked)
            notebook.write(AskedRow(handle.id, asked))
            self._look_ahead()
            await asyncio.sleep(self._random.uniform(0, 0.02))

    def _look_ahead(self) -> None:
        """Say it once, if a start was stored before there is a slot for it."""
        if not self._saw_ahead and hw.engine.kernel.stage.floor.lanes[MAIN].next_up:
            self._saw_ahead = True
            say("started ahead")

    async def _submit(self, asked: Asked) -> Handle:
        return await hw.submit(
            "walker",
            ask(asked.number, asked.number % 13),
            session=asked.session,
            idempotency_key=f"{asked.session} {asked.number}",
            max_attempts=asked.max_attempts,
            cap=100_000,
        )


def main() -> None:
    file, folder, what = sys.argv[1:]
    hw.use_store(f"sqlite:///{file}")
    program = Program(Path(folder))
    headway.run(program.work() if what == "work" else program.finish())


if __name__ == "__main__":
    main()
