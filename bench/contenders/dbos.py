"""DBOS queues: async workflows with `worker_concurrency`, polled as often as helps."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

import asyncpg
from dbos import DBOS, DBOSConfig

from bench._load import Drained
from bench._postgres import settle
from bench.contenders.tally import Tally

QUEUE = "bench"
THREADS = 16
POOL = 30
_UNFINISHED = "SELECT EXISTS (SELECT FROM dbos.workflow_status WHERE status <> 'SUCCESS')"


async def drain(
    url: str, jobs: int, concurrency: int, *, polling: float, analysed: bool, seconds: float
) -> Drained:
    """Ends after so many seconds, done or not. `polling` is in seconds; DBOS itself would take one."""
    logging.getLogger("dbos").setLevel(logging.ERROR)
    tally = Tally(jobs, seconds)
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": url,
        "sys_db_pool_size": POOL,
        "log_level": "ERROR",
    }
    DBOS(config=config)

    async def job() -> None:
        tally.count()

    workflow = DBOS.workflow(name="job")(job)

    def submit(count: int) -> None:
        for _ in range(count):
            DBOS.enqueue_workflow(QUEUE, workflow)

    connection = await asyncpg.connect(url)

    async def stored() -> bool:
        return not await connection.fetchval(_UNFINISHED)

    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(THREADS) as threads:
        await loop.run_in_executor(threads, DBOS.launch)
        # No room at first: nothing starts before all is stored.
        queue = await loop.run_in_executor(
            threads,
            lambda: DBOS.register_queue(QUEUE, worker_concurrency=0, polling_interval_sec=polling),
        )
        tally.submitting()
        share, rest = divmod(jobs, THREADS)
        counts = [share + (number < rest) for number in range(THREADS)]
        await asyncio.gather(*[loop.run_in_executor(threads, submit, count) for count in counts])
        tally.submitted()
        if analysed:
            await settle(url)
        await loop.run_in_executor(threads, queue.set_worker_concurrency, concurrency)
        drained = await tally.finished(stored)
        await loop.run_in_executor(threads, queue.set_worker_concurrency, 0)
        await loop.run_in_executor(threads, DBOS.destroy)
    await connection.close()
    return drained
