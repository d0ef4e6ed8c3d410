"""The only place that puts concrete parts together."""

import asyncio
import hashlib
import os
import platform
from collections.abc import Callable, Coroutine
from typing import TypeAlias, TypeVar

from headway.config.secrets import without_password
from headway.model.errors import InvalidInput, StoreRefused
from headway.model.run import AgentName
from headway.model.runner import ChatSpec, CommandSpec, HttpSpec, PaneSpec, RunnerSpec, TabsSpec
from headway.model.settings import Settings
from headway.ports import Clock, Store
from headway.runners.command import CommandRunner, run_gate
from headway.runners.function import AgentFunction, FunctionRunner
from headway.runtime.clock import SystemClock, clock_for
from headway.runtime.engine import Engine
from headway.store.memory import MemoryStore
from headway.turn import Runner

Result = TypeVar("Result")

Resolver: TypeAlias = Callable[[str], object]
"""Says which address owns a tab, at once or as an awaitable; None: nobody does."""

MEMORY = "memory://"
_DEFAULTS = Settings()
_POSTGRES = frozenset({"postgresql", "postgres"})
_ADDRESSES = (
    "memory://, sqlite:///file.db (sqlite:////absolute/file.db), or postgresql://user@host/database"
)


def check_store(url: str, field: str = "store") -> str:
    """The store's address, if there can be such a store."""
    if isinstance(url, str):
        if url == MEMORY:
            return url
        scheme, _, rest = url.partition("://")
        if scheme == "sqlite" and len(rest) > 1 and rest.startswith("/"):
            return url
        if scheme in _POSTGRES and rest:
            return url
    raise InvalidInput(field, without_password(str(url)), _ADDRESSES)


def open_store(url: str, settings: Settings = _DEFAULTS, clock: Clock | None = None) -> Store:
    """The store that the address names, not opened yet."""
    check_store(url)
    clock = SystemClock() if clock is None else clock
    if url == MEMORY:
        return MemoryStore(settings, clock)
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite":
        from headway.store.sqlite import SqliteStore  # noqa: PLC0415 - a memory store needs no database

        return SqliteStore(rest[1:], settings, clock)
    try:
        from headway.store.postgres import PostgresStore  # noqa: PLC0415 - an optional part
    except ImportError as missing:
        if missing.name != "asyncpg":
            raise
        raise StoreRefused(
            without_password(str(url)),
            "asyncpg is not installed",
            "pip install 'headway[postgres]'",
        ) from None
    return PostgresStore(url, settings, clock)


def build_engine(
    url: str, settings: Settings, clock: Clock | None = None, name: str | None = None
) -> Engine:
    """An engine for the running loop, with the store that the address names."""
    if clock is None:
        clock = clock_for(asyncio.get_running_loop())
    return Engine(settings, open_store(url, settings, clock), clock, name or node_name())


def node_name() -> str:
    """What a node is called unless it is given a name: where it runs, and as which process."""
    return f"{platform.node()}:{os.getpid()}"


def build_runner(function: AgentFunction) -> Runner:
    if not callable(function):
        raise InvalidInput("function", function, "a function that takes a Turn")
    return FunctionRunner(function)


def build_command_runner() -> Runner:
    return CommandRunner()


def build_spec_runner(
    spec: RunnerSpec, agent: AgentName, store: str, resolver: Resolver | None = None
) -> Runner:
    """The runner of an agent that is no function. Workers of one machine are told apart by their store."""
    match spec:
        case CommandSpec():
            return build_command_runner()
        case PaneSpec():
            from headway.runners.tmux import PaneRunner  # noqa: PLC0415 - an optional part

            return PaneRunner(spec, agent, store_digest(store))
        case HttpSpec():
            from headway.runners.http import HttpRunner  # noqa: PLC0415 - an optional part

            return HttpRunner(spec)
        case TabsSpec():
            from headway.runners.tabs import TabsRunner  # noqa: PLC0415 - an optional part

            return TabsRunner(spec, resolver)
        case ChatSpec():
            from headway.runners.chat import ChatRunner  # noqa: PLC0415 - an optional part

            return ChatRunner(spec)


def store_digest(url: str) -> str:
    """A short name for a store, the same for all processes that use it; not even its password is told by it."""
    return hashlib.sha256(without_password(url).encode()).hexdigest()[:12]


gate_command = run_gate


def run(main: Coroutine[object, object, Result]) -> Result:
    """Run a program on uvloop where that is installed, else on asyncio's own loop."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - optional: taken where it is installed
    except ImportError:
        return None
    return uvloop.new_event_loop
