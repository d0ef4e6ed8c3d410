"""The only place that puts concrete parts together."""

import asyncio
import hashlib
import os
import platform
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TypeAlias, TypeVar

from headway.config.secrets import without_password
from headway.core.request import inside
from headway.model.errors import InvalidInput, StoreRefused
from headway.model.run import AgentName
from headway.model.runner import ChatSpec, CommandSpec, HttpSpec, PaneSpec, RunnerSpec, TabsSpec
from headway.model.settings import CallbackSettings, Settings
from headway.ports import Clock, Store
from headway.runners.command import CommandRunner, run_gate
from headway.runners.function import AgentFunction, FunctionRunner
from headway.runners.home import WorkerHome
from headway.runners.work import Environment
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
    store = open_store(url, settings, clock)
    return Engine(settings, store, clock, name or node_name(), host=host_name())


def host_name() -> str:
    """The machine that this process runs on, by which it finds workers that outlived another one (W-2).

    Where the name changes with each start, as that of many containers does, `HEADWAY_MACHINE` says it.
    """
    return os.environ.get("HEADWAY_MACHINE") or platform.node()


def node_name() -> str:
    """What a node is called unless it is given a name: where it runs, and as which process."""
    return f"{platform.node()}:{os.getpid()}"


def build_runner(function: AgentFunction) -> Runner:
    if not callable(function):
        raise InvalidInput("function", function, "a function that takes a Turn")
    return FunctionRunner(function)


def build_command_runner(spec: CommandSpec, agent: AgentName, store: str) -> Runner:
    """What a store that lives in this process forgets cannot be found again: then nothing outlives it."""
    outlives = store != MEMORY
    home = WorkerHome(_state_folder() / "workers" / store_digest(store))
    return CommandRunner(
        spec,
        home if outlives else WorkerHome.temporary(),
        agent,
        host=host_name(),
        outlives=outlives,
    )


def _state_folder() -> Path:
    if said := os.environ.get("HEADWAY_STATE"):
        return Path(said)
    import platformdirs  # noqa: PLC0415 - slow to import, and few programs run commands

    return platformdirs.user_state_path("headway", appauthor=False)


def build_spec_runner(
    spec: RunnerSpec, agent: AgentName, store: str, resolver: Resolver | None = None
) -> Runner:
    """The runner of an agent that is no function. Workers of one machine are told apart by their store."""
    match spec:
        case CommandSpec():
            return build_command_runner(spec, agent, store)
        case PaneSpec():
            from headway.runners.tmux import PaneRunner  # noqa: PLC0415 - an optional part

            outlives = store != MEMORY
            return PaneRunner(spec, agent, store_digest(store), _state_folder(), outlives=outlives)
        case HttpSpec():
            from headway.runners.http import HttpRunner  # noqa: PLC0415 - an optional part

            return HttpRunner(spec)
        case TabsSpec():
            from headway.runners.tabs import TabsRunner  # noqa: PLC0415 - an optional part

            return TabsRunner(spec, resolver)
        case ChatSpec():
            from headway.runners.chat import ChatRunner  # noqa: PLC0415 - an optional part

            return ChatRunner(spec)


def check_runner(spec: RunnerSpec, agent: AgentName) -> None:
    """Whether such a runner could be made here: its variables are set, its addresses can be read."""
    try:
        if isinstance(spec, CommandSpec | PaneSpec):
            Environment(spec.environment)
        else:
            build_spec_runner(spec, agent, MEMORY)
    except InvalidInput as wrong:
        raise inside(wrong, f"agents.{agent}") from None


def store_digest(url: str) -> str:
    """A short name for a store, the same for all processes of a machine that use it.

    A file may be named from any folder, and a password may change.
    """
    scheme, _, rest = url.partition("://")
    named = f"sqlite:///{Path(rest[1:]).resolve()}" if scheme == "sqlite" else without_password(url)
    return hashlib.sha256(named.encode()).hexdigest()[:12]


gate_command = run_gate


def give_callbacks(engine: Engine, settings: CallbackSettings) -> None:
    """Let an engine take callbacks and deliver them, if there is a secret to sign them with (T-4)."""
    if not settings.secret:
        engine.set_callbacks(None, None)
        return
    from headway.channels.callback import CallbackChannel  # noqa: PLC0415 - most need none

    channel = CallbackChannel(settings)
    engine.set_callbacks(channel, channel.check)


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
