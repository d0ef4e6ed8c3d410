"""A part of the day."""

from typing import Annotated

from msgspec import Meta

from headway.model.value import Value


class ActiveHours(Value, frozen=True):
    """The part of the day in which an agent may be woken, on the wall clock of a zone."""

    start: Annotated[int, Meta(ge=0, le=1439)]
    """Minutes after midnight; the first minute that belongs to it."""
    end: Annotated[int, Meta(ge=0, le=1440)]
    """Minutes after midnight; the first minute that does not. Before `start`: over midnight."""
    zone: str = "UTC"
