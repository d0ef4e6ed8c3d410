"""The jobs of a simulated cluster: what is asked about them, and what must hold of their firings (C-5).

The witness here is the log in the database, read past all stores, beside the runs that were really stored. A job
that nobody has changed since it was made is *steady*: its due times are known beforehand, and each of them that
has gone by must be in the log exactly once, as a run, as missed or as skipped.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from headway.model.job import Job
from headway.model.payload import Gate, Say
from headway.model.run import AgentName, JobId, Run, RunId
from headway.model.schedule import Every
from headway.model.time import SECOND, Instant, Span
from headway.model.words import Fired, Misfire, Overlap
from headway.testing.cluster.clocks import WallClock
from headway.testing.cluster.database import Reader
from headway.testing.cluster.violation import Broken

if TYPE_CHECKING:
    from headway.testing.cluster.nodes import Node

AGENT = AgentName("alpha")
WINDOW: Span = 20 * SECOND
"""Older ones are not made up for: all that was asked for must be over soon after the faults."""
EARLY: Span = 3 * SECOND
"""How far a node's idea of the database's clock may be ahead: half of the slowest way to it and back."""


class Timetable:
    """The jobs that were asked for, and which of them nobody has touched."""

    def __init__(self, reader: Reader, wall: WallClock) -> None:
        self._reader = reader
        self._wall = wall
        self.jobs: dict[JobId, Job] = {}
        self.touched: set[JobId] = set()
        self.paused: set[JobId] = set()
        """Those whose pausing was acknowledged, and whose resuming was not asked for."""
        self._by_hand: Counter[JobId] = Counter()
        """How many times each is just being run by hand."""

    def add(
        self,
        node: "Node",
        name: str,
        period: Span,
        now: Instant,
        *,
        overlap: Overlap = Overlap.QUEUE,
        misfire: Misfire = Misfire.ONCE,
        gate: str = "",
    ) -> JobId:
        """A new job, first due one period from now."""
        assert node.engine is not None
        job = Job(
            JobId(f"job-{name}"),
            name,
            AGENT,
            Every(period, now + period),
            Say(name),
            now,
            overlap=overlap,
            misfire=misfire,
            misfire_window=WINDOW,
            gate=Gate(gate) if gate else None,
        )
        self.jobs[job.id] = job
        node.ask(f"add job {name}", node.engine.jobs.put(job))
        return job.id

    def pause(self, node: "Node", job: JobId) -> None:
        self.touched.add(job)
        node.ask(f"pause {job}", self._pause(node, job))

    async def _pause(self, node: "Node", job: JobId) -> None:
        assert node.engine is not None
        await node.engine.jobs.pause(job)
        self.paused.add(job)

    def resume(self, node: "Node", job: JobId) -> None:
        assert node.engine is not None
        self.touched.add(job)
        self.paused.discard(job)
        node.ask(f"resume {job}", node.engine.jobs.resume(job))

    def edit(self, node: "Node", job: JobId, period: str) -> None:
        assert node.engine is not None
        self.touched.add(job)
        node.ask(f"edit {job}", node.engine.jobs.edit(job, {"every": period}))

    def run(self, node: "Node", job: JobId) -> None:
        """By hand: the cadence stays as it is, so the job is as steady as before."""
        node.ask(f"run {job}", self._run(node, job))

    async def _run(self, node: "Node", job: JobId) -> None:
        """Until it is answered it may be kept at any moment, also after somebody has paused the job."""
        assert node.engine is not None
        self._by_hand[job] += 1
        await node.engine.jobs.run(job)
        self._by_hand[job] -= 1

    def behind(self, now: Instant) -> list[str]:
        """Enabled jobs whose time has come."""
        return [job for job, next_at in self._reader.enabled_jobs() if (next_at or 0) <= now]

    def unpaused(self) -> list[JobId]:
        return [JobId(job) for job, _ in self._reader.enabled_jobs()]

    def faults(self, stored: Mapping[RunId, Run]) -> Iterator[tuple[Broken, str]]:
        """What is wrong with the firings of all jobs, at whatever moment."""
        fired = Counter(
            (run.firing.job, run.firing.due_at) for run in stored.values() if run.firing is not None
        )
        for (job, due_at), count in fired.items():
            if count > 1:
                yield Broken.FIRED_TWICE, f"{job} has {count} runs for {due_at}"
        lines = self._reader.firings()
        told = {run_id for _, _, _, run_id, _ in lines}
        for run in stored.values():
            if run.firing is not None and run.id not in told:
                yield Broken.CADENCE, f"{run.id} of {run.firing.job} is not in the log"
        next_at = dict(self._reader.enabled_jobs())
        for known in self.jobs.values():
            if known.id not in self.touched and known.id in next_at:
                yield from _cadence(known, lines, next_at[known.id])

    def admitted(self, run: Run) -> Iterator[tuple[Broken, str]]:
        """What is wrong with a run that was just stored."""
        firing = run.firing
        if firing is None:
            return
        if firing.job in self.paused and not self._by_hand[firing.job]:
            yield (
                Broken.PAUSED,
                f"{run.id} was made for {firing.due_at}, but {firing.job} was paused",
            )
        latest = self._wall.latest()
        if firing.due_at > latest + EARLY:
            early = (firing.due_at - latest) / SECOND
            yield Broken.CADENCE, f"{run.id} of {firing.job} was made {early:.3f} s too early"


def _cadence(
    job: Job,
    lines: list[tuple[str, Instant, str, str | None, int]],
    next_at: Instant | None,
) -> Iterator[tuple[Broken, str]]:
    """Each due time from the first to the next one is in the log, once; and there are no others.

    The first is the anchor, or a later one where the clock of the node that added the job was already past it.
    """
    assert isinstance(job.schedule, Every)
    anchor, period = job.schedule.anchor, job.schedule.period
    natural = sorted(
        (due_at, count)
        for line_job, due_at, kind, _, count in lines
        if line_job == job.id and kind != Fired.MANUAL
    )
    first = natural[0][0] if natural else next_at
    expected = first if first is not None and (first - anchor) % period == 0 else anchor
    for due_at, count in natural:
        if due_at != expected:
            yield Broken.CADENCE, f"{job.id} has a line for {due_at}, not for {expected}"
            return
        expected += count * period
    if next_at != expected:
        yield Broken.CADENCE, f"{job.id} fires next at {next_at}, not at {expected}"
