"""Headway: each job is a run of one of the sessions, and each session keeps its order."""

from bench._load import Drained, PostgresLook, fill
from bench._load import drain as drain_runs
from bench._postgres import settle


async def drain(url: str, jobs: int, concurrency: int, sessions: int, analysed: bool) -> Drained:
    """One node stores them and leaves; another one finds them and runs them."""
    submit_rate = await fill(url, jobs, sessions)
    if analysed:
        await settle(url)
    look = await PostgresLook.open(url)
    drained = await drain_runs(url, jobs, concurrency, look.all_ended)
    await look.close()
    return Drained(drained.runs, drained.seconds, submit_rate)
