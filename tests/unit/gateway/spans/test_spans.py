"""Spans of runs: one for each, attempts below it, the caller's trace goes on (O-3)."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from headway import Headway, Turn
from headway.gateway.spans import open_spans, recorder
from headway.gateway.spans.recorder import Recorder
from headway.model.events import SessionsLost
from headway.model.run import RunId
from headway.testing import virtual_time
from tests.unit.gateway.calling import served

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Traced:
    """A provider of the program's own, and what it was told."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("test")

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self.exporter.get_finished_spans()

    def one(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.spans if span.name == name]
        return found


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Traced:
    set_up = Traced()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: set_up.provider)
    return set_up


@contextmanager
def recording(hw: Headway, traced: Traced) -> Iterator[Recorder]:
    told = Recorder(hw, traced.tracer)
    end = told.open()
    try:
        yield told
    finally:
        end()


_SERVE_NOBODY = """
import asyncio, sys
from headway import Headway
from headway.gateway import build_app

async def main():
    hw = Headway()
    async with hw, build_app(hw):
        print([name for name in sys.modules if name.startswith("opentelemetry.trace")])

asyncio.run(main())
"""


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


def headway(traced: Traced) -> Headway:
    hw = Headway()

    @hw.agent("worker")
    async def worker(turn: Turn) -> str:
        with traced.tracer.start_as_current_span("own work"):
            return "done"

    @hw.agent("thread")
    def thread(turn: Turn) -> str:
        with traced.tracer.start_as_current_span("work in a thread"):
            return "done"

    @hw.agent("wrong", retries=0)
    async def wrong(turn: Turn) -> str:
        raise ValueError("no such page")

    @hw.agent("plain")
    async def plain(turn: Turn) -> str:
        return "done"

    @hw.agent("leader")
    async def leader(turn: Turn) -> str:
        return await turn.delegate("worker", "go")

    @hw.agent("slow")
    async def slow(turn: Turn) -> str:
        await asyncio.Event().wait()
        return ""

    return hw


def test_o3_a_run_over_http_goes_on_with_the_callers_trace(traced: Traced) -> None:
    async def scenario() -> str:
        hw = headway(traced)
        async with served(hw) as http:
            task = {"agentId": "worker", "action": "click"}
            answer = await http.post("/tasks", json=task, headers={"traceparent": CALLER})
            assert answer.status_code == 202
            task_id: str = answer.json()["taskId"]
            await (await hw.engine.handle_of(task_id)).wait()  # type: ignore[arg-type]
        return task_id

    task_id = asyncio.run(scenario())
    run, attempt, own = traced.one("run worker"), traced.one("attempt 1"), traced.one("own work")
    assert parent_of(run) == 0xB7AD6B7169203331
    assert parent_of(attempt) == id_of(run)
    assert parent_of(own) == id_of(attempt)
    assert {span.context.trace_id for span in (run, attempt, own) if span.context} == {
        0x0AF7651916CD43DD8448EB211C80319C
    }
    assert run.kind is SpanKind.CONSUMER
    assert run.attributes is not None
    assert dict(run.attributes) == {
        "headway.run.id": task_id,
        "headway.agent": "worker",
        "headway.session": f"run:{task_id}",
        "headway.lane": "main",
        "headway.source": "task",
        "headway.priority": 0,
        "headway.task.action": "click",
        "headway.state": "done",
    }
    assert run.status.status_code is StatusCode.UNSET


def test_o3_the_span_is_current_in_agents_that_run_in_threads(traced: Traced) -> None:
    async def scenario() -> None:
        hw = headway(traced)
        async with hw:
            with recording(hw, traced):
                await hw.send("thread", "x")

    asyncio.run(scenario())
    assert parent_of(traced.one("work in a thread")) == id_of(traced.one("attempt 1"))


@virtual_time
async def test_o3_a_run_without_a_caller_begins_a_trace() -> None:
    traced = Traced()
    hw = headway(traced)
    async with hw:
        with recording(hw, traced), traced.tracer.start_as_current_span("somebody else"):
            await hw.send("worker", "x")
    run = traced.one("run worker")
    assert run.parent is None


@virtual_time
async def test_o3_a_malformed_parent_counts_as_none() -> None:
    traced = Traced()
    hw = headway(traced)
    async with hw:
        with recording(hw, traced):
            await (await hw.submit("worker", "x", traceparent="nonsense")).wait()
    assert traced.one("run worker").parent is None


@virtual_time
async def test_o3_what_a_turn_starts_is_below_its_attempt() -> None:
    traced = Traced()
    hw = headway(traced)
    async with hw:
        with recording(hw, traced):
            await (await hw.submit("leader", "x", traceparent=CALLER)).wait()
    attempts = {id_of(span): span for span in traced.spans if span.name == "attempt 1"}
    above = attempts[parent_of(traced.one("run worker")) or 0]
    assert parent_of(above) == id_of(traced.one("run leader"))


@virtual_time
async def test_r3_a_failure_is_an_error_of_run_and_attempt() -> None:
    traced = Traced()
    hw = headway(traced)
    async with hw:
        with recording(hw, traced):
            await (await hw.submit("wrong", "x")).wait()
    run, attempt = traced.one("run wrong"), traced.one("attempt 1")
    assert run.status.status_code is StatusCode.ERROR
    assert "no such page" in (run.status.description or "")
    assert run.attributes is not None
    assert run.attributes["headway.reason"] == "error"
    assert attempt.status.status_code is StatusCode.ERROR
    assert [event.name for event in attempt.events] == ["exception"]


@virtual_time
async def test_s9_a_run_that_was_stopped_tells_so_and_is_no_error() -> None:
    traced = Traced()
    hw = headway(traced)
    async with hw:
        with recording(hw, traced):
            handle = await hw.submit("slow", "x", session="s")
            await asyncio.sleep(0.1)
            await hw.stop("s")
            await handle.wait()
    run, attempt = traced.one("run slow"), traced.one("attempt 1")
    assert run.attributes is not None
    assert (run.attributes["headway.state"], run.attributes["headway.reason"]) == (
        "cancelled",
        "stopped",
    )
    assert run.status.status_code is StatusCode.UNSET
    assert attempt.attributes is not None
    assert attempt.attributes["headway.cut"] == "stopped"


@virtual_time
async def test_o3_what_still_runs_when_the_gateway_closes_is_told_and_not_kept() -> None:
    traced = Traced()
    hw = headway(traced)
    async with hw:
        with recording(hw, traced) as told:
            await hw.submit("slow", "x")
            await asyncio.sleep(0.1)
        assert traced.one("run slow").end_time is not None
        assert not told._runs
        assert hw.engine.attempts.around is None


@virtual_time
async def test_d3_runs_that_another_node_took_are_not_kept() -> None:
    traced = Traced()
    hw = headway(traced)
    async with hw:
        with recording(hw, traced) as told:
            await hw.submit("slow", "x")
            await asyncio.sleep(0.1)
            (run_id,) = told._runs
            told._runs[RunId("gone")] = traced.tracer.start_span("run gone")
            told.hear(SessionsLost(at=0, count=1))
            assert list(told._runs) == [run_id]
            assert traced.one("run gone").end_time is not None


@virtual_time
async def test_o3_a_provider_that_breaks_does_not_break_a_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Breaks(SpanProcessor):
        def on_start(self, span: object, parent_context: object = None) -> None:
            raise RuntimeError("no disk")

    traced = Traced()
    traced.provider.add_span_processor(Breaks())
    hw = headway(traced)
    with caplog.at_level(logging.ERROR):
        async with hw:
            with recording(hw, traced):
                assert await hw.send("plain", "x") == "done"
    assert "no span for run" in caplog.text


@virtual_time
async def test_o3_without_a_provider_nothing_is_hooked_in() -> None:
    hw = headway(Traced())
    async with hw:
        assert recorder.tracer() is None
        assert open_spans(hw) is None
        assert hw.engine.attempts.around is None


def test_o3_nothing_is_imported_as_long_as_nobody_traces() -> None:
    told = subprocess.run(
        [sys.executable, "-c", _SERVE_NOBODY], capture_output=True, check=True, text=True
    )
    assert told.stdout.strip() == "[]"
