"""Whoever traces attempts stands around each call of a runner, in the attempt's own context (O-3)."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import pytest

from headway import RunFailed, Turn
from headway.testing import virtual_time
from tests.unit.runtime.worlds import Recorder, with_agents

span: ContextVar[str] = ContextVar("span", default="none")


@virtual_time
async def test_o3_the_context_is_current_in_the_agents_code_and_sees_how_it_ends() -> None:
    seen: list[tuple[str, str]] = []

    @contextlib.contextmanager
    def around(turn: Turn) -> Iterator[None]:
        token = span.set(turn.text)
        seen.append(("in", span.get()))
        try:
            yield
        except ValueError:
            seen.append(("failed", turn.text))
            raise
        finally:
            span.reset(token)
            seen.append(("out", span.get()))

    hw = with_agents(Recorder())

    @hw.agent("async")
    async def asks(turn: Turn) -> str:
        return span.get()

    @hw.agent("plain")
    def plain(turn: Turn) -> str:
        return span.get()

    @hw.agent("fails")
    async def fails(turn: Turn) -> str:
        raise ValueError(span.get())

    async with hw:
        assert await hw.send("async", "before") == "none"
        hw.engine.attempts.around = around
        assert await hw.send("async", "one") == "one"
        assert await hw.send("plain", "two") == "two"
        with pytest.raises(RunFailed, match="three"):
            await hw.send("fails", "three")
    assert seen == [
        ("in", "one"),
        ("out", "none"),
        ("in", "two"),
        ("out", "none"),
        ("in", "three"),
        ("failed", "three"),
        ("out", "none"),
    ]
