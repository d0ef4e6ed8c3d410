"""Submit → start → finish through the whole in-memory engine, beside bare tasks on the same loop."""

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine
from statistics import median
from typing import TypeAlias

from bench.harness import Report, progress
from headway import Headway, Turn
from headway.wiring import run as run_on_loop

TITLE = "Whole engine in memory beside bare asyncio tasks"
SESSIONS = 1_000
AGENTS = 10
RUNS = 100_000
WAVE = 1_000
ROUNDS = 5

Wave: TypeAlias = Callable[[], Coroutine[object, object, None]]


def run(quick: bool) -> Report:
    rates = run_on_loop(_measure(RUNS // 10 if quick else RUNS))
    headway, bare = median(mine for mine, _ in rates), median(theirs for _, theirs in rates)
    return Report(
        name="kernel",
        columns=("what", "runs a second", "of bare"),
        rows=(
            ("bare create_task + future", bare, 1.0),
            ("Headway, whole engine", headway, headway / bare),
        ),
        figures={
            "ratio": median(mine / theirs for mine, theirs in rates),
            "headway_per_s": headway,
            "bare_per_s": bare,
        },
        limits={"ratio": (">=", 0.20)},
        peers=(("bare tasks", bare), ("Headway", headway)),
        unit="runs a second",
    )


async def _measure(runs: int) -> list[tuple[float, float]]:
    """Pairs of rates, ours and bare, measured in turn."""
    names = [f"agent-{number}" for number in range(AGENTS)]
    keys = [f"session-{number}" for number in range(SESSIONS)]
    hw = Headway()

    async def agent(turn: Turn) -> str:
        return turn.text

    for name in names:
        hw.agent(name)(agent)

    async def headway_wave() -> None:
        submit = hw.submit
        handles = [
            await submit(names[number % AGENTS], "hello", session=keys[number % SESSIONS])
            for number in range(WAVE)
        ]
        for handle in handles:
            await handle.wait()

    rates = []
    async with hw:
        for number in range(ROUNDS + 1):
            progress(f"round {number} of {ROUNDS}")
            pair = (await _rate(headway_wave, runs), await _rate(_bare_wave, runs))
            if number:
                rates.append(pair)
    return rates


async def _bare_wave() -> None:
    loop = asyncio.get_running_loop()

    async def agent(text: str) -> str:
        return text

    async def work(future: asyncio.Future[str]) -> None:
        future.set_result(await agent("hello"))

    futures = []
    for _ in range(WAVE):
        future: asyncio.Future[str] = loop.create_future()
        loop.create_task(work(future))  # noqa: RUF006 - the future keeps what is waited for
        futures.append(future)
    for future in futures:
        await future


async def _rate(wave: Wave, runs: int) -> float:
    gc.collect()
    began = time.perf_counter()
    for _ in range(runs // WAVE):
        await wave()
    return runs / (time.perf_counter() - began)
