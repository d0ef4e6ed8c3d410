"""PgQueuer as its guide to performance says: a direct asyncpg connection, durable, its autovacuum settings."""

import asyncio
import logging

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from bench._load import TEXT, Drained
from bench._postgres import settle
from bench.contenders.tally import Tally

JOB = "job"


async def drain(
    url: str, jobs: int, batch: int, concurrency: int | None, analysed: bool
) -> Drained:
    """Without a limit of concurrency, or with one; it takes none that is less than twice the batch."""
    logging.getLogger("pgqueuer").setLevel(logging.WARNING)
    tally = Tally(jobs)
    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    await queries.optimize_autovacuum()
    tally.submitting()
    await queries.enqueue([JOB] * jobs, [TEXT.encode()] * jobs, [0] * jobs)
    tally.submitted()
    if analysed:
        await settle(url)

    async def job(_: object) -> None:
        tally.count()

    async def stored() -> bool:
        return not await connection.fetchval("SELECT EXISTS (SELECT FROM pgqueuer)")

    worker = PgQueuer(AsyncpgDriver(await asyncpg.connect(url)))
    worker.entrypoint(JOB, accepts_context=False)(job)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run(batch_size=batch, max_concurrent_tasks=concurrency))
        drained = await tally.finished(stored)
        worker.shutdown.set()
    await connection.close()
    return drained
