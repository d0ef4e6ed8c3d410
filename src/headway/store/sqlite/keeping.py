"""What is kept for a while: deliveries until they were made, ended runs until their retention is over."""

from collections.abc import Sequence
from typing import cast

import msgspec

from headway.model.places import Delivery
from headway.model.settings import Settings
from headway.model.time import Instant
from headway.store.codec import decode_delivery
from headway.store.sqlite.database import Database


def take_deliveries(
    database: Database, channels: Sequence[str], most: int, now: Instant, until: Instant
) -> list[Delivery]:
    """The oldest that are due; nobody else gets them before `until`."""
    names = msgspec.json.encode(list(channels)).decode()
    taken: list[Delivery] = []
    for delivery_id, tries, body in database.rows("due_deliveries", names, now, most):
        database.run("defer_delivery", until, delivery_id)
        delivery = decode_delivery(cast(str, body))
        taken.append(msgspec.structs.replace(delivery, tries=cast(int, tries)))
    return taken


def settle_delivery(
    database: Database, delivery: Delivery, again_at: Instant | None, error: str
) -> None:
    tries = delivery.tries + 1
    if again_at is not None:
        database.run("retry_delivery", again_at, tries, error, delivery.id)
    elif error:
        database.run("dead_letter", tries, error, delivery.id)
    else:
        database.run("delivered", delivery.id)


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
    database.run("forget_orders", now - settings.retention, most)
    database.run("forget_dead_letters", now - settings.retention)
    database.run("forget_nodes", now - settings.retention)
    database.run("forget_events", now - settings.retention, most)
    return forgotten
