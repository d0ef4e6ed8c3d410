"""Pages of what is listed by name: the cursor is the last name of the page before."""

from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")


def page_of(
    items: Iterable[Item], name: Callable[[Item], str], limit: int, cursor: str | None
) -> tuple[tuple[Item, ...], str | None]:
    """One page in the order of names, and the cursor of the next one.

    What comes and goes meanwhile moves nothing else.
    """
    rest = sorted(
        (item for item in items if cursor is None or name(item) > cursor),
        key=name,
    )
    page = tuple(rest[:limit])
    return page, name(page[-1]) if len(rest) > limit else None
