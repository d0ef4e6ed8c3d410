"""What is kept for a while: deliveries until they were made, ended runs until their retention is over."""

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from headway.model.places import Delivery
from headway.model.run import AgentName, Route
from headway.model.settings import Settings
from headway.model.time import DAY, Instant
from headway.ports import Hint, LetterPage, LetterQuery
from headway.store.codec import (
    UNTAKEN,
    decode_delivery,
    decode_route,
    encode_delivery,
    encode_route,
    letter_cursor,
    read_letter_cursor,
    said_key,
)
from headway.store.sqlite import workers
from headway.store.sqlite.database import Database
from headway.store.sqlite.node import Node

_BEFORE_ALL = -(1 << 63)


def keep_delivery(database: Database, node: Node, delivery: Delivery) -> None:
    """Put it in the outbox, unless the same was said and is still remembered (H-2)."""
    at = delivery.first_at
    if delivery.once:
        key = said_key(delivery.once)
        if not database.run("say_once", key, delivery.run_id, delivery.once_until, at):
            return
    body = encode_delivery(delivery)
    database.run("deliver", delivery.id, delivery.route.channel, at, at, delivery.tries, body)
    node.hint_all(Hint.ENDED)


def take_deliveries(
    database: Database, channels: Sequence[str], most: int, now: Instant, until: Instant
) -> list[Delivery]:
    """The oldest that are due; nobody else gets them before `until`."""
    names = msgspec.json.encode(list(channels)).decode()
    taken: list[Delivery] = []
    for delivery_id, tries, first_at, body in database.rows("due_deliveries", names, now, most):
        database.run("defer_delivery", until, delivery_id)
        delivery = decode_delivery(cast(str, body))
        taken.append(msgspec.structs.replace(delivery, tries=tries, first_at=first_at))
    return taken


def settle_delivery(
    database: Database, delivery: Delivery, again_at: Instant | None, error: str
) -> None:
    tries = delivery.tries + 1
    # Whatever a channel says: half of a surrogate pair in it must not keep the letter from being settled.
    error = error.encode(errors="backslashreplace").decode()
    if again_at is not None:
        database.run("retry_delivery", again_at, tries, error, delivery.id)
    elif error:
        database.run("dead_letter", tries, error, delivery.id)
    else:
        database.run("delivered", delivery.id)


def letters(database: Database, query: LetterQuery) -> LetterPage:
    """The oldest first; a page goes on after the last one of the page before."""
    after = (_BEFORE_ALL, "") if query.cursor is None else read_letter_cursor(query.cursor)
    which = (*after, query.channel, query.limit + 1)
    if query.dead is None:
        found = database.rows("all_letters", *which)
    else:
        found = database.rows("letters", int(query.dead), *which)
    rows = cast(list[tuple[int, str, int, str, int | None, str]], found)
    page = rows[: query.limit]
    said = tuple(
        msgspec.structs.replace(
            decode_delivery(body), tries=tries, first_at=first_at, error=error, due_at=due_at
        )
        for first_at, _, tries, error, due_at, body in page
    )
    more = len(rows) > query.limit and page
    return LetterPage(said, letter_cursor(*page[-1][:2]) if more else None)


def retry_letter(database: Database, node: Node, delivery_id: str, now: Instant) -> bool:
    """A dead letter is due now, as if it were new."""
    if not database.run("retry_letter", delivery_id, now):
        return False
    node.hint_all(Hint.ENDED)
    node.hint_me(Hint.ENDED)
    return True


def count_letters(database: Database) -> tuple[int, int]:
    """How many wait, and how many were given up."""
    row = database.row("count_letters")
    assert row is not None
    return cast(tuple[int, int], row)


def note_routes(database: Database, routes: Mapping[AgentName, Route], at: Instant) -> None:
    database.write("note_routes", [(agent, encode_route(to), at) for agent, to in routes.items()])


def last_route(database: Database, agent: AgentName) -> Route | None:
    row = database.row("last_route", agent)
    return None if row is None else decode_route(cast(str, row[0]))


def prune(database: Database, settings: Settings, most: int, now: Instant) -> int:
    """Forget the oldest that are past their retention, but for those that a key still leads to."""
    forgotten = 0
    database.run("forget_keys", now, 10 * most)
    for task, retention in ((1, settings.task_retention), (0, settings.retention)):
        rows = database.rows("past_retention", task, now - retention, now, most - forgotten)
        for (number,) in rows:
            database.run("forget_attempts", number)
            database.run("forget_run", number)
        forgotten += len(rows)
    database.run("forget_firings", now - settings.retention, 10 * most)
    database.run("forget_orders", now - settings.retention, most)
    database.run("give_up_letters", UNTAKEN, now - 2 * DAY)
    database.run("forget_dead_letters", now - settings.retention)
    database.run("forget_nodes", now - settings.retention)
    database.run("forget_events", now - settings.retention, most)
    # Who asks goes on at once while as much was forgotten as he allowed.
    return most if workers.prune(database, settings, most, now) else forgotten
