"""D-9 and D-3: PostgreSQL goes away and comes back."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import headway
from headway import Headway, Settings, Turn, Unavailable
from headway.model.time import MILLISECOND, SECOND
from tests.e2e.chaos.harness import AGENTS, QUICK
from tests.e2e.ledger import ask, read_lines
from tests.e2e.processes import ended_at_last, worker
from tests.e2e.waiting import until
from tests.postgres import PostgresServer

QUICKLY_S = 15.0
"""A caller is told within two seconds; a busy machine may need more, but no lease or grace runs out meanwhile."""
LONG_S = 120.0


def settings(lease_s: float) -> Settings:
    return Settings(
        lease=round(lease_s * SECOND),
        renew_every=200 * MILLISECOND,
        poll_every=500 * MILLISECOND,
        cancel_grace=round(lease_s * SECOND) // 3,
    )


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


@contextmanager
def frozen(server: PostgresServer) -> Iterator[None]:
    """All processes of the database stand still: connections stay open, and nothing answers."""
    assert server._process is not None
    parent = server._process.pid
    # The parent first: it starts a process for each connection.
    os.kill(parent, signal.SIGSTOP)
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    processes = [parent, *map(int, children.split())]
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


class Gate:
    """An agent that waits to be let through, and notes what became of each attempt."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.begun = asyncio.Event()
        self.attempts: list[str] = []
        self.cut_at: float | None = None

    async def __call__(self, turn: Turn) -> str:
        self.begun.set()
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cut_at = time.monotonic()
            self.attempts.append(f"{turn.text} cut")
            raise
        self.attempts.append(f"{turn.text} done")
        return turn.text


def node(server: PostgresServer, gate: Gate, lease_s: float) -> Headway:
    hw = Headway(server.url, settings=settings(lease_s))
    hw.agent("gate")(gate)
    return hw


def test_d9_intake_refuses_quickly_attempts_go_on_and_all_resumes(server: PostgresServer) -> None:
    async def play() -> None:
        gate = Gate()
        async with node(server, gate, lease_s=LONG_S) as hw:
            running = await hw.submit("gate", "one", session="s")
            waiting = await hw.submit("gate", "two", session="s")
            await gate.begun.wait()
            server.stop()

            began = time.monotonic()
            with pytest.raises(Unavailable):
                await hw.submit("gate", "refused", session="s")
            assert time.monotonic() - began < QUICKLY_S

            gate.open.set()
            await until(lambda: gate.attempts == ["one done"], "the running turn went on")
            assert running.outcome is None, "nothing is told before it is stored"
            await asyncio.to_thread(server.start)
            assert (await running.wait()).text == "one"
            assert (await waiting.wait()).text == "two"
            await until(lambda: _taken(hw), "intake is open again")
        assert gate.attempts[:2] == ["one done", "two done"]

    headway.run(play())


def test_d9_a_database_that_does_not_answer_is_like_one_that_is_gone(
    server: PostgresServer,
) -> None:
    async def play() -> None:
        gate = Gate()
        gate.open.set()
        async with node(server, gate, lease_s=LONG_S) as hw:
            assert await hw.send("gate", "before", session="s") == "before"
            with frozen(server):
                began = time.monotonic()
                with pytest.raises(Unavailable):
                    await hw.submit("gate", "refused", session="s")
                assert time.monotonic() - began < QUICKLY_S
            await until(lambda: _taken(hw), "intake is open again")

    headway.run(play())


def test_d3_a_node_that_cannot_renew_stops_its_attempts_before_its_lease_ends(
    server: PostgresServer,
) -> None:
    lease_s = 9.0

    async def play() -> None:
        gate = Gate()
        async with node(server, gate, lease_s) as hw:
            run = await hw.submit("gate", "one", session="s", max_attempts=2)
            await gate.begun.wait()
            stopped_at = time.monotonic()
            server.stop(signal.SIGQUIT)
            await until(lambda: gate.attempts == ["one cut"], "the attempt was stopped")
            assert gate.cut_at is not None
            assert gate.cut_at - stopped_at < lease_s
            gate.open.set()
            await asyncio.sleep(0.3)
            assert gate.attempts == ["one cut"], "nothing starts without a lease"
            await asyncio.to_thread(server.start)
            assert (await run.wait()).text == "one"
        assert gate.attempts == ["one cut", "one done"]

    headway.run(play())


def test_l5_a_worker_can_be_stopped_while_the_database_is_gone(
    server: PostgresServer, tmp_path: Path
) -> None:
    # The turn must still run when the node is told to end: it must not be cut because the lease is over.
    said = {**QUICK, "HEADWAY_LEASE": "120s", "HEADWAY_CANCEL_GRACE": "1s"}
    stopped = worker("node", AGENTS, server.url, tmp_path, said)
    with ended_at_last([stopped]):
        stopped.wait_for(" runs ")
        headway.run(_leave_a_long_turn(server, tmp_path))
        server.stop()
        stopped.signal(signal.SIGTERM)
        stopped.wait_for("stopping: waiting for 1 running turn")
        stopped.signal(signal.SIGTERM)
        assert stopped.popen.wait(60) == 0, stopped.printed


async def _leave_a_long_turn(server: PostgresServer, folder: Path) -> None:
    hw = Headway(server.url, name="client")
    hw.remote_agent("walker")
    async with hw:
        await hw.submit("walker", ask(1, 600_000))
        await until(lambda: bool(read_lines(folder)), "the turn began")


def test_a_store_that_is_not_there_at_the_start_is_said_at_once(server: PostgresServer) -> None:
    server.stop()

    async def play() -> None:
        began = time.monotonic()
        with pytest.raises(Unavailable, match=str(server.port)):
            await node(server, Gate(), LONG_S).start()
        assert time.monotonic() - began < QUICKLY_S

    headway.run(play())


async def _taken(hw: Headway) -> bool:
    try:
        return await hw.send("gate", "three", session="t") == "three"
    except Unavailable:
        return False
