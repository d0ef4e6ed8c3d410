"""What a store says about its runs, once all nodes have ended."""

import asyncio
import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import asyncpg

from headway.model.views import RunView
from headway.ports import RunQuery
from headway.wiring import open_store
from tests.e2e.checker import Ending, Past, Stored

PAST = "select run, attempt, epoch, ending from headway.past_attempts"
SQLITE_PAST = """
    select runs.id, past_attempts.attempt, past_attempts.epoch, past_attempts.ending
    from past_attempts join runs using (number)
"""


def read_postgres(url: str) -> dict[str, Stored]:
    """Every run by its id. How its attempts ended is read behind Headway's back."""

    async def read() -> dict[str, Stored]:
        past = (await rows(url, PAST))[0]
        return _stored(await _runs(url), past)

    return asyncio.run(read())


def read_sqlite(path: Path) -> dict[str, Stored]:
    with closing(sqlite3.connect(path)) as connection:
        past = connection.execute(SQLITE_PAST).fetchall()
    return _stored(asyncio.run(_runs(f"sqlite:///{path}")), past)


async def rows(url: str, *queries: str) -> list[list[tuple[object, ...]]]:
    """What each query answers, seen at one moment."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            return [[tuple(row) for row in await connection.fetch(query)] for query in queries]
    finally:
        await connection.close()


async def _runs(url: str) -> list[RunView]:
    store = open_store(url)
    await store.open()
    try:
        found: list[RunView] = []
        cursor: str | None = None
        while True:
            page = await store.list(RunQuery(limit=1000, cursor=cursor))
            found += page.runs
            cursor = page.cursor
            if cursor is None:
                return found
    finally:
        await store.close()


def _stored(views: Iterable[RunView], past: Iterable[tuple[object, ...]]) -> dict[str, Stored]:
    histories: dict[str, list[Past]] = defaultdict(list)
    for run, attempt, epoch, ending in past:
        histories[str(run)].append(Past(int(str(attempt)), int(str(epoch)), str(ending)))
    return {
        view.id: Stored(
            view.run.session,
            int(view.run.text.split()[0]),
            _ending(view),
            view.attempt,
            histories[view.id],
        )
        for view in views
    }


def _ending(view: RunView) -> Ending:
    outcome = view.outcome
    if outcome is None:
        return Ending(view.state)
    return Ending(outcome.state, outcome.reason or "", outcome.text)
