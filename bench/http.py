"""What a task costs over HTTP, kept in SQLite and run, beside a handler that only reads it; and many listeners."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec

from bench._disk import describe_disk, scratch
from bench._load import Broken
from bench.harness import Report, need, progress
from bench.serving.listeners import LIFE, Listener, check_all_heard
from bench.serving.load import Load, ask, hammer, request
from bench.serving.processes import bare_server, headway_server
from headway.wiring import run as run_on_loop

TITLE = "POST /tasks beside a bare Litestar handler, and 200 listeners"
AT_ONCE = 64
ROUNDS = 7
SECONDS = 3.0
WARM_UP_S = 1.0
LISTENERS = 200
RUNS = 200
ACCEPTED = 202
_PAUSE_S = 0.01
_DRAINED_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Told:
    """What the listeners heard, and how long after the first submission the last one had heard all."""

    events: int
    seconds: float
    resumed: int
    """How many events one of them had missed, and got when it came back."""


def run(quick: bool) -> Report:
    need("httptools", "litestar", "uvicorn")
    rounds, seconds, listeners = (2, 0.5, 20) if quick else (ROUNDS, SECONDS, LISTENERS)
    with scratch() as folder:
        bare, ours = _tasks(folder, rounds, seconds)
        told = _listened(folder, listeners)
        disk = describe_disk(folder)
    ratio = median(one.rate / other.rate for one, other in zip(ours, bare, strict=True))
    return Report(
        name="http",
        columns=("what", "requests/s", "p50 ms", "p99 ms", "of the bare handler"),
        rows=[
            ("bare Litestar handler", _rate(bare), *_latency(bare), 1.0),
            ("Headway, SQLite", _rate(ours), *_latency(ours), ratio),
        ],
        figures={
            "ratio": ratio,
            "tasks_per_s": _rate(ours),
            "p50_ms": _latency(ours)[0],
            "p99_ms": _latency(ours)[1],
            "bare_per_s": _rate(bare),
            "bare_p50_ms": _latency(bare)[0],
            "bare_p99_ms": _latency(bare)[1],
            "listeners": listeners,
            "listened_events": told.events,
            "listened_ms": told.seconds * 1000,
            "resumed_events": told.resumed,
        },
        limits={"ratio": (">=", 0.35)},
        peers=[("bare Litestar handler", _rate(bare)), ("Headway, SQLite", _rate(ours))],
        unit="requests a second",
        notes=(
            f"{disk}. {AT_ONCE} connections, each asks again when it has its answer.",
            f"{rounds} rounds of {seconds:g} s, in turn; of each column the middle. Each server is a process.",
            "Headway keeps each task before it answers, and runs it, up to 200 at once: the agent does nothing.",
            "The other one reads the same body into the same struct, and answers.",
            f"{listeners} listened while {RUNS} runs finished: each heard all {told.events} events, in order,",
            f"within {told.seconds * 1000:,.0f} ms. One was cut off, and got the {told.resumed} it had missed.",
        ),
    )


def _tasks(folder: Path, rounds: int, seconds: float) -> tuple[list[Load], list[Load]]:
    """The bare handler and Headway, in turn, so that the machine's moods meet both alike."""
    asked = _task("worker")
    bare: list[Load] = []
    ours: list[Load] = []
    with bare_server() as bare_port, headway_server(folder / "tasks") as our_port:
        for port in (bare_port, our_port):
            run_on_loop(hammer(port, asked, min(WARM_UP_S, seconds), AT_ONCE, ACCEPTED))
        for number in range(rounds):
            progress(f"round {number + 1} of {rounds}")
            run_on_loop(_until_drained(our_port))
            bare.append(run_on_loop(hammer(bare_port, asked, seconds, AT_ONCE, ACCEPTED)))
            ours.append(run_on_loop(hammer(our_port, asked, seconds, AT_ONCE, ACCEPTED)))
        run_on_loop(_until_drained(our_port))
    return bare, ours


def _listened(folder: Path, listeners: int) -> Told:
    progress(f"{listeners} listeners")
    with headway_server(folder / "listeners") as port:
        return run_on_loop(_listen(port, listeners))


async def _listen(port: int, listeners: int) -> Told:
    """Some listeners, one of which is cut off in the middle, and runs that finish while they listen."""
    cut_after = RUNS * len(LIFE) // 2
    cut = Listener(RUNS, cut_after)
    whole = [Listener(RUNS) for _ in range(listeners - 1)]
    for listener in (cut, *whole):
        await listener.listen(port)
    began = time.perf_counter()
    asked = _task("walker")
    async with asyncio.TaskGroup() as group:
        coming_back = group.create_task(_come_back(cut, port))
        answers = [group.create_task(ask(port, asked)) for _ in range(RUNS)]
        heard = [group.create_task(listener.ended()) for listener in whole]
    ended = max(coming_back.result(), *(each.result() for each in heard))
    run_ids = {_task_id(*answer.result()) for answer in answers}
    if len(run_ids) != RUNS or len(cut.heard) <= cut_after:
        raise Broken(f"{len(run_ids)} runs, and {len(cut.heard)} events for who came back")
    check_all_heard([*whole, cut], run_ids)
    for listener in (cut, *whole):
        listener.close()
    return Told(len(cut.heard), ended - began, len(cut.heard) - cut_after)


async def _come_back(listener: Listener, port: int) -> float:
    await listener.ended()
    await listener.listen(port)
    return await listener.ended()


async def _until_drained(port: int) -> None:
    """The server has nothing left to do, so it takes nothing from the next that is measured."""
    asked = request("GET", "/scheduler/stats")
    async with asyncio.timeout(_DRAINED_WITHIN_S):
        while True:
            _, body = await ask(port, asked)
            stats = msgspec.json.decode(body, type=dict[str, object])
            if not stats["queued"] and not stats["inflight"]:
                return
            await asyncio.sleep(_PAUSE_S)


def _task(agent: str) -> bytes:
    body = {
        "agentId": agent,
        "action": "click",
        "tabId": "tab-17",
        "selector": "#checkout > button",
        "ref": "e42",
        "params": {"button": "left", "clickCount": 2},
    }
    return request("POST", "/tasks", msgspec.json.encode(body))


def _task_id(status: int, body: bytes) -> str:
    if status != ACCEPTED:
        raise Broken(f"a task was refused: {status} {body!r}")
    return str(msgspec.json.decode(body, type=dict[str, object])["taskId"])


def _rate(loads: Sequence[Load]) -> float:
    return median(load.rate for load in loads)


def _latency(loads: Sequence[Load]) -> tuple[float, float]:
    return median(load.spread.p50 for load in loads), median(load.spread.p99 for load in loads)
