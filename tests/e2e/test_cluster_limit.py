"""L-8: a lane's limit over all nodes is exact, while runs go through and another node joins."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import headway
from headway import Handle, Headway, LaneSettings
from tests.e2e.chaos.harness import QUICK
from tests.e2e.ledger import Line, ask, read_lines
from tests.e2e.processes import Process, ended_at_last, worker
from tests.e2e.waiting import until
from tests.postgres import PostgresServer

AGENTS = "tests.e2e.narrow:hw"
LIMIT = 5
RUNS = 200
STEADY = {**QUICK, "HEADWAY_LEASE": "60s"}
"""No node dies here: none shall lose its lease because the machine stood still."""


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


def test_two_nodes_and_then_three_hold_the_limit(server: PostgresServer, tmp_path: Path) -> None:
    nodes = [worker(f"node{index}", AGENTS, server.url, tmp_path, STEADY) for index in (1, 2)]
    with ended_at_last(nodes):
        for node in nodes:
            node.wait_for(" runs ")
        count = headway.run(_submit(server.url, tmp_path, nodes))
    lines = read_lines(tmp_path)
    assert len([line for line in lines if line.kind == "end"]) == count
    assert _most_at_once(lines) == LIMIT, "never above, and reached"
    assert {line.process for line in lines} == {"node1", "node2", "node3"}, "each had its share"


async def _submit(url: str, folder: Path, nodes: list[Process]) -> int:
    """Answers how many there were."""
    hw = Headway(url, name="client", lanes={"narrow": LaneSettings(30, cluster_limit=LIMIT)})
    hw.remote_agent("walker")
    async with hw:
        handles = await _submitted(hw, RUNS)
        await until(lambda: len(read_lines(folder)) > RUNS / 2, "some of them ran")
        nodes.append(worker("node3", AGENTS, url, folder, STEADY))

        async def has_its_share() -> bool:
            """However long it takes to start, there is something left for it."""
            lines = read_lines(folder)
            if len(handles) - sum(line.kind == "end" for line in lines) < RUNS / 2:
                handles.extend(await _submitted(hw, RUNS // 2))
            return any(line.process == "node3" for line in lines)

        await until(has_its_share, "the third node runs some, too")
        outcomes = [await handle.wait() for handle in handles]
    assert all(outcome.ok for outcome in outcomes)
    return len(handles)


async def _submitted(hw: Headway, count: int) -> list[Handle]:
    return await asyncio.gather(
        *(hw.submit("walker", ask(1, 60), lane="narrow") for _ in range(count))
    )


def _most_at_once(lines: list[Line]) -> int:
    """By what the agents wrote down: an end that comes at the instant of a begin counts as before it."""
    steps = [(line.at, {"begin": 1, "end": -1}.get(line.kind, 0)) for line in lines]
    running = most = 0
    for _, step in sorted(steps):
        running += step
        most = max(most, running)
    return most
