"""The only place that puts concrete parts together."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

from headway.model.errors import InvalidInput
from headway.model.settings import Settings
from headway.ports import Clock, Store
from headway.runners.function import AgentFunction, FunctionRunner
from headway.runtime.clock import clock_for
from headway.runtime.engine import Engine
from headway.store.memory import MemoryStore
from headway.turn import Runner

Result = TypeVar("Result")

MEMORY = "memory://"


def check_store(url: str) -> str:
    """The store's address, if there is such a store."""
    if url != MEMORY:
        raise InvalidInput("store", url, f"{MEMORY!r}: this version keeps everything in memory")
    return url


def build_engine(url: str, settings: Settings, clock: Clock | None = None) -> Engine:
    """An engine for the running loop, with the store that the address names."""
    if clock is None:
        clock = clock_for(asyncio.get_running_loop())
    return Engine(settings, _store(url, settings, clock), clock)


def build_runner(function: AgentFunction) -> Runner:
    if not callable(function):
        raise InvalidInput("function", function, "a function that takes a Turn")
    return FunctionRunner(function)


def run(main: Coroutine[object, object, Result]) -> Result:
    """Run a program on uvloop where that is installed, else on asyncio's own loop."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


def _store(url: str, settings: Settings, clock: Clock) -> Store:
    check_store(url)
    return MemoryStore(settings, clock)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - optional: taken where it is installed
    except ImportError:
        return None
    return uvloop.new_event_loop
