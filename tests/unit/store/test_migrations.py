"""Migrations (D-10, N-20): forward from every earlier version, while nodes of an older one go on."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncpg
import pytest

from headway import Headway, Settings, Turn
from headway.model.time import SECOND
from headway.store.postgres.address import address_of
from headway.store.postgres.statements import migrations
from headway.store.sqlite.statements import MIGRATIONS as SQLITE_STEPS
from headway.testing import VirtualClock
from headway.wiring import open_store
from tests.postgres import fresh_url

STEPS = migrations("headway")
QUICK = Settings(poll_every=SECOND // 2, renew_every=SECOND // 2)


def _run(test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await test()

    asyncio.run(main())


def _echo(url: str) -> Headway:
    hw = Headway(url, settings=QUICK)

    @hw.agent("echo")
    async def echo(turn: Turn) -> str:
        return turn.text

    return hw


@pytest.mark.parametrize("known", range(len(STEPS)), ids=lambda known: f"from {known}")
def test_d10_postgres_is_brought_forward_from_every_earlier_version(known: int) -> None:
    async def test() -> None:
        url = fresh_url()
        address = address_of(url)
        steps = migrations(address.schema)
        connection = await asyncpg.connect(address.url)
        await connection.execute(f"create schema if not exists {address.schema}")
        for step in steps[:known]:
            await connection.execute(step.text)
        if known:
            await connection.execute(
                f"insert into {address.schema}.meta (name, value)"
                f" values ('version', '{steps[known - 1].number}'), ('minimum', '1')"
                " on conflict (name) do update set value = excluded.value"
            )
        store = open_store(url, Settings(), VirtualClock())
        assert (await store.status()).pending == tuple(step.name for step in steps[known:])
        assert list(await store.migrate()) == [step.name for step in steps[known:]]
        assert (await store.status()).version == steps[-1].number
        await connection.close()
        async with _echo(url) as hw:
            assert await hw.send("echo", "hello", session="s") == "hello"

    _run(test)


@pytest.mark.parametrize("known", range(len(SQLITE_STEPS)), ids=lambda known: f"from {known}")
def test_d10_sqlite_is_brought_forward_from_every_earlier_version(
    known: int, tmp_path: Path
) -> None:
    async def test() -> None:
        path = tmp_path / "agents.db"
        path.touch()
        with sqlite3.connect(path) as old:
            for step in SQLITE_STEPS[:known]:
                old.executescript(step.text)
                old.execute("UPDATE meta SET value = ? WHERE name = 'version'", (step.version,))
        old.close()
        store = open_store(f"sqlite:///{path}", Settings(), VirtualClock())
        missing = [step.name for step in SQLITE_STEPS[known:]]
        assert list((await store.status()).pending) == missing
        assert list(await store.migrate()) == missing
        assert (await store.status()).version == SQLITE_STEPS[-1].version
        async with _echo(f"sqlite:///{path}") as hw:
            assert await hw.send("echo", "hello", session="s") == "hello"

    _run(test)


def test_d10_n20_a_postgres_node_goes_on_while_a_newer_version_adds_to_the_schema() -> None:
    async def test() -> None:
        url = fresh_url()
        address = address_of(url)
        async with _echo(url) as older:
            assert await older.send("echo", "before", session="s") == "before"
            connection = await asyncpg.connect(address.url)
            tables = await connection.fetch(
                "select tablename from pg_tables where schemaname = $1", address.schema
            )
            assert len(tables) > 5
            for (table,) in tables:
                await connection.execute(
                    f"alter table {address.schema}.{table} add column of_the_future text default 'x'"
                )
            await connection.execute(
                f"update {address.schema}.meta set value = '99' where name = 'version'"
            )
            await connection.close()
            assert await older.send("echo", "after", session="s") == "after"
            async with _echo(url) as another:
                handles = [await another.submit("echo", str(n), session=str(n)) for n in range(20)]
                assert [await handle.reply() for handle in handles] == [str(n) for n in range(20)]

    _run(test)


def test_d10_n20_a_sqlite_node_goes_on_while_a_newer_version_adds_to_the_schema(
    tmp_path: Path,
) -> None:
    async def test() -> None:
        path = tmp_path / "agents.db"
        async with _echo(f"sqlite:///{path}") as older:
            assert await older.send("echo", "before", session="s") == "before"
            newer = sqlite3.connect(path, timeout=10)
            names = newer.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            ).fetchall()
            assert len(names) > 5
            for (name,) in names:
                newer.execute(f"ALTER TABLE {name} ADD COLUMN of_the_future TEXT DEFAULT 'x'")
            newer.execute("UPDATE meta SET value = 99 WHERE name = 'version'")
            newer.commit()
            newer.close()
            assert await older.send("echo", "after", session="s") == "after"
        async with _echo(f"sqlite:///{path}") as again:
            assert await again.send("echo", "again", session="s") == "again"

    _run(test)


def test_d10_sqlite_is_brought_forward_from_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        store = open_store(f"sqlite:///{tmp_path / 'agents.db'}", Settings(), VirtualClock())
        done = await store.migrate()
        assert done
        assert list(await store.migrate()) == []
        status = await store.status()
        assert (status.version, status.pending) == (status.newest, ())

    _run(test)
