"""A process beside the owner of a SQLite file: it adds and reads, gives orders, and owns nothing (D-2, N-21)."""

import asyncio
from pathlib import Path

import pytest

from headway import Headway, InvalidInput, Reason, StoreRefused, Turn
from headway.events import RunStarted


def _working(url: str) -> Headway:
    hw = Headway(url)

    @hw.agent("echo")
    async def echo(turn: Turn) -> str:
        return turn.text.upper()

    @hw.agent("slow")
    async def slow(turn: Turn) -> str:
        await asyncio.sleep(60)
        return turn.text

    return hw


def _asking(url: str) -> Headway:
    hw = Headway(url)
    hw.remote_agent("echo")
    hw.remote_agent("slow")
    return hw


def test_n21_d2_who_runs_no_agents_may_ask_beside_the_owner_of_the_file(tmp_path: Path) -> None:
    async def main() -> None:
        url = f"sqlite:///{tmp_path / 'agents.db'}"
        async with _working(url) as owner, _asking(url) as asker:
            assert await asker.send("echo", "hello", session="s") == "HELLO"
            assert asker.node == 0
            assert [node.id for node in await asker.nodes()] == [owner.node]

    asyncio.run(main())


def test_n21_n13_its_stops_are_carried_out_by_the_owner(tmp_path: Path) -> None:
    async def main() -> None:
        url = f"sqlite:///{tmp_path / 'agents.db'}"
        async with _working(url) as owner, _asking(url) as asker:
            with owner.events() as events:
                handle = await asker.submit("slow", "x", session="s")
                async for event in events:
                    if isinstance(event, RunStarted):
                        break
            assert str(await asker.stop("s")) == "1 running stopped"
            assert (await handle.wait()).reason is Reason.STOPPED

    asyncio.run(main())


def test_n21_who_has_agents_must_own_the_file(tmp_path: Path) -> None:
    async def main() -> None:
        url = f"sqlite:///{tmp_path / 'agents.db'}"
        async with _working(url):
            with pytest.raises(StoreRefused, match=r"agents\.db"):
                await _working(url).start()

    asyncio.run(main())


def test_n21_who_only_asks_leaves_the_file_to_who_has_the_agents(tmp_path: Path) -> None:
    async def main() -> None:
        url = f"sqlite:///{tmp_path / 'agents.db'}"
        async with _asking(url) as asker:
            handle = await asker.submit("echo", "first", session="s")
            async with _working(url):
                assert await handle.reply() == "FIRST"

    asyncio.run(main())


def test_s5_queue_status_is_true_of_sessions_that_others_decide_for(tmp_path: Path) -> None:
    async def main() -> None:
        url = f"sqlite:///{tmp_path / 'agents.db'}"
        async with _working(url) as owner, _asking(url) as asker:
            with owner.events() as events:
                for _ in range(3):
                    await asker.submit("slow", "x", session="s")
                async for event in events:
                    if isinstance(event, RunStarted):
                        break
            status = await asker.command("s", "/queue status")
            assert status is not None
            assert status.startswith("1 running, 2 waiting")
            await asker.stop_all("s")

    asyncio.run(main())


def test_a_store_in_memory_has_no_other_nodes_that_could_run_an_agent() -> None:
    async def main() -> None:
        hw = Headway("memory://")
        hw.remote_agent("support")
        with pytest.raises(InvalidInput, match=r"remote_agent.*HEADWAY_STORE"):
            await hw.start()

    asyncio.run(main())


def test_a_wrong_store_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_STORE", "foo://x")
    with pytest.raises(InvalidInput, match="HEADWAY_STORE"):
        Headway()
