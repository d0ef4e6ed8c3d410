"""Three nodes on one PostgreSQL, and everything that can happen to them.

`run_chaos` starts a PostgreSQL of its own, some `headway worker` processes on it and a process that submits. Then
it kills, freezes and restarts nodes at random instants, and crashes the database, while the agents write down what
they do. At the end the ledger is held against the store and against what the submitter was promised and told.
"""

import heapq
import itertools
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.checker import Evidence, Freeze, Verdict, check
from tests.e2e.ledger import SUFFIX, read_lines, whole_lines
from tests.e2e.notes import ASKED, TOLD, AskedRow, ToldRow, rows
from tests.e2e.processes import Process, say, worker
from tests.e2e.stored import read_postgres
from tests.postgres import PostgresServer

AGENTS = "tests.e2e.agents:hw"
LEASE_S = 5.0
QUICK = {
    "HEADWAY_LEASE": "5s",
    "HEADWAY_RENEW_EVERY": "500ms",
    "HEADWAY_POLL_EVERY": "1s",
}
"""Short leases, so that a takeover is a matter of seconds; yet longer than a busy machine stands still."""
_PATIENCE_S = 180.0
_LOOK_EVERY_S = 0.02
_BUSIEST = 0.75
"""How often the node with the most running turns is hit: that hurts the most."""


@dataclass
class Report:
    """What was done, what came of it, and which promises were broken."""

    seed: int
    seconds: float = 0.0
    runs: int = 0
    done: int = 0
    orphaned: int = 0
    repeated: int = 0
    fenced: int = 0
    kills: int = 0
    freezes: int = 0
    drains: int = 0
    restarts_in_place: int = 0
    database_crashes: int = 0
    violations: list[str] = field(default_factory=list)
    folder: Path | None = None
    """Where ledgers and outputs are, if something was wrong."""

    def __str__(self) -> str:
        faults = (
            f"{self.kills} kills, {self.freezes} freezes, {self.drains} drains, "
            f"{self.restarts_in_place} restarts in place, {self.database_crashes} database crashes"
        )
        told = "\n".join(f"  {violation}" for violation in self.violations[:30]) or "  none"
        where = f"\nledgers and outputs: {self.folder}" if self.folder else ""
        return (
            f"seed {self.seed}: {self.runs} runs in {self.seconds:.0f} s; {faults}\n"
            f"{self.done} done, {self.orphaned} given up as orphaned, {self.repeated} attempts "
            f"repeated, {self.fenced} writes of zombies fenced\n"
            f"{len(self.violations)} violations:\n{told}{where}"
        )


class _Node:
    """A place for a node: when its process ends, another one is started there."""

    def __init__(self, name: str, store: str, folder: Path, deaths: dict[str, int]) -> None:
        self._name = name
        self._store = store
        self._folder = folder
        self._deaths = deaths
        self._numbers = itertools.count(1)
        self.process = self._started()
        self.frozen_at: int | None = None
        self.ending = False

    def _started(self) -> Process:
        name = f"{self._name}-{next(self._numbers)}"
        return worker(name, AGENTS, self._store, self._folder, QUICK)

    @property
    def open_attempts(self) -> int:
        """How many turns are in the middle of their work, by what they wrote down."""
        path = self._folder / f"{self.process.name}{SUFFIX}"
        kinds = [row.split(b'"', 4)[3] for row in whole_lines(path)]
        return kinds.count(b"begin") - kinds.count(b"end") - kinds.count(b"cut")

    def kill(self) -> None:
        self._deaths[self.process.name] = self.process.kill()

    def revive(self) -> None:
        if not self.process.alive:
            self.process = self._started()
            self.ending = False

    @property
    def usable(self) -> bool:
        """Running for a while, and neither frozen nor about to end."""
        if not self.process.alive or self.ending or self.frozen_at is not None:
            return False
        return " runs " in self.process.printed


class Chaos:
    """One course of chaos, from the first process to the verdict."""

    def __init__(self, report: Report, nodes: int, folder: Path) -> None:
        self._report = report
        self._random = random.Random(report.seed)
        self._folder = folder
        self._server = PostgresServer({"fsync": "on"})
        self._server.start()
        self._deaths: dict[str, int] = {}
        self._freezes: list[Freeze] = []
        self._plan: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._nodes = [
            _Node(f"node{index}", self._server.url, folder, self._deaths) for index in range(nodes)
        ]
        self._submitter: Process | None = None

    def run(self, seconds: float, sessions: int, runs: int) -> Verdict:
        began = time.monotonic()
        for node in self._nodes:
            node.process.wait_for(" runs ")
        arguments = (self._server.url, self._folder, self._report.seed, sessions, runs)
        command = ["tests.e2e.chaos.submitter", *map(str, arguments), str(seconds * 0.9)]
        self._submitter = Process("submitter", command, self._folder, QUICK)
        self._submitter.wait_for("submitting")
        self._make_plan(seconds)
        self._follow_plan()
        self._wait_until_told()
        self._report.seconds = time.monotonic() - began
        return self._judge()

    def close(self) -> None:
        for process in self._processes():
            if process.alive:
                process.kill()
        self._server.remove()

    # What is done to them.

    def _make_plan(self, seconds: float) -> None:
        """At least one of each kind of fault; kills are the most common."""
        now = time.monotonic()
        kinds = (
            (self._kill, max(4, round(seconds / 4))),
            (self._freeze_past_lease, max(1, round(seconds / 15))),
            (self._freeze_briefly, max(1, round(seconds / 20))),
            (self._drain, max(1, round(seconds / 15))),
            (self._restart_in_place, max(1, round(seconds / 20))),
            (self._crash_database, max(2, round(seconds / 15))),
        )
        for fault, count in kinds:
            for _ in range(count):
                self._at(now + self._random.uniform(0.5, seconds * 0.85), fault)

    def _at(self, when: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._plan, (when, next(self._order), what))

    def _follow_plan(self) -> None:
        while self._plan:
            when, _, what = self._plan[0]
            if when > time.monotonic():
                self._look()
                continue
            heapq.heappop(self._plan)
            what()

    def _look(self) -> None:
        """Start again what has ended by itself, and see that nothing broke."""
        for node in self._nodes:
            code = node.process.popen.poll()
            if code is not None and code not in {0, 3, -signal.SIGKILL}:
                printed = node.process.printed
                raise AssertionError(f"{node.process.name} ended with {code}:\n{printed}")
            if code in {0, 3}:
                node.revive()
        time.sleep(_LOOK_EVERY_S)

    def _some_node(self, what: Callable[[], None]) -> _Node | None:
        """One that something can be done to; else the same is tried a little later."""
        usable = [node for node in self._nodes if node.usable]
        if not usable:
            self._at(time.monotonic() + 0.2, what)
            return None
        if self._random.random() < _BUSIEST:
            return max(usable, key=lambda node: node.open_attempts)
        return self._random.choice(usable)

    def _kill(self) -> None:
        node = self._some_node(self._kill)
        if node is not None:
            node.kill()
            self._report.kills += 1
            self._at(time.monotonic() + self._random.uniform(0, 1.5), node.revive)

    def _freeze_past_lease(self) -> None:
        self._freeze(self._freeze_past_lease, LEASE_S + self._random.uniform(0.2, 1.5))

    def _freeze_briefly(self) -> None:
        self._freeze(self._freeze_briefly, self._random.uniform(0.1, LEASE_S / 4))

    def _freeze(self, what: Callable[[], None], seconds: float) -> None:
        node = self._some_node(what)
        if node is None:
            return
        node.frozen_at = node.process.freeze()
        self._report.freezes += 1
        self._at(time.monotonic() + seconds, lambda: self._thaw(node))

    def _thaw(self, node: _Node) -> None:
        assert node.frozen_at is not None
        thawed_at = node.process.thaw()
        self._freezes.append(Freeze(node.process.name, node.frozen_at, thawed_at))
        node.frozen_at = None

    def _drain(self) -> None:
        node = self._some_node(self._drain)
        if node is not None:
            node.process.signal(signal.SIGTERM)
            node.ending = True
            self._report.drains += 1

    def _restart_in_place(self) -> None:
        node = self._some_node(self._restart_in_place)
        if node is not None:
            node.process.signal(signal.SIGUSR1)
            self._report.restarts_in_place += 1

    def _crash_database(self) -> None:
        self._server.stop(signal.SIGQUIT)
        self._report.database_crashes += 1
        time.sleep(self._random.choice((0.0, 0.0, LEASE_S / 4)))
        self._server.start()

    # How it ends.

    def _wait_until_told(self) -> None:
        assert self._submitter is not None
        give_up_at = time.monotonic() + _PATIENCE_S
        while self._submitter.alive and time.monotonic() < give_up_at:
            self._look()
        if self._submitter.alive:
            self._report.violations.append(
                f"every caller is told: still waiting {_PATIENCE_S:.0f} s after the last fault"
            )
            self._submitter.kill()
        elif self._submitter.popen.returncode:
            raise AssertionError(f"the submitter failed:\n{self._submitter.printed}")
        for node in self._nodes:
            node.process.end()

    def _judge(self) -> Verdict:
        asked = rows(self._folder / ASKED, AskedRow)
        told = rows(self._folder / TOLD, ToldRow)
        stored = read_postgres(self._server.url)
        evidence = Evidence(
            asked={row.run: row.asked for row in asked},
            told={row.run: row.told for row in told},
            stored=stored,
            lines=read_lines(self._folder),
            deaths=self._deaths,
            freezes=self._freezes,
            # It was renewed some time before: who stood still for so long may have lost it.
            lease=round(LEASE_S / 2 * 1_000_000),
        )
        verdict = check(evidence)
        report = self._report
        states = [run.ending.state for run in stored.values()]
        report.runs = len(asked)
        report.done = states.count("done")
        report.orphaned = states.count("failed")
        report.repeated = verdict.repeated
        report.fenced = verdict.fenced
        report.violations += map(str, verdict.violations)
        return verdict

    def _processes(self) -> list[Process]:
        found = [node.process for node in self._nodes]
        return found if self._submitter is None else [*found, self._submitter]


def run_chaos(
    seconds: float, seed: int, nodes: int = 3, sessions: int = 50, runs: int = 2000
) -> Report:
    """So many seconds of chaos, and until every caller is told; then the verdict."""
    report = Report(seed)
    folder = Path(tempfile.mkdtemp(prefix="headway-chaos-"))
    chaos = Chaos(report, nodes, folder)
    try:
        chaos.run(seconds, sessions, runs)
    except BaseException:
        report.folder = folder
        say(report)
        raise
    finally:
        chaos.close()
    if report.violations:
        report.folder = folder
    else:
        shutil.rmtree(folder)
    return report
