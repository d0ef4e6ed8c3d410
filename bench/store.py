"""What a store alone costs for each run: no engine, no agent, whole batches straight to the store."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from bench._disk import describe_disk, scratch
from bench._load import AGENT, TEXT, Broken
from bench.harness import Report, need, progress
from headway.core.actions import Action, Finish, Start
from headway.model.outcome import Outcome, Reply
from headway.model.run import AgentName, Run, RunId, SessionKey
from headway.model.settings import MAIN, Settings
from headway.model.time import SECOND
from headway.model.words import Source, State
from headway.ports import Elsewhere, Granted, Store
from headway.runtime.clock import SystemClock
from headway.wiring import MEMORY, open_store
from headway.wiring import run as run_on_loop

TITLE = "A store alone: µs a run to admit, start, finish and claim"
BATCHES = (30, 200)
ROUNDS = 60
WARM_UP = 5
LEASE = 3600 * SECOND
_DONE = Outcome(State.DONE, reply=Reply(TEXT))

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Costs:
    """Medians, in microseconds for each run."""

    admit: float
    start: float
    finish: float
    turn: float
    """A run's end and its session's next start, in one batch: what draining consists of."""
    claim: float | None
    """A session with one waiting run, claimed; a memory store has none to claim."""


def run(quick: bool) -> Report:
    need("asyncpg")
    from bench._postgres import running_postgres

    rounds = ROUNDS // 10 if quick else ROUNDS
    found: dict[str, dict[int, Costs]] = {"memory": {}, "sqlite": {}, "postgres": {}}
    with scratch() as folder, running_postgres() as server:
        for batch in BATCHES:
            urls = {
                "memory": MEMORY,
                "sqlite": f"sqlite:///{folder / f'{batch}.db'}",
                "postgres": asyncio.run(server.new_database()),
            }
            for name, url in urls.items():
                progress(f"{name}, batches of {batch}")
                found[name][batch] = run_on_loop(_costs(url, batch, rounds))
        about = f"{describe_disk(folder)}. {asyncio.run(server.describe())}"
    return Report(
        name="store",
        columns=("store", "batch", "admit µs", "start µs", "finish µs", "turn µs", "claim µs"),
        rows=[
            (name, batch, costs.admit, costs.start, costs.finish, costs.turn, _shown(costs.claim))
            for name, by_batch in found.items()
            for batch, costs in by_batch.items()
        ],
        figures={
            f"{name}_{step}_{batch}_us": value
            for name, by_batch in found.items()
            for batch, costs in by_batch.items()
            for step in ("admit", "start", "finish", "turn", "claim")
            if (value := getattr(costs, step)) is not None
        },
        notes=(
            about,
            "For each run, by the clock on the wall: the batch's commit is shared by its runs.",
            "Turn: the end of a run and the next start of its session in one batch.",
        ),
    )


def _shown(cost: float | None) -> str | float:
    return "–" if cost is None else cost


async def _costs(url: str, batch: int, rounds: int) -> Costs:
    took: dict[str, list[float]] = {"admit": [], "start": [], "turn": [], "finish": []}
    async with _opened(url) as store:
        for number in range(rounds + WARM_UP):
            first, second = _runs(f"a{number}", batch), _runs(f"b{number}", batch)
            epochs = await _timed(took["admit"], _admit(store, first))
            await _admit(store, second)
            await _timed(took["start"], store.record(_starts(first, epochs)))
            turn = [
                action
                for pair in zip(_finishes(first, epochs), _starts(second, epochs), strict=True)
                for action in pair
            ]
            await _timed(took["turn"], store.record(turn))
            await _timed(took["finish"], store.record(_finishes(second, epochs)))
        claim = None if url == MEMORY else await _claim(store, batch, rounds)
    costs = {step: _median(seconds, batch) for step, seconds in took.items()}
    return Costs(**costs, claim=claim)


async def _claim(store: Store, batch: int, rounds: int) -> float:
    """Sessions with one waiting run each, left unowned; as many are claimed at once as the batch says."""
    took: list[float] = []
    for number in range(rounds + WARM_UP):
        runs = _runs(f"c{number}", batch, f"unowned-{number}")
        admitted = await asyncio.gather(*[_soon(store.admit(run, claim=False)) for run in runs])
        if not all(isinstance(answer, Elsewhere) for answer in admitted):
            raise Broken("a run that was not to be claimed was granted")
        claims = await _timed(
            took, store.claim({MAIN: batch}, [AgentName(AGENT)], SystemClock().now())
        )
        if len(claims.holdings) != batch:
            raise Broken(f"{len(claims.holdings)} of {batch} sessions were claimed")
    return _median(took, batch)


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Store]:
    store = open_store(url, Settings())
    await store.open()
    await store.enlist("bench", LEASE)
    try:
        yield store
    finally:
        await store.retire()
        await store.close()


async def _admit(store: Store, runs: Sequence[Run]) -> list[int]:
    """Store them all at once; answers the epochs of their sessions."""
    under_way = [store.admit(run) for run in runs]
    answers = await asyncio.gather(*[_soon(answer) for answer in under_way])
    epochs = [answer.epoch for answer in answers if isinstance(answer, Granted)]
    if len(epochs) != len(runs):
        raise Broken("a session was not granted")
    return epochs


async def _soon(answer: Answer | Awaitable[Answer]) -> Answer:
    return await answer if isinstance(answer, Awaitable) else answer


async def _timed(took: list[float], work: Awaitable[Answer]) -> Answer:
    began = time.perf_counter()
    answer = await work
    took.append(time.perf_counter() - began)
    return answer


def _median(seconds: Sequence[float], batch: int) -> float:
    return median(seconds[WARM_UP:]) / batch * 1e6


def _runs(prefix: str, batch: int, session: str = "session") -> list[Run]:
    now = SystemClock().now()
    return [
        Run(
            RunId(f"{prefix}-{number}"),
            AgentName(AGENT),
            SessionKey(f"{session}-{number}"),
            Source.MESSAGE,
            MAIN,
            0,
            now,
            TEXT,
        )
        for number in range(batch)
    ]


def _starts(runs: Sequence[Run], epochs: Sequence[int]) -> list[Action]:
    now = SystemClock().now()
    return [
        Start(run, ticket, 1, epoch, now)
        for ticket, (run, epoch) in enumerate(zip(runs, epochs, strict=True))
    ]


def _finishes(runs: Sequence[Run], epochs: Sequence[int]) -> list[Action]:
    now = SystemClock().now()
    return [Finish(run, _DONE, 1, epoch, now, now) for run, epoch in zip(runs, epochs, strict=True)]
