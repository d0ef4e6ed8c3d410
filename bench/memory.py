"""What idle sessions and waiting runs cost in memory, through the whole engine."""

import asyncio
import gc
import tracemalloc

from bench.harness import Report, progress
from headway import Headway, LaneSettings, Settings, Turn
from headway.model.settings import MAIN, QueueSettings
from headway.wiring import run as run_on_loop

TITLE = "Memory: one-shot sessions and waiting runs"
SESSIONS = 100_000
WAITING = 20_000
WAVE = 1_000
MEGABYTE = 1_000_000


def run(quick: bool) -> Report:
    scale = 10 if quick else 1
    left, apart, together = run_on_loop(_measure(SESSIONS // scale, WAITING // scale))
    return Report(
        name="memory",
        columns=("what", "bytes"),
        rows=(
            (f"heap left after {SESSIONS // scale:,} one-shot sessions", left),
            ("a waiting run in a session of its own", apart),
            ("a waiting run in a shared session", together),
        ),
        figures={
            "heap_left_mb": left / MEGABYTE,
            "bytes_per_waiting_run": apart,
            "bytes_per_waiting_run_shared_session": together,
        },
        limits={"heap_left_mb": ("<=", 5.0), "bytes_per_waiting_run": ("<=", 1500.0)},
        notes=("Retention 0, all else as by default; tracemalloc after a collection.",),
    )


async def _measure(sessions: int, waiting: int) -> tuple[float, float, float]:
    tracemalloc.start()
    left = await _left_after(sessions)
    apart = await _waiting_cost([f"chat:{number}" for number in range(waiting)])
    together = await _waiting_cost([f"chat:{number % 100}" for number in range(waiting)])
    tracemalloc.stop()
    return left, apart, together


def _heap() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _headway(width: int) -> Headway:
    settings = Settings(
        lanes={MAIN: LaneSettings(width)},
        queue=QueueSettings(cap=100_000),
        retention=0,
    )
    hw = Headway(settings=settings)

    @hw.agent("agent")
    async def agent(turn: Turn) -> str:
        return turn.text

    return hw


async def _left_after(sessions: int) -> float:
    async with _headway(30) as hw:
        before = _heap()
        for first in range(0, sessions, WAVE):
            if first % (10 * WAVE) == 0:
                progress(f"{first:,} of {sessions:,} sessions")
            await _wave(hw, f"one-shot:{first}", WAVE)
        await asyncio.sleep(0)
        return _heap() - before


async def _wave(hw: Headway, prefix: str, count: int) -> None:
    handles = [
        await hw.submit("agent", "hello", session=f"{prefix}:{number}") for number in range(count)
    ]
    for handle in handles:
        await handle.wait()


async def _waiting_cost(sessions: list[str]) -> float:
    """Bytes a waiting run: the run, its place in line, its session, its handle, its text."""
    progress(f"{len(sessions):,} waiting runs in {len(set(sessions)):,} sessions")
    async with _headway(0) as hw:
        before = _heap()
        for number, session in enumerate(sessions):
            await hw.submit("agent", f"message number {number}", session=session)
        return (_heap() - before) / len(sessions)
