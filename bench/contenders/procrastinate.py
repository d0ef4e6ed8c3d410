"""Procrastinate with its pool of psycopg connections, with `lock` = session or without."""

import asyncio
import logging
from contextlib import suppress

import asyncpg
import procrastinate

from bench._load import Drained
from bench._postgres import settle
from bench.contenders.tally import Tally

POOL = 30
_UNFINISHED = "SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE status <> 'succeeded')"


async def drain(
    url: str, jobs: int, concurrency: int, *, sessions: int | None, analysed: bool, seconds: float
) -> Drained:
    """Ends after so many seconds, done or not."""
    logging.getLogger("procrastinate").setLevel(logging.ERROR)
    tally = Tally(jobs, seconds)
    app = procrastinate.App(
        connector=procrastinate.PsycopgConnector(conninfo=url, min_size=POOL, max_size=POOL)
    )

    async def job() -> None:
        tally.count()

    task = app.task(name="job")(job)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        tally.submitting()
        if sessions is None:
            await task.batch_defer_async(*[{}] * jobs)
        else:
            # As all contenders get theirs: one for each session, then the next for each.
            locked = [task.configure(lock=f"session-{number}") for number in range(sessions)]
            for _ in range(jobs // sessions):
                await asyncio.gather(*[session.defer_async() for session in locked])
        tally.submitted()
        if analysed:
            await settle(url)
        connection = await asyncpg.connect(url)

        async def stored() -> bool:
            return not await connection.fetchval(_UNFINISHED)

        worker = asyncio.create_task(
            app.run_worker_async(concurrency=concurrency, install_signal_handlers=False)
        )
        drained = await tally.finished(stored)
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker
        await connection.close()
    return drained
