"""Workers and machines over HTTP, RPC and in metrics (D-8, O-4)."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import httpx

from headway import Handle, Headway
from headway.testing import virtual_time
from headway.wire.workers import SnapshotsQuery, WorkersQuery
from tests.e2e.waiting import until
from tests.unit.client.calling import client_of
from tests.unit.gateway.asking import bearing, refusal
from tests.unit.gateway.calling import client, opened, served
from tests.unit.gateway.metrics.test_metrics import scraped
from tests.unit.gateway.rpc.lines import called
from tests.unit.runtime.keeping import Field, FieldRunner


def world(store: str = "memory://") -> tuple[Headway, Field]:
    field = Field()
    hw = Headway(store, name="here")
    hw.add_agent("coder", FieldRunner(field))
    hw.add_agent("writer", FieldRunner(Field()))
    return hw, field


@contextlib.asynccontextmanager
async def working(*agents: str) -> AsyncIterator[tuple[Headway, httpx.AsyncClient, list[Handle]]]:
    """A server, and a worker of each of these agents that was seen already."""
    hw, _ = world()
    async with served(hw) as http:
        handles = [await hw.submit(agent, "work") for agent in agents]
        await asyncio.sleep(5)
        yield hw, http, handles
        for handle in handles:
            await handle.cancel()


@virtual_time
async def test_d8_workers_are_listed_the_latest_first_and_shown_with_their_beats() -> None:
    async with working("coder", "writer") as (_, http, (first, second)):
        body = (await http.get("/workers")).json()
        assert [each["runId"] for each in body["workers"]] == [second.id, first.id]
        assert body["cursor"] is None
        (coder,) = (await http.get("/workers", params={"agentId": "coder"})).json()["workers"]
        assert (coder["id"], coder["state"], coder["kind"]) == (f"{first.id}.1", "alive", "command")
        await asyncio.sleep(120)
        one = (await http.get(f"/workers/{first.id}.1")).json()
        assert [beat["state"] for beat in one["beats"]] == ["alive"] * 3
        assert one["beats"][0]["at"] == one["beatAt"]
        none = (await http.get(f"/workers/{first.id}.1", params={"beats": 0})).json()
        assert none["beats"] == []


@virtual_time
async def test_workers_come_in_pages_and_those_that_ended_when_asked_for() -> None:
    async with working("coder", "writer") as (_, http, (first, second)):
        seen: list[str] = []
        params: dict[str, str | int] = {"limit": 1}
        while True:
            page = (await http.get("/workers", params=params)).json()
            seen += [each["runId"] for each in page["workers"]]
            if page["cursor"] is None:
                break
            params["cursor"] = page["cursor"]
        assert seen == [second.id, first.id]
        await first.cancel()
        await first.wait()
        await asyncio.sleep(5)
        assert len((await http.get("/workers")).json()["workers"]) == 1
        (dead,) = (await http.get("/workers", params={"state": "dead"})).json()["workers"]
        assert dead["runId"] == first.id


@virtual_time
async def test_t2_what_is_not_there_or_not_understood_is_refused() -> None:
    async with working() as (_, http, _):
        assert refusal(await http.get("/workers/none.1")) == (404, "not_found")
        assert refusal(await http.get("/workers", params={"state": "tired"}))[0] == 400
        assert refusal(await http.get("/workers", params={"cursor": "x"}))[0] == 400
        assert refusal(await http.get("/machine/snapshots", params={"limit": 0}))[0] == 400


@virtual_time
async def test_o4_a_token_for_one_agent_sees_only_its_workers_and_every_machine() -> None:
    hw, _ = world()
    async with (
        opened(hw) as gateway,
        client(gateway),
        bearing(gateway, hw, "read", agent="coder") as http,
    ):
        mine, theirs = await hw.submit("coder", "work"), await hw.submit("writer", "work")
        await asyncio.sleep(5)
        (seen,) = (await http.get("/workers")).json()["workers"]
        assert seen["runId"] == mine.id
        assert refusal(await http.get("/workers", params={"agentId": "writer"}))[0] == 403
        assert refusal(await http.get(f"/workers/{theirs.id}.1")) == (404, "not_found")
        assert len((await http.get("/machine")).json()["machines"]) == 1
        for handle in (mine, theirs):
            await handle.cancel()


@virtual_time
async def test_d8_machines_are_shown_as_last_seen_and_minute_by_minute() -> None:
    async with working("coder") as (hw, http, _):
        await asyncio.sleep(180)
        (machine,) = (await http.get("/machine")).json()["machines"]
        assert (machine["host"], machine["node"]) == (hw.engine.host, hw.node)
        assert 0 <= machine["cpu"] <= 100
        assert 0 < machine["memoryUsed"] < machine["memoryTotal"]
        assert machine["workers"] == 1
        assert {"name": "main", "width": 30, "running": 1, "waiting": 0} in machine["lanes"]
        page = (await http.get("/machine/snapshots", params={"limit": 2})).json()
        assert page["snapshots"][0] == machine
        more = await http.get("/machine/snapshots", params={"cursor": page["cursor"]})
        assert len(more.json()["snapshots"]) == 2
        other = await http.get("/machine/snapshots", params={"host": "elsewhere"})
        assert other.json() == {"snapshots": [], "cursor": None}


def test_d8_reading_a_thousand_times_writes_nothing(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/read.db"

    async def main() -> None:
        hw, _ = world(store)
        async with served(hw) as http:
            await until(lambda: _seen(hw), "a snapshot was taken")
            before = _changes(tmp_path / "read.db")
            for _ in range(250):
                for path in ("/workers", "/machine", "/machine/snapshots", "/workers/none.1"):
                    assert (await http.get(path)).status_code in {200, 404}
            assert _changes(tmp_path / "read.db") == before

    asyncio.run(main())


async def _seen(hw: Headway) -> bool:
    return bool(await hw.machines())


def _changes(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """All that is in the store, but for the nodes, whose leases are renewed meanwhile."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {
            name: database.execute(f"SELECT * FROM {name}").fetchall()
            for (name,) in tables
            if name != "nodes"
        }


@virtual_time
async def test_workers_and_machines_are_there_over_rpc_too() -> None:
    hw, _ = world()
    async with called(hw) as line:
        handle = await hw.submit("coder", "work")
        await asyncio.sleep(5)
        workers = (await line.call("workers.list", agentId="coder"))["workers"]
        assert isinstance(workers, list)
        assert [each["runId"] for each in workers] == [handle.id]
        machines = (await line.call("machine.get"))["machines"]
        assert isinstance(machines, list)
        assert len(machines) == 1
        await handle.cancel()


@virtual_time
async def test_o3_workers_and_the_machine_are_counted_in_metrics() -> None:
    async with working("coder", "coder") as (_, http, _):
        number = await scraped(http)
        assert number("headway_workers", kind="command", state="alive") == 2
        assert number("headway_workers", kind="tmux", state="busy") == 0
        assert number("headway_machine_memory_total_bytes") > 0  # type: ignore[operator]
        assert number("headway_machine_cpu_percent") is not None
        assert number("headway_adoptions_total") == 0
        assert number("headway_worker_deaths_total") == 0
        assert number("headway_orphans_ended_total") == 0


@virtual_time
async def test_o5_the_client_asks_for_them() -> None:
    hw, _ = world()
    async with client_of(hw) as asks:
        handle = await hw.submit("coder", "work")
        await asyncio.sleep(5)
        (worker,) = (await asks.workers.list(WorkersQuery())).workers
        assert (await asks.workers.get(worker.id, beats=1)).beats[0].state == "alive"
        (machine,) = (await asks.workers.machines()).machines
        snapshots = (await asks.workers.snapshots(SnapshotsQuery(limit=1))).snapshots
        assert snapshots == (machine,)
        await handle.cancel()
