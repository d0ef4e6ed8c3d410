"""What a node with nothing to do costs, while its store remembers very many finished runs."""

import asyncio
import time
from pathlib import Path

from bench._disk import scratch
from bench._load import AGENT, PostgresLook, SqliteLook, drain, fill, headway
from bench.harness import Report, need, progress
from headway import Turn
from headway.wiring import run as run_on_loop

TITLE = "CPU of an idle node with many finished runs in its store"
FINISHED = 100_000
SESSIONS = 5_000
WIDTH = 200
SECONDS = 20.0
SETTLE_S = 3.0


def run(quick: bool) -> Report:
    need("asyncpg")
    from bench._postgres import running_postgres

    finished, seconds = (FINISHED // 50, 2.0) if quick else (FINISHED, SECONDS)
    shares: dict[str, float] = {}
    with scratch() as folder:
        path = folder / "idle.db"
        run_on_loop(_finish_on_sqlite(path, finished))
        shares["sqlite"] = run_on_loop(_share(f"sqlite:///{path}", seconds))
    with running_postgres() as server:
        url = asyncio.run(server.new_database())
        run_on_loop(_finish_on_postgres(url, finished))
        shares["postgres"] = run_on_loop(_share(url, seconds))
    return Report(
        name="idle",
        columns=("store", "finished runs", "% of a core"),
        rows=[(name, finished, share) for name, share in shares.items()],
        figures={f"{name}_idle_cpu_pct": share for name, share in shares.items()},
        limits={f"{name}_idle_cpu_pct": ("<", 1.0) for name in shares},
        peers=[(f"Headway, {name}", share) for name, share in shares.items()],
        unit="% of a core",
        notes=(
            f"A new node on the store that holds them, after {SETTLE_S:.0f} s, over {seconds:.0f} s.",
            "All threads of its process, not the database's own. All settings as by default.",
        ),
    )


async def _finish_on_sqlite(path: Path, runs: int) -> None:
    """Every one of them really ran: the store is as work leaves it."""
    progress(f"sqlite, {runs:,} runs")
    url = f"sqlite:///{path}"
    await fill(url, runs, SESSIONS)
    look = SqliteLook(path)
    await drain(url, runs, WIDTH, look.all_ended)
    await look.close()


async def _finish_on_postgres(url: str, runs: int) -> None:
    progress(f"postgres, {runs:,} runs")
    await fill(url, runs, SESSIONS)
    look = await PostgresLook.open(url)
    await drain(url, runs, WIDTH, look.all_ended)
    await look.close()


async def _share(url: str, seconds: float) -> float:
    """The share of one core that this process takes with an idle node in it, in percent."""
    hw = headway(url, 30)

    async def agent(turn: Turn) -> str:
        return turn.text

    hw.agent(AGENT)(agent)
    async with hw:
        await asyncio.sleep(SETTLE_S)
        progress(f"idle for {seconds:.0f} s")
        used, began = time.process_time(), time.perf_counter()
        await asyncio.sleep(seconds)
        return (time.process_time() - used) / (time.perf_counter() - began) * 100
