"""The base of all frozen values."""

from typing import Self

import msgspec


class Value(msgspec.Struct, frozen=True):
    """An immutable value: equal by content, safe to share, so copying it returns it."""

    def __deepcopy__(self, memo: object) -> Self:
        return self
