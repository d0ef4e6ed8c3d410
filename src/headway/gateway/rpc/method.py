"""A method: its name, what it takes and answers, and what it does."""

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar, get_type_hints

import msgspec

from headway.gateway.access.caller import Caller
from headway.gateway.binding import read_json
from headway.gateway.operations import Operation
from headway.model.errors import InvalidInput
from headway.model.words import Scope
from headway.wire.base import Request
from headway.wire.errors import BODY, Malformed

if TYPE_CHECKING:
    from headway.gateway.rpc.connection import Connection

Params = TypeVar("Params", bound=Request)
Asked = TypeVar("Asked", bound=Request)
Result = TypeVar("Result", bound=msgspec.Struct)
Work: TypeAlias = "Callable[[Connection, Caller, Params], Awaitable[Result]]"


class Method(Generic[Params, Result]):
    """What can be called."""

    __slots__ = ("_decode", "_work", "doc", "name", "params", "result", "scope")

    def __init__(
        self,
        name: str,
        work: "Work[Params, Result]",
        *,
        params: type[Params],
        result: type[Result],
        scope: Scope | None,
        doc: str,
    ) -> None:
        self.name = name
        self.params = params
        self.result = result
        self.scope = scope
        """None: for everybody who may connect."""
        self.doc = doc
        self._work = work
        self._decode = msgspec.json.Decoder(params).decode

    async def call(self, connection: "Connection", caller: Caller, params: bytes) -> Result:
        """Raises what the operation raises, and `InvalidInput` for parameters that it does not take."""
        if self.scope is not None:
            caller.need(self.scope)
        return await self._work(connection, caller, self._read(params))

    def _read(self, params: bytes) -> Params:
        try:
            return read_json(params, self.params, self._decode)
        except InvalidInput as wrong:
            if wrong.field != BODY:
                raise
            # What is the body of a request is a part of a frame.
            kind = Malformed if isinstance(wrong, Malformed) else InvalidInput
            raise kind("params", wrong.value, wrong.allowed) from None


def method(
    name: str, scope: Scope | None
) -> "Callable[[Work[Params, Result]], Method[Params, Result]]":
    """Make a method of a function `(connection, caller, params)`; its docstring is what the documents say."""

    def make(work: "Work[Params, Result]") -> Method[Params, Result]:
        hints = get_type_hints(work, include_extras=True)
        return Method(
            name,
            work,
            params=hints["params"],
            result=hints["return"],
            scope=scope,
            doc=inspect.getdoc(work) or "",
        )

    return make


def of_operation(name: str, operation: Operation[Params, Result]) -> Method[Params, Result]:
    """An operation, and nothing more."""

    async def ask(connection: "Connection", caller: Caller, params: Params) -> Result:
        return await operation(connection.desk, caller, params)

    return Method(
        name,
        ask,
        params=operation.asked,
        result=operation.answer,
        scope=operation.scope,
        doc=operation.doc,
    )


def adapted(
    name: str,
    params: type[Params],
    operation: Operation[Asked, Result],
    asked: Callable[[Params], Asked],
) -> Method[Params, Result]:
    """An operation that is asked in another form here."""

    async def ask(connection: "Connection", caller: Caller, given: Params) -> Result:
        return await operation(connection.desk, caller, asked(given))

    return Method(
        name,
        ask,
        params=params,
        result=operation.answer,
        scope=operation.scope,
        doc=operation.doc,
    )
