"""Brings the schema up to date, forward only, while older nodes go on working (D-10)."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import asyncpg

from headway.model.errors import StoreRefused, StoreUnavailable
from headway.model.views import StoreStatus
from headway.model.words import State
from headway.store.postgres.address import Address
from headway.store.postgres.connections import Connections
from headway.store.postgres.statements import migrations
from headway.store.postgres.troubles import ANY, refusal

Answer = TypeVar("Answer")

MINIMUM = 1
"""The oldest program, by the number of its last migration, that may use a schema as this program leaves it."""
_MIGRATE_WITHIN = 60.0
_PATIENCE = "set local lock_timeout = '60s'; set local statement_timeout = '60s'"


async def migrate(connections: Connections, address: Address) -> list[str]:
    """Take the steps that are missing. Answers their names. Of nodes that start at once, one does it."""
    steps = migrations(address.schema)
    schema = address.schema

    async def go(connection: asyncpg.Connection) -> list[str]:
        async with connection.transaction():
            await connection.execute(_PATIENCE)
            if await _version(connection, address) >= steps[-1].number:
                return []
            # Only one at a time, and the second looks again: the first may have done it all.
            await connection.execute(
                f"select pg_advisory_xact_lock(hashtextextended('{schema}.migrations', 0))"
            )
            await connection.execute(f"create schema if not exists {schema}")
            version = await _version(connection, address)
            missing = [step for step in steps if step.number > version]
            for step in missing:
                await connection.execute(step.text, timeout=_MIGRATE_WITHIN)
            if missing:
                await connection.execute(
                    f"insert into {schema}.meta (name, value)"
                    f" values ('version', '{steps[-1].number}'), ('minimum', '{MINIMUM}')"
                    " on conflict (name) do update set value = excluded.value"
                )
            return [step.name for step in missing]

    return await _opening(connections, address, go)


async def status(connections: Connections, address: Address) -> StoreStatus:
    """What the schema is at. Reads only."""
    schema = address.schema
    steps = migrations(schema)

    async def look(connection: asyncpg.Connection) -> StoreStatus:
        async with connection.transaction(readonly=True):
            version = await _version(connection, address)
            pending = tuple(step.name for step in steps if step.number > version)
            if not version:
                return StoreStatus(address.shown, 0, steps[-1].number, pending)
            counts = await connection.fetch(
                f"""
                select e.state, count(*) as count from {schema}.endings e group by 1
                union all
                select case when a.run is not null then 'running' else q.state end, count(*)
                from {schema}.queue q
                left join {schema}.attempts a on a.session = q.session and a.run = q.run
                group by 1
                """
            )
            size = await connection.fetchval(
                "select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class c"
                " where c.relnamespace = $1::regnamespace and c.relkind = 'r'",
                schema,
            )
        runs = {State(row["state"]): row["count"] for row in counts}
        return StoreStatus(address.shown, version, steps[-1].number, pending, runs, size)

    return await _opening(connections, address, look)


async def _opening(
    connections: Connections,
    address: Address,
    ask: Callable[[asyncpg.Connection], Awaitable[Answer]],
) -> Answer:
    """Before the store is open, what no repetition will change is a refusal."""
    try:
        return await connections.use(ask, _MIGRATE_WITHIN)
    except StoreUnavailable as error:
        raise refusal(address.shown, error.__cause__ or error) from error.__cause__
    except ANY as error:
        raise refusal(address.shown, error) from error


async def _version(connection: asyncpg.Connection, address: Address) -> int:
    """The number of the schema's last step; 0 for none. Refuses a schema that this program is too old for."""
    there = await connection.fetchval(f"select to_regclass('{address.schema}.meta') is not null")
    if not there:
        return 0
    rows = await connection.fetch(f"select name, value from {address.schema}.meta")
    meta = {row["name"]: row["value"] for row in rows}
    known = migrations(address.schema)[-1].number
    minimum = int(meta.get("minimum", 0))
    if minimum > known:
        reason = f"the database needs a newer Headway (schema {minimum}, this one knows {known})"
        raise StoreRefused(address.shown, reason, "upgrade Headway on this machine")
    return int(meta.get("version", 0))
