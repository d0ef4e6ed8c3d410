"""The base of the kernel's mutable records."""

from copy import copy, deepcopy
from typing import Self

import msgspec


class Moving(msgspec.Struct, eq=False):
    """A record that changes in place and is known by identity: small, and quick to make.

    A whole kernel can be copied, to try out what would happen next; records point at each other in circles, so
    the copy is announced before its fields are copied.
    """

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        twin = copy(self)
        memo[id(self)] = twin
        for name in self.__struct_fields__:
            setattr(twin, name, deepcopy(getattr(self, name), memo))
        return twin
