"""Connections to the server: made when they are needed, thrown away when they break."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import asyncpg
from asyncpg.exceptions import PostgresError

from headway.model.errors import StoreRefused
from headway.store.postgres.address import Address
from headway.store.postgres.troubles import (
    ANY,
    CONFLICTS,
    LOST,
    refusal,
    sqlstate_of,
    unavailability,
)

Answer = TypeVar("Answer")

_ANSWER_WITHIN = 1.8
"""Seconds: a caller is told within two that the database does not answer."""
_OPEN_WITHIN = 5.0
_MOST = 8
_OLDEST_SERVER = 14
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
# A server must not wait longer than its client does: what it would do then, nobody expects any more.
_LIMITS = {
    "lock_timeout": "1500ms",
    "statement_timeout": "15s",
    "idle_in_transaction_session_timeout": "30s",
}
_BOUNDS = "; ".join(f"set local {name} = '{value}'" for name, value in _LIMITS.items())
_TRIES = 4
"""How often a transaction that lost to another one is tried."""


class _Undone(Exception):
    """Ends a transaction that is not to be kept."""


class Connections:
    """A few connections that calls share. Behind a pooler each call is one explicit transaction."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._idle: list[asyncpg.Connection] = []
        self._free = asyncio.Semaphore(_MOST)
        self._pause = 0.0
        self._down_until = 0.0
        self._down: BaseException | None = None
        self._closed = False
        self.pooled = False
        """Whether a pooler stands in between: what is prepared on one connection may be asked on another."""

    async def open(self) -> None:
        """Connect once, and find out what stands at the other end."""
        self._closed = False
        connection = None
        try:
            connection = await self._connect(self._address.url, _OPEN_WITHIN, prepare=False)
            version = connection.get_server_version()
            self.pooled = await is_pooled(connection)
        except (ValueError, *ANY) as error:
            raise refusal(self._address.shown, error) from error
        finally:
            if connection is not None:
                connection.terminate()
        if version.major < _OLDEST_SERVER:
            reason = f"PostgreSQL {version.major} is too old"
            raise StoreRefused(self._address.shown, reason, f"use {_OLDEST_SERVER} or later")

    async def close(self) -> None:
        self._closed = True
        idle, self._idle = self._idle, []
        for connection in idle:
            try:
                await connection.close(timeout=1)
            except ANY:
                connection.terminate()

    async def call(
        self, statement: str, *values: object, within: float = _ANSWER_WITHIN
    ) -> list[asyncpg.Record]:
        """One statement as one transaction. Raises the driver's error for bad data, else only ours."""

        async def ask(connection: asyncpg.Connection) -> list[asyncpg.Record]:
            if not self.pooled:
                return await connection.fetch(statement, *values, timeout=within)
            async with connection.transaction():
                await connection.execute(_BOUNDS)
                return await connection.fetch(statement, *values, timeout=within)

        return await self.use(ask, within)

    async def call_all(
        self,
        statement: str,
        calls: Sequence[Sequence[object]],
        unless: Callable[[Sequence[asyncpg.Record]], bool],
        within: float = _ANSWER_WITHIN,
    ) -> list[list[asyncpg.Record]]:
        """The same statement with each of these values, as one transaction.

        If `unless` says so of an answer, nothing is kept, and that answer is the last one.
        """
        if len(calls) == 1:
            return [await self.call(statement, *calls[0], within=within)]

        async def ask(connection: asyncpg.Connection) -> list[list[asyncpg.Record]]:
            answers: list[list[asyncpg.Record]] = []
            try:
                async with connection.transaction():
                    if self.pooled:
                        await connection.execute(_BOUNDS)
                    for values in calls:
                        answers.append(await connection.fetch(statement, *values, timeout=within))
                        if unless(answers[-1]):
                            raise _Undone
            except _Undone:
                return answers
            return answers

        return await self.use(ask, within)

    async def use(
        self,
        ask: Callable[[asyncpg.Connection], Awaitable[Answer]],
        within: float = _ANSWER_WITHIN,
    ) -> Answer:
        """Do something with a connection of one's own; a transaction that lost to another goes again."""
        for turn in range(1, _TRIES + 1):
            async with self._free:
                connection = await self._take(within)
                try:
                    answer = await ask(connection)
                except CONFLICTS as error:
                    self._give(connection)
                    if turn == _TRIES:
                        raise unavailability(self._address.shown, error) from error
                except LOST as error:
                    self._broke(connection)
                    raise unavailability(self._address.shown, error) from error
                except PostgresError as error:
                    self._give(connection)
                    if sqlstate_of(error)[:2] in {"22", "23", "54"}:
                        raise
                    raise unavailability(self._address.shown, error) from error
                except BaseException:
                    # Cancelled in the middle, or a value that cannot be sent: the driver knows if it can go on.
                    self._give(connection)
                    raise
                else:
                    self._give(connection)
                    return answer
        raise AssertionError("the last turn answers or raises")

    async def direct(self) -> asyncpg.Connection:
        """A connection to the address where hints are heard; the caller closes it."""
        try:
            return await self._connect(self._address.listen, _ANSWER_WITHIN, prepare=False)
        except (ValueError, *ANY) as error:
            raise unavailability(self._address.shown, error) from error

    async def _take(self, within: float) -> asyncpg.Connection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        now = asyncio.get_running_loop().time()
        if self._down is not None and now < self._down_until:
            raise unavailability(self._address.shown, self._down) from self._down
        try:
            connection = await self._connect(self._address.url, min(within, _ANSWER_WITHIN))
        except (ValueError, *ANY) as error:
            self._pause = min(_LONGEST_PAUSE, self._pause * 2 or _FIRST_PAUSE)
            self._down, self._down_until = error, now + self._pause
            raise unavailability(self._address.shown, error) from error
        self._down, self._pause = None, 0.0
        return connection

    def _give(self, connection: asyncpg.Connection) -> None:
        if self._closed or connection.is_closed() or connection.is_in_transaction():
            connection.terminate()
        else:
            self._idle.append(connection)

    def _broke(self, connection: asyncpg.Connection) -> None:
        """One is gone: the others most likely are too, and a new one finds out at once."""
        connection.terminate()
        idle, self._idle = self._idle, []
        for other in idle:
            other.terminate()

    async def _connect(
        self, url: str, within: float, *, prepare: bool = True
    ) -> asyncpg.Connection:
        # What is prepared by name would stay on the pooler's connection, and be in the way of the next client.
        # A pooler takes few settings at the login.
        named = prepare and not self.pooled
        options: dict[str, object] = {} if named else {"statement_cache_size": 0}
        settings = {"application_name": f"headway {self._address.schema}"}
        if named:
            settings |= _LIMITS
        async with asyncio.timeout(within):
            connection: asyncpg.Connection = await asyncpg.connect(
                url,
                timeout=within,
                max_cached_statement_lifetime=0,
                server_settings=settings,
                **options,
            )
            return connection


async def is_pooled(connection: asyncpg.Connection) -> bool:
    """A pooler gives a process number of its own making at the login."""
    # Inside a transaction, so that a pooler does not change servers between the steps of one statement.
    async with connection.transaction():
        pid = await connection.fetchval("select pg_backend_pid()")
    return bool(pid != connection.get_server_pid())
