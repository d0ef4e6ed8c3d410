"""Asks a server or, where a store is named instead, reads that: one answer, shown in the same way."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from headway.cli.exits import errors_told
from headway.cli.options import place_of

if TYPE_CHECKING:
    from headway.client import Client
    from headway.ports import Store

Said = TypeVar("Said")


def look_in_either(
    where: tuple[str | None, str | None, str | None],
    question: "Callable[[Client], Awaitable[Said]]",
    reading: "Callable[[Store], Awaitable[Said]]",
    lines: Callable[[Said], str],
    *,
    json: bool,
    watch: bool = False,
) -> Said | None:
    """Show the answer of a server, or what its store would let it answer. `where`: server, token, store."""
    from headway.cli.answers import show
    from headway.cli.asking import look
    from headway.wiring import run

    server, token, store = where
    with errors_told():
        place = place_of(server, token, store)
        if place.store is None:
            return look(server, token, question, lines, json=json, watch=watch)
        if watch:
            from headway.model.errors import InvalidInput

            raise InvalidInput("--watch", place.store, "left out: only a server can be watched")
        found = run(_read(place.store, reading))
    show(found, lines, json=json)
    return found


async def _read(url: str, question: "Callable[[Store], Awaitable[Said]]") -> Said:
    from headway.cli.opening import reading

    async with reading(url) as store:
        return await question(store)
