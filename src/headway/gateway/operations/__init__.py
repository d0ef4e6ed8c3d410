"""What can be asked of a server, once, for HTTP and RPC alike.

An operation takes the desk, the caller and one struct, and answers one struct. It checks what the caller may see,
translates and asks the façade. It knows nothing of paths, statuses and frames: errors are raised.
"""

import inspect
from collections.abc import Callable, Coroutine
from typing import Generic, TypeAlias, TypeVar, get_type_hints

from headway.gateway.access.caller import Caller
from headway.gateway.desk import Desk
from headway.model.words import Scope

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")
Work: TypeAlias = Callable[[Desk, Caller, Asked], Coroutine[object, object, Answered]]


class Operation(Generic[Asked, Answered]):
    """A function with what is known about it: called like the function, once its caller has the scope."""

    __slots__ = ("answer", "asked", "doc", "name", "scope", "work")

    def __init__(self, scope: Scope | None, work: Work[Asked, Answered]) -> None:
        hints = get_type_hints(work, include_extras=True)
        self.scope = scope
        """None: for everybody, also without a token."""
        self.work = work
        self.name: str = work.__name__
        self.asked: type[Asked] = hints["asked"]
        self.answer: type[Answered] = hints["return"]
        self.doc = inspect.getdoc(work) or ""

    def __call__(
        self, desk: Desk, caller: Caller, asked: Asked
    ) -> Coroutine[object, object, Answered]:
        if self.scope is not None:
            caller.need(self.scope)
        return self.work(desk, caller, asked)


def operation(
    scope: Scope | None,
) -> Callable[[Work[Asked, Answered]], Operation[Asked, Answered]]:
    """Make an operation of a function `(desk, caller, asked)`; its docstring is what the documents say."""

    def make(work: Work[Asked, Answered]) -> Operation[Asked, Answered]:
        return Operation(scope, work)

    return make
