"""What is just now, asked when somebody looks: lanes, tasks, the lease, the outbox, workers and the machine."""

import platform
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric

from headway.gateway.metrics.tables import MOST_NAMES
from headway.model.time import SECOND
from headway.model.views import Stats
from headway.model.words import WorkerKind, WorkerState
from headway.model.worker import Snapshot as MachineSnapshot
from headway.model.worker import Worker


class Snapshot(msgspec.Struct, frozen=True):
    """A node at one moment. What cannot be known just now is None, and has no line then."""

    ready: bool
    streams: int
    events_missed: int = 0
    stats: Stats | None = None
    letters: tuple[int, int] | None = None
    """Waiting, and dead."""
    workers: tuple[Worker, ...] | None = None
    """Those that this node looks after, as it last saw them."""
    machine: MachineSnapshot | None = None

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily(
            "headway_build",
            "Which program this is.",
            {"version": _version(), "python": platform.python_version()},
        )
        yield _gauge("headway_ready", "Whether work can be asked for just now.", self.ready)
        yield _gauge("headway_streams", "Event streams and WebSockets that are open.", self.streams)
        about = "Events that listeners were told they have missed."
        yield CounterMetricFamily("headway_events_missed", about, self.events_missed)
        if self.letters is not None:
            yield _letters(*self.letters)
        if self.stats is not None:
            yield from _node(self.stats)
            yield from _lanes(self.stats)
        if self.workers is not None:
            yield _workers(self.workers)
        if self.machine is not None:
            yield from _machine(self.machine)


def _node(stats: Stats) -> Iterator[Metric]:
    yield _gauge("headway_draining", "Whether new work is refused.", stats.draining)
    yield _gauge("headway_sessions", "Sessions with work in them.", stats.sessions)
    yield _gauge("headway_tasks_queued", "Tasks that wait.", stats.queued)
    yield _gauge("headway_tasks_inflight", "Tasks that run.", stats.inflight)
    if stats.lease_left is not None:
        about = "How long the node may act if it cannot renew its lease."
        yield _gauge("headway_lease_remaining_seconds", about, stats.lease_left / SECOND)
    about = "Runs that named a lane which does not exist, and went to main."
    yield CounterMetricFamily("headway_unknown_lane", about, stats.unknown_lanes)


def _lanes(stats: Stats) -> Iterator[Metric]:
    # The fullest ones, should somebody have made very many.
    lanes = sorted(stats.lanes, key=lambda lane: (lane.running + lane.waiting, lane.started))
    lanes = sorted(lanes[-MOST_NAMES:], key=lambda lane: lane.name)
    for name, about, values in (
        ("width", "How many runs may go at once in a lane.", [lane.width for lane in lanes]),
        ("running", "Runs that go in a lane.", [lane.running for lane in lanes]),
        ("waiting", "Runs that wait in a lane.", [lane.waiting for lane in lanes]),
        ("reserved", "Slots kept for interactive work.", [lane.reserve for lane in lanes]),
        ("paused", "Whether nothing starts in a lane.", [lane.paused for lane in lanes]),
    ):
        family = GaugeMetricFamily(f"headway_lane_{name}", about, labels=("lane",))
        for lane, value in zip(lanes, values, strict=True):
            family.add_metric((lane.name,), float(value))
        yield family


def _workers(workers: tuple[Worker, ...]) -> Metric:
    counted = Counter((worker.kind, worker.state) for worker in workers)
    about = "Workers that this node looks after, as they were at the last look."
    family = GaugeMetricFamily("headway_workers", about, labels=("kind", "state"))
    for kind in WorkerKind:
        for state in WorkerState:
            if state is not WorkerState.DEAD:
                family.add_metric((kind, state), counted[kind, state])
    return family


def _machine(seen: MachineSnapshot) -> Iterator[Metric]:
    for name, about, value in (
        ("cpu_percent", "Percent of all cores in use at the last look.", seen.cpu),
        ("cores", "Cores that the machine has.", seen.cores),
        ("memory_used_bytes", "Memory in use.", seen.memory_used),
        ("memory_total_bytes", "Memory that the machine has.", seen.memory_total),
        ("load", "Processes that wanted to run, on average over a minute.", seen.load),
    ):
        yield _gauge(f"headway_machine_{name}", about, value)


def _letters(waiting: int, dead: int) -> Metric:
    about = "Replies that wait for their channel, and those that it never took."
    family = GaugeMetricFamily("headway_outbox_letters", about, labels=("state",))
    family.add_metric(("waiting",), waiting)
    family.add_metric(("dead",), dead)
    return family


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(name, about, float(value))


def _version() -> str:
    try:
        return version("headway")
    except PackageNotFoundError:
        return "unknown"
