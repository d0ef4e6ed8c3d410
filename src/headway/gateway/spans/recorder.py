"""Tells a tracer of runs and their attempts."""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from importlib.metadata import PackageNotFoundError, version

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NoOpTracerProvider, ProxyTracerProvider, Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from headway.facade import Headway
from headway.model.events import Event, NodeDied, RunFinished, SessionsLost
from headway.model.run import Run, RunId
from headway.model.words import State
from headway.turn import Turn

_log = logging.getLogger(__name__)
_NANOSECONDS = 1_000
"""In a microsecond, which is what instants count."""


def tracer() -> trace.Tracer | None:
    """What the program has set up; None if it has set up nothing that would keep a span."""
    provider = trace.get_tracer_provider()
    if isinstance(provider, ProxyTracerProvider | NoOpTracerProvider):
        return None
    return provider.get_tracer("headway", _version())


class Recorder:
    """Holds the span of each run that has begun here and has not ended."""

    def __init__(self, hw: Headway, tracer: trace.Tracer) -> None:
        self._engine = hw.engine
        self._tracer = tracer
        self._traces = TraceContextTextMapPropagator()
        self._runs: dict[RunId, Span] = {}
        self._attempts: dict[RunId, Span] = {}
        """The live attempt of each run: what it starts belongs below it."""

    def open(self) -> Callable[[], None]:
        """Listen; the answer ends it, and every span that is still open."""
        ends = ExitStack()
        ends.callback(self._end_all)
        ends.callback(setattr, self._engine.attempts, "around", None)
        ends.callback(self._engine.bus.tap(self.hear))
        self._engine.attempts.around = self.around
        return ends.close

    def around(self, turn: Turn) -> AbstractContextManager[object]:
        """For the attempts: what is entered around an agent's turn. It never raises by itself."""
        try:
            span = self._begin(turn)
        except Exception:  # noqa: BLE001 - a provider that breaks must not break the run
            _log.exception("no span for run %s", turn.id)
            return nullcontext()
        return self._attempt(turn, span)

    def hear(self, event: Event) -> None:
        """For the bus: a run has ended, or goes on elsewhere."""
        if isinstance(event, RunFinished):
            span = self._runs.pop(event.run_id, None)
            if span is not None:
                _end(span, event)
        elif isinstance(event, SessionsLost | NodeDied):
            live = self._engine.kernel.stage.runs
            for run_id in [run_id for run_id in self._runs if run_id not in live]:
                self._runs.pop(run_id).end()

    def _begin(self, turn: Turn) -> Span:
        run = turn.run
        above = self._runs.get(run.id)
        if above is None:
            above = self._runs[run.id] = self._span_of(run)
        return self._tracer.start_span(
            f"attempt {turn.attempt}",
            trace.set_span_in_context(above, Context()),
            attributes={"headway.run.id": run.id, "headway.attempt": turn.attempt},
        )

    def _span_of(self, run: Run) -> Span:
        """The span of a run, from when it was asked for; below whoever asked."""
        attributes: dict[str, str | int] = {
            "headway.run.id": run.id,
            "headway.agent": run.agent,
            "headway.session": run.session,
            "headway.lane": run.lane,
            "headway.source": run.source.value,
            "headway.priority": run.priority,
        }
        if run.task is not None:
            attributes["headway.task.action"] = run.task.action
        if run.firing is not None:
            attributes["headway.job"] = run.firing.job
        return self._tracer.start_span(
            f"run {run.agent}",
            self._above(run),
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            start_time=run.submitted_at * _NANOSECONDS,
        )

    def _above(self, run: Run) -> Context:
        parent = None if run.parent is None else self._attempts.get(run.parent)
        if parent is not None:
            return trace.set_span_in_context(parent, Context())
        return self._traces.extract({"traceparent": run.traceparent}, Context())

    @contextmanager
    def _attempt(self, turn: Turn, span: Span) -> Iterator[None]:
        self._attempts[turn.run.id] = span
        try:
            with trace.use_span(span, end_on_exit=False):
                yield
        finally:
            if self._attempts.get(turn.run.id) is span:
                del self._attempts[turn.run.id]
            if turn.cut is not None:
                span.set_attribute("headway.cut", turn.cut.value)
            span.end()

    def _end_all(self) -> None:
        for span in self._runs.values():
            span.end()
        self._runs.clear()


def _end(span: Span, event: RunFinished) -> None:
    span.set_attribute("headway.state", event.state.value)
    if event.reason is not None:
        span.set_attribute("headway.reason", event.reason.value)
    if event.state is State.FAILED:
        span.set_status(StatusCode.ERROR, event.error)
    span.end()


def _version() -> str:
    try:
        return version("headway")
    except PackageNotFoundError:
        return "unknown"
