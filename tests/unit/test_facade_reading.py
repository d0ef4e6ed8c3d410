"""What a node shows of itself: sessions, numbers, whether it drains, whether its store is there (O-3, D-9)."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from headway import (
    AgentLoad,
    Headway,
    InvalidInput,
    LaneSettings,
    Limits,
    Mode,
    NotRunning,
    QueueOptions,
    Route,
    SessionView,
    Settings,
    Source,
    Turn,
)
from headway.core.actions import Action
from headway.model.errors import StoreUnavailable
from headway.model.run import LaneName
from headway.model.settings import DEFAULT_LANES
from headway.model.time import SECOND
from headway.ports import Recorded, Renewal
from headway.store.memory import MemoryStore
from headway.store.sqlite import SqliteStore
from headway.testing import virtual_time
from tests.unit.runtime.worlds import CHAT, Gate, Recorder, moment, with_agents


@virtual_time
async def test_g_one_session_as_it_is_now() -> None:
    hw = with_agents(Gate(), Gate())
    async with hw:
        runs = [await hw.submit(agent, "x", session="s") for agent in "aba"]
        await hw.submit("a", "typing", session="s", route=CHAT, debounce="1h")
        await hw.set_queue("s", cap=25)
        view = await hw.session("s")
        assert view == hw.sessions()["s"]
        assert (view.running, view.waiting) == ((runs[0].id,), (runs[1].id, runs[2].id))
        assert len(view.debouncing) == 1
        assert view.options == QueueOptions(cap=25)
        assert view.agents == ("a", "b")
        await hw.close(0)


@virtual_time
async def test_g_an_idle_session_is_empty_and_has_its_options() -> None:
    hw = with_agents(Recorder())
    async with hw:
        await hw.set_queue("s", mode="collect")
        await moment()
        assert await hw.session("s") == SessionView("s", options=QueueOptions(mode=Mode.COLLECT))  # type: ignore[arg-type]
        assert await hw.session("nobody's") == SessionView("nobody's")  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="session"):
            await hw.session("")
    with pytest.raises(NotRunning):
        await hw.session("s")


def test_n21_a_session_that_another_process_decides_for_is_read_in_the_store(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        store = f"sqlite:///{tmp_path / 'headway.db'}"
        owner, reader = Headway(store), Headway(store)
        begun, goes_on = asyncio.Event(), asyncio.Event()

        @owner.agent("a")
        async def agent(turn: Turn) -> None:
            begun.set()
            await goes_on.wait()

        async with owner, reader:
            await owner.set_queue("s", cap=25)
            runs = [await owner.submit("a", text, session="s") for text in "123"]
            await begun.wait()
            view = await reader.session("s")
            assert view.running == (runs[0].id,)
            assert view.waiting == (runs[1].id, runs[2].id)
            assert (view.options, view.agents) == (QueueOptions(cap=25), ("a",))
            status = str(await reader.command("s", "/status"))
            assert status.startswith("running for 0s: “1” (run ")
            assert status.count("\nwaiting: ") == 2
            assert await reader.position(runs[1]) is None
            goes_on.set()

    asyncio.run(main())


@virtual_time
async def test_s9_status_says_what_runs_and_what_waits_and_why() -> None:
    hw = with_agents(Gate())
    async with hw:
        assert await hw.command("s", "/status") == "nothing runs and nothing waits"
        first = await hw.submit("a", "sort the mail", session="s")
        await hw.submit("a", "and the bills", session="s")
        await asyncio.sleep(5)
        told = str(await hw.command("s", "/STATUS@bot")).splitlines()
        assert told[0] == f"running for 5s: “sort the mail” (run {first.id})"
        assert told[1].startswith("waiting: “and the bills”")
        assert f"is busy with run {first.id}" in told[1]
        await hw.close(0)


@virtual_time
async def test_s5_clearing_and_changing_a_session() -> None:
    hw = with_agents(Gate())
    async with hw:
        for text in "123":
            await hw.submit("a", text, session="s")
        assert await hw.clear_session("s") == 2
        assert await hw.clear_session("s") == 0
        assert len((await hw.session("s")).running) == 1
        await hw.set_queue("s", cap=25, mode="collect")
        await hw.change_queue("s", cap=3)
        assert (await hw.session("s")).options == QueueOptions(cap=3, mode=Mode.COLLECT)
        with pytest.raises(InvalidInput, match="cap"):
            await hw.change_queue("s", cap=0)
        await hw.close(0)


@virtual_time
async def test_o3_the_numbers_of_a_node() -> None:
    limits = Limits(max_inflight=2)
    main_lane = LaneSettings(5, reserve=1, cluster_limit=4)
    lanes = {**DEFAULT_LANES, LaneName("main"): main_lane}
    hw = with_agents(Gate(), Gate(), limits=limits, lanes=lanes)
    hw.use_name("n1")
    async with hw:
        began = hw.stats().started_at
        await asyncio.sleep(3)
        for _ in range(4):
            await hw.submit("a", "x", source="task")
        await hw.submit("b", "x", session="s")
        await hw.submit("b", "x", session="s", lane="mian")
        await moment()
        stats = hw.stats()
        assert (stats.name, stats.node, stats.draining, stats.limits) == (
            "n1",
            hw.node,
            False,
            limits,
        )
        assert stats.started_at == began
        assert (stats.queued, stats.inflight, stats.sessions) == (2, 2, 5)
        assert stats.agents == (
            AgentLoad("a", queued=2, inflight=2, waiting=2, running=2),  # type: ignore[arg-type]
            AgentLoad("b", waiting=1, running=1),  # type: ignore[arg-type]
        )
        assert stats.lanes == tuple(hw.lanes().values())
        main = hw.lanes()["main"]
        assert (main.running, main.waiting, main.reserve, main.cluster_limit) == (3, 3, 1, 4)
        assert stats.unknown_lanes == 1
        assert stats.lease_left is None, "memory is nobody else's"
        await hw.close(0)


def test_d3_a_node_of_a_durable_store_tells_how_long_its_lease_holds(tmp_path: Path) -> None:
    async def main() -> None:
        hw = Headway(f"sqlite:///{tmp_path / 'headway.db'}")
        hw.agent("a")(Recorder())
        async with hw:
            left = hw.stats().lease_left
            assert left is not None
            assert 0 < left <= hw.settings.lease
            assert hw.stats().node == hw.node > 0
            asks = Headway(f"sqlite:///{tmp_path / 'headway.db'}")
            async with asks:
                assert (asks.stats().node, asks.stats().lease_left) == (0, None)

    asyncio.run(main())


@virtual_time
async def test_l5_whether_it_drains() -> None:
    hw = with_agents(Recorder(takes=2))
    with pytest.raises(NotRunning):
        _ = hw.draining
    async with hw:
        seen = [hw.draining]
        await hw.submit("a", "x")
        draining = asyncio.create_task(hw.drain())
        await moment()
        seen += [hw.draining, hw.stats().draining]
        await draining
        await hw.restart()
        seen.append(hw.draining)
    assert seen == [False, True, True, False]


AWAY = StoreUnavailable("memory://", "the disk is full")


class Faulty(MemoryStore):
    """A store that cannot write while it is told so."""

    away = False

    async def record(self, actions: Sequence[Action]) -> Recorded:
        if self.away:
            raise AWAY
        return await super().record(actions)


@virtual_time
async def test_d9_whether_the_store_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.wiring.MemoryStore", Faulty)
    hw = with_agents(Recorder())
    async with hw:
        seen = [hw.store_away]
        Faulty.away = True
        handle = await hw.submit("a", "x")
        await asyncio.sleep(1)
        seen.append(hw.store_away)
        Faulty.away = False
        assert (await handle.wait()).ok
        seen.append(hw.store_away)
    assert seen == [None, str(AWAY), None]


async def _until(happened: Callable[[], bool]) -> None:
    for _ in range(4_000):
        if happened():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not happen")


def test_d9_a_lease_that_cannot_be_renewed_tells_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        renew = SqliteStore.renew
        answers: list[str | None] = []

        async def fails(self: SqliteStore) -> Renewal:
            raise AWAY

        settings = Settings(renew_every=SECOND // 100)
        hw = Headway(f"sqlite:///{tmp_path / 'headway.db'}", settings=settings)
        hw.agent("a")(Recorder())
        async with hw:
            monkeypatch.setattr(SqliteStore, "renew", fails)
            await _until(lambda: hw.store_away is not None)
            answers.append(hw.store_away)
            monkeypatch.setattr(SqliteStore, "renew", renew)
            await _until(lambda: hw.store_away is None)
            answers.append(hw.store_away)
        assert answers == [str(AWAY), None]

    asyncio.run(main())


@virtual_time
async def test_t1_runs_are_listed_by_source() -> None:
    hw = with_agents(Recorder())
    async with hw:
        task = await hw.submit("a", "x", source="task")
        await hw.submit("a", "y", route=Route("web"))
        found = await hw.runs(source="task")
        assert [view.id for view in found.runs] == [task.id]
        assert len((await hw.runs(source=Source.MESSAGE)).runs) == 1
        with pytest.raises(InvalidInput, match="source"):
            await hw.runs(source="cron")
