"""The process that asks for work during the chaos, and writes down what it was promised and told.

It is a node like the others, but has no runner for the agents. Each session's runs are asked for one after the
other; a submission that failed is repeated under its key until it is acknowledged.

    python -m tests.e2e.chaos.submitter STORE FOLDER SEED SESSIONS RUNS SECONDS
"""

import asyncio
import random
import sys
from pathlib import Path

import headway
from headway import Handle, Headway, Unavailable
from tests.e2e.checker import Asked
from tests.e2e.ledger import ask
from tests.e2e.notes import ASKED, TOLD, AskedRow, Notebook, ToldRow, ending_of
from tests.e2e.processes import say

AGAIN_S = 0.05
LONG_EVERY = 8
CAREFUL_EVERY = 10
MANY_ATTEMPTS = 100


class Submitter:
    def __init__(self, store: str, folder: Path, seed: int, seconds: float) -> None:
        self._headway = Headway(store, name="submitter")
        self._headway.remote_agent("walker")
        self._headway.remote_agent("digger")
        self._random = random.Random(seed)
        self._seconds = seconds
        self._asked = Notebook(folder / ASKED)
        self._told = Notebook(folder / TOLD)
        self.repeated = 0

    async def work(self, sessions: int, runs: int) -> None:
        async with self._headway, asyncio.TaskGroup() as group:
            say("submitting")
            for index in range(sessions):
                count = runs // sessions + (index < runs % sessions)
                group.create_task(self._converse(group, index, count))
        say(f"told everything; {self.repeated} submissions were repeated")

    async def _converse(self, group: asyncio.TaskGroup, index: int, count: int) -> None:
        agent = "digger" if index % 10 == 9 else "walker"
        for number in range(1, count + 1):
            await asyncio.sleep(self._random.expovariate(count / self._seconds))
            long = self._random.randrange(LONG_EVERY) == 0
            milliseconds = self._random.randint(200, 1200) if long else self._random.randint(1, 40)
            careful = self._random.randrange(CAREFUL_EVERY) == 0
            asked = Asked(f"chat:{index}", number, 1 if careful else MANY_ATTEMPTS)
            handle = await self._insist(agent, ask(number, milliseconds), asked)
            self._asked.write(AskedRow(handle.id, asked))
            group.create_task(self._listen(handle))

    async def _insist(self, agent: str, text: str, asked: Asked) -> Handle:
        while True:
            try:
                return await self._headway.submit(
                    agent,
                    text,
                    session=asked.session,
                    idempotency_key=f"{asked.session} {asked.number}",
                    max_attempts=asked.max_attempts,
                    cap=100_000,
                )
            except Unavailable:
                self.repeated += 1
                await asyncio.sleep(AGAIN_S)

    async def _listen(self, handle: Handle) -> None:
        self._told.write(ToldRow(handle.id, ending_of(await handle.wait())))


def main() -> None:
    store, folder, seed, sessions, runs, seconds = sys.argv[1:]
    submitter = Submitter(store, Path(folder), int(seed), float(seconds))
    headway.run(submitter.work(int(sessions), int(runs)))


if __name__ == "__main__":
    main()
