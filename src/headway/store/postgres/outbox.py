"""What is to be said on channels until it was, and where agents were last written to."""

from collections.abc import Mapping, Sequence

import asyncpg
import msgspec

from headway.model.places import Delivery
from headway.model.run import AgentName, Route
from headway.model.time import Instant
from headway.ports import Hint, LetterPage, LetterQuery
from headway.store.codec import (
    decode_delivery,
    decode_route,
    decode_text,
    encode_route,
    encode_text,
    letter_cursor,
    read_letter_cursor,
)
from headway.store.postgres.connections import Connections
from headway.store.postgres.hints import Hints
from headway.store.postgres.statements import statements
from headway.store.postgres.troubles import BAD_DATA

_WHICH = {True: "o.dead", False: "not o.dead", None: "true"}


class PostgresOutbox:
    """The part of the store that keeps deliveries."""

    def __init__(self, connections: Connections, schema: str, hints: Hints) -> None:
        self._connections = connections
        self._hints = hints
        self._sql = statements(schema)

    async def take(
        self, channels: Sequence[str], most: int, now: Instant, until: Instant
    ) -> Sequence[Delivery]:
        values = (list(channels), most, now, until)
        rows = await self._connections.call(self._sql["take_deliveries"], *values)
        return [_delivery(row) for row in rows]

    async def settle(self, delivery: Delivery, again_at: Instant | None, error: str) -> None:
        tries = delivery.tries + 1
        if again_at is not None:
            again = (delivery.id, again_at, _written(error), tries)
            await self._connections.call(self._sql["deliver_again"], *again)
        elif error:
            dead = (delivery.id, _written(error), tries)
            await self._connections.call(self._sql["dead_letter"], *dead)
        else:
            await self._connections.call(self._sql["delivered"], delivery.id)

    async def letters(self, query: LetterQuery) -> LetterPage:
        values: list[object] = [query.limit + 1]
        wanted = [_WHICH[query.dead]]
        if query.cursor is not None:
            values += read_letter_cursor(query.cursor)
            wanted.append("(o.first_at, o.id) > ($2, $3)")
        if query.channel is not None:
            values.append(query.channel)
            wanted.append(f"o.channel = ${len(values)}")
        statement = (
            f"{self._sql['letter']} where {' and '.join(wanted)} order by o.first_at, o.id limit $1"
        )
        try:
            rows = await self._connections.call(statement, *values)
        except BAD_DATA:
            return LetterPage(())
        cursor = None
        if len(rows) > query.limit:
            last = rows[query.limit - 1]
            cursor = letter_cursor(last["first_at"], last["id"])
        return LetterPage(tuple(map(_letter, rows[: query.limit])), cursor)

    async def retry(self, delivery_id: str, now: Instant) -> bool:
        try:
            rows = await self._connections.call(self._sql["retry_letter"], delivery_id, now)
        except BAD_DATA:
            return False
        if rows:
            self._hints.tell_all(Hint.ENDED)
            self._hints.tell(self._hints.node, Hint.ENDED)
        return bool(rows)

    async def count(self) -> tuple[int, int]:
        """How many wait, and how many were given up."""
        rows = await self._connections.call(self._sql["count_letters"])
        return rows[0]["waiting"], rows[0]["dead"]

    async def note_routes(self, routes: Mapping[AgentName, Route], at: Instant) -> None:
        if routes:
            texts = [encode_route(route) for route in routes.values()]
            await self._connections.call(self._sql["note_routes"], list(routes), texts, at)

    async def last_route(self, agent: AgentName) -> Route | None:
        try:
            rows = await self._connections.call(self._sql["last_route"], agent)
        except BAD_DATA:
            return None
        return decode_route(rows[0]["route"]) if rows else None


def _delivery(row: asyncpg.Record) -> Delivery:
    """A delivery as it was written, as often as it was tried since."""
    return msgspec.structs.replace(
        decode_delivery(row["body"]), tries=row["tries"], first_at=row["first_at"]
    )


def _letter(row: asyncpg.Record) -> Delivery:
    """The same, with why it failed and when it is tried next."""
    error = row["error"]
    return msgspec.structs.replace(
        _delivery(row), error=decode_text(error) if error else "", due_at=row["due_at"]
    )


def _written(error: str) -> str:
    """As JSON: an error may hold what no column takes, such as a NUL."""
    return encode_text(error) if error else ""
