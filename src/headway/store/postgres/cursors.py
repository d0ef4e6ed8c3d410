"""Cursors that are numbers: the line or run that a page goes on with."""

from headway.core.alarms import NEVER
from headway.model.errors import InvalidInput

_LONGEST_NUMBER = 18


def position(cursor: str | None) -> int:
    if cursor is None:
        return NEVER
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= _LONGEST_NUMBER):
        raise InvalidInput("cursor", cursor, "the cursor of an earlier page")
    return int(cursor)
