"""The base of all frozen values."""

from typing import Self

import msgspec


class Value(msgspec.Struct, frozen=True, gc=False):
    """An immutable value: equal by content, safe to share, so copying it returns it.

    Values hold only values, so they never form a circle and the garbage collector need not look at them.
    """

    def __deepcopy__(self, memo: object) -> Self:
        return self
