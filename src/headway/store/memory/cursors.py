"""Where a page goes on that was cut by number."""

from headway.model.errors import InvalidInput

_LONGEST_NUMBER = 18


def position(cursor: str) -> int:
    """The number of what a page goes on with."""
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= _LONGEST_NUMBER):
        raise InvalidInput("cursor", cursor, "the cursor of an earlier page")
    return int(cursor)
