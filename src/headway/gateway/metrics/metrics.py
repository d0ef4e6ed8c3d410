"""What is counted: each event of the catalogue, each look into the store, each answer over HTTP."""

from collections import Counter as Counts
from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, Metric

from headway.gateway.metrics.tables import MOMENTS_S, TURNS_S, Counter, Histogram, Names
from headway.model.events import (
    CATALOGUE,
    Event,
    JobFired,
    OrphanEnded,
    RunFinished,
    RunStarted,
    RunSubmitted,
    TokensUsed,
    WorkerAdopted,
    WorkerDied,
)
from headway.model.telling import kind_of
from headway.model.time import SECOND
from headway.model.words import Fired

STREAMING = frozenset({"/events", "/runs/{runId}/output"})
"""Answers that last as long as their listener wants; how long that is says nothing about the server."""


class Metrics:
    """The counters of one server. All of it happens on the loop's thread, so nothing is locked."""

    def __init__(self) -> None:
        self._lanes = Names()
        self._events: Counts[type[Event]] = Counts()
        self._submitted = Counter(
            "headway_runs_submitted", "Runs that were asked for.", ("source", "lane")
        )
        self._finished = Counter(
            "headway_runs_finished",
            "Runs that have their outcome; reason is empty for those that are done.",
            ("state", "reason", "lane"),
        )
        self._waits = Histogram(
            "headway_run_wait_seconds",
            "From when a run was asked for, or due, to its first start.",
            ("lane",),
            TURNS_S,
        )
        self._durations = Histogram(
            "headway_run_duration_seconds",
            "How long the last attempt of a run took.",
            ("lane",),
            TURNS_S,
        )
        self._lateness = Histogram(
            "headway_job_lateness_seconds",
            "From when a job was due to its firing; kind is late for those that had been missed.",
            ("kind",),
            TURNS_S,
        )
        self._tokens = Counter(
            "headway_model_tokens", "Tokens of language models that agents report.", ("direction",)
        )
        self._store = Histogram(
            "headway_store_seconds",
            "How long a durable store took to admit runs and to record what was decided.",
            ("operation",),
            MOMENTS_S,
        )
        self._requests = Counter(
            "headway_http_requests", "Answers over HTTP.", ("method", "route", "status")
        )
        self._answers = Histogram(
            "headway_http_request_seconds",
            "How long an answer over HTTP took, but for streams of events.",
            ("method", "route"),
            MOMENTS_S,
        )
        self._by_kind: dict[type[Event], Callable[..., None]] = {
            RunSubmitted: self._run_submitted,
            RunStarted: self._run_started,
            RunFinished: self._run_finished,
            JobFired: self._job_fired,
            TokensUsed: self._tokens_used,
        }

    def note(self, event: Event) -> None:
        """For the bus: this happened."""
        kind = type(event)
        self._events[kind] += 1
        counted = self._by_kind.get(kind)
        if counted is not None:
            counted(event)

    def stored(self, operation: str, seconds: float) -> None:
        """For the engine: the store took so long."""
        self._store.observe((operation,), int(seconds * SECOND))

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """For the gateway: a request got its answer."""
        self._requests.counts[method, route, str(status)] += 1
        if route not in STREAMING:
            self._answers.observe((method, route), int(seconds * SECOND))

    def collect(self) -> Iterator[Metric]:
        """All that was counted so far."""
        yield self._told_events()
        yield from self._told_workers()
        for table in (
            self._submitted,
            self._finished,
            self._waits,
            self._durations,
            self._lateness,
            self._tokens,
            self._store,
            self._requests,
            self._answers,
        ):
            yield from table.collect()

    def _told_events(self) -> Metric:
        """Every kind has its line from the start, so that the first one of a kind is seen as a change."""
        about = "What happened on this node, by the names of the catalogue."
        family = CounterMetricFamily("headway_events", about, labels=("event",))
        for kind in CATALOGUE:
            family.add_metric((kind_of(kind),), self._events[kind])
        return family

    def _told_workers(self) -> Iterator[Metric]:
        for kind, name, about in (
            (WorkerAdopted, "adoptions", "Workers that outlived their node and went on here."),
            (
                WorkerDied,
                "worker_deaths",
                "Workers that died, or gave no sign of life for too long.",
            ),
            (OrphanEnded, "orphans_ended", "Workers that nobody wanted any more, and were killed."),
        ):
            yield CounterMetricFamily(f"headway_{name}", about, self._events[kind])

    def _run_submitted(self, event: RunSubmitted) -> None:
        self._submitted.counts[event.source, self._lanes.label(event.lane)] += 1

    def _run_started(self, event: RunStarted) -> None:
        # Before a further attempt it has not only waited; one that goes on was counted where it began.
        if event.attempt == 1 and not event.adopted:
            self._waits.observe((self._lanes.label(event.lane),), event.waited)

    def _run_finished(self, event: RunFinished) -> None:
        lane = self._lanes.label(event.lane)
        self._finished.counts[event.state, event.reason or "", lane] += 1
        if event.attempt:
            self._durations.observe((lane,), event.took)

    def _job_fired(self, event: JobFired) -> None:
        if event.kind is not Fired.MANUAL:
            self._lateness.observe((event.kind,), max(0, event.at - event.due_at))

    def _tokens_used(self, event: TokensUsed) -> None:
        self._tokens.counts["in",] += event.tokens_in
        self._tokens.counts["out",] += event.tokens_out
