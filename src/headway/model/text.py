"""Text as everything can hold it: files, databases and wires take UTF-8, and Python's text may be more."""

import re

_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


def whole(text: str) -> str:
    """The text with a mark in place of each half of a surrogate pair: an agent may say one, UTF-8 has none."""
    return text if text.isascii() else _HALF_CHARACTER.sub("\ufffd", text)


def is_whole(text: str) -> bool:
    """Whether it can be kept as it is: no half of a surrogate pair, and no NUL, which PostgreSQL does not take."""
    return "\0" not in text and (text.isascii() or _HALF_CHARACTER.search(text) is None)
