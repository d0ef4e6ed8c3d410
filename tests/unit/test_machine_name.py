"""By which name a node and its workers know their machine (W-2)."""

import asyncio
import platform
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from headway import Headway, Turn
from headway.wiring import host_name


def test_w2_it_is_what_the_system_calls_it() -> None:
    assert host_name() == platform.node()


def test_w2_a_name_that_was_given_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many containers have another name each time they start; an empty one is none."""
    monkeypatch.setenv("HEADWAY_MACHINE", "rack 7")
    assert host_name() == "rack 7"
    monkeypatch.setenv("HEADWAY_MACHINE", "")
    assert host_name() == platform.node()


def test_w2_the_store_knows_on_which_machine_a_node_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_MACHINE", "rack 7")
    path = tmp_path / "agents.db"

    async def main() -> None:
        hw = Headway(f"sqlite:///{path}")

        @hw.agent("echo")
        async def echo(turn: Turn) -> str:
            return turn.text

        async with hw:
            assert await hw.send("echo", "hello", session="s") == "hello"

    asyncio.run(main())
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT host, grace FROM nodes").fetchall() == [
            ("rack 7", 60_000_000)
        ]
