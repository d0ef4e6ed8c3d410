"""`headway workers` and `headway machine`, straight from a store (D-8, O-5)."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from headway.cli.machine import bar
from headway.cli.workers import state_text
from headway.model.run import AgentName, LaneName, RunId, SessionKey
from headway.model.time import HOUR, MINUTE, SECOND
from headway.model.words import WorkerKind, WorkerState
from headway.model.worker import LaneLoad, Snapshot, Worker
from headway.runtime.clock import SystemClock
from headway.wire.workers import worker_answer
from headway.wiring import open_store
from tests.unit.cli.calling import Shell, part, sqlite_shell

NOW = SystemClock().wall()
WORKER = Worker(
    "r-1.2",
    RunId("r-1"),
    2,
    AgentName("coder"),
    SessionKey("chat"),
    WorkerKind.COMMAND,
    "web-1",
    3,
    4711,
    1.5,
    NOW - HOUR,
    WorkerState.BUSY,
    NOW - 20 * SECOND,
    lines=("running 214 tests", "test_orders.py\x1b[31m ....", ""),
)
DEAD = msgspec.structs.replace(
    WORKER, id="r-2.1", run_id=RunId("r-2"), state=WorkerState.DEAD, exit_code=3
)
SNAPSHOT = Snapshot(
    "web-1",
    3,
    NOW - MINUTE,
    37.5,
    8,
    6 * 2**30,
    16 * 2**30,
    2.414,
    1,
    (LaneLoad(LaneName("main"), 30, 4, 2), LaneLoad(LaneName("cron"), 30, 0, 0)),
)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = sqlite_shell(tmp_path)

    async def fill() -> None:
        store = open_store(shell.store)
        await store.open()
        await store.beat([WORKER, DEAD], NOW - 20 * SECOND)
        for ago in range(3):
            at = SNAPSHOT.at - ago * MINUTE
            await store.keep_snapshot(msgspec.structs.replace(SNAPSHOT, at=at))
        await store.keep_snapshot(msgspec.structs.replace(SNAPSHOT, host="web-2", node=4, cpu=0))
        await store.close()

    asyncio.run(fill())
    return shell


def test_those_that_live_are_shown_in_a_table(shell: Shell) -> None:
    head, row = shell.ok("workers").lines
    assert " ".join(head.split()) == "worker agent kind pid host state age seen last line"
    assert row.split()[:6] == ["r-1.2", "coder", "command", "4711", "web-1", "busy"]
    assert row.split()[6].startswith("1h")
    assert "test_orders.py" in row
    assert "\x1b" not in row


def test_they_can_be_chosen_and_the_dead_be_seen(shell: Shell) -> None:
    assert part(shell.json("workers", "--state", "dead"), "workers", 0, "id") == "r-2.1"
    assert "dead, exit 3" in shell.ok("workers", "--state", "dead").out
    assert shell.ok("workers", "--agent", "nobody").out == "no workers\n"
    assert shell.ok("workers", "--host", "web-9").out == "no workers\n"


def test_one_worker_is_shown_whole_with_its_beats(shell: Shell) -> None:
    told = shell.ok("workers", "r-1.2").out
    assert "r-1, attempt 2" in told
    assert "4711 on web-1, looked after by node 3" in told
    assert "running 214 tests" in told
    assert "beats" in told
    assert part(shell.json("workers", "r-1.2"), "beats", 0, "state") == "busy"
    assert "there is no worker 'x.1'" in shell.refused("workers", "x.1")


def test_machines_are_shown_with_small_bars(shell: Shell) -> None:
    head, first, second = shell.ok("machine").lines
    assert head.split()[:4] == ["machine", "node", "seen", "cores"]
    assert first.startswith("web-1")
    assert "████░░░░░░  38 %" in first
    assert "6.0 GiB of 16.0 GiB" in first
    assert "main 4/30 +2" in first
    assert "░░░░░░░░░░   0 %" in second
    assert part(shell.json("machine"), "machines", 0, "memoryUsed") == 6 * 2**30


def test_the_history_comes_in_pages(shell: Shell) -> None:
    seen = shell("machine", "--host", "web-1", "-n", "2")
    assert (seen.code, len(seen.lines)) == (0, 3)
    assert seen.err.startswith("there are more: --cursor ")
    page = json.loads(shell.ok("machine", "--host", "web-1", "-n", "2", "--json").out)
    rest = shell.ok("machine", "--host", "web-1", "--cursor", page["cursor"]).lines
    assert len(rest) == 2
    assert len(shell.ok("machine", "--history").lines) == 5


def test_a_store_cannot_be_watched(shell: Shell) -> None:
    assert "only a server can be watched" in shell.refused("workers", "--watch")


def test_an_empty_store_says_so(tmp_path: Path) -> None:
    shell = sqlite_shell(tmp_path)
    shell("db", "migrate")
    assert shell.ok("workers").out == "no workers\n"
    assert shell.ok("machine").out == "no machine was seen yet\n"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "busy"),
        ({"missed": 2}, "busy, 2 missed"),
        ({"state": WorkerState.DEAD}, "dead"),
        ({"state": WorkerState.DEAD, "exit_code": 0}, "dead, exit 0"),
        ({"state": WorkerState.DEAD, "exit_code": -9}, "dead, signal 9"),
    ],
)
def test_a_state_says_what_is_known(changes: dict[str, object], text: str) -> None:
    assert state_text(worker_answer(msgspec.structs.replace(WORKER, **changes))) == text


@pytest.mark.parametrize(
    ("share", "full"), [(0, 0), (0.01, 1), (0.05, 1), (0.5, 5), (0.99, 10), (1, 10), (1.5, 10)]
)
def test_a_bar_is_as_full_as_what_it_shows(share: float, full: int) -> None:
    assert bar(share) in {"█" * full + "░" * (10 - full), "#" * full + "." * (10 - full)}
