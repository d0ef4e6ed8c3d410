"""Draws one history from its seed: which cluster, what is asked of it, and what goes wrong when."""

from collections.abc import Callable
from functools import partial
from random import Random
from types import MappingProxyType

import msgspec

from headway.core.request import SubmitOptions
from headway.model.run import AgentName, QueueOptions, Route, RunId, Sender, SessionKey
from headway.model.settings import LaneSettings, Settings
from headway.model.time import MILLISECOND, MINUTE, SECOND, Span
from headway.model.words import Misfire, Mode, Overlap
from headway.testing.cluster.agents import Habits
from headway.testing.cluster.cluster import AGENTS, FEW, SETTINGS, Cluster
from headway.testing.cluster.faults import Weather
from headway.testing.cluster.machines import OUTLIVING
from headway.testing.cluster.nodes import CHANNEL, GATE, Node

_NAMES = ("a", "b", "c", "d")
_MODES = ("queue", "queue", "queue", "followup", "collect", "steer", "steer", "interrupt", "reject")


class History:
    """One seed's cluster, and its life."""

    def __init__(self, seed: int) -> None:
        self._random = random = Random(f"{seed} history")
        settings = _settings(random)
        habits = Habits(
            seed, longest=random.choice((300 * MILLISECOND, SECOND, 3 * SECOND, 9 * SECOND))
        )
        self.cluster = Cluster(seed, settings, AGENTS, habits)
        self.cluster.witness.widths = {SessionKey("wide"): 3}
        self._names = _NAMES[: random.choice((2, 2, 3, 3, 4))]
        self._remote = random.random() < 0.3
        """Whether the first node sends work to `beta` without being able to do it."""
        self._sessions = [f"s{number}" for number in range(random.randint(1, 5))] + ["wide"]
        self._runs: list[RunId] = []
        self._of_jobs = Random(f"{seed} jobs")
        self._of_machines = Random(f"{seed} machines")
        self._machines = self._of_machines.choice((1, 2, 2, 3))
        """How many there are: nodes whose names differ may well share one."""
        self._outliving = self._of_machines.choice((0.0, 0.2, 0.4))
        """How often work is for an agent that outlives its node."""
        self._asked = 0
        self.span = random.randint(8, 30) * SECOND

    def play(self) -> None:
        """Everything up to the end of the faults."""
        cluster, random = self.cluster, self._random
        cluster.set_weather(self._weather())
        for name in self._names:
            self._plan(0, random.randrange(2 * SECOND), partial(self._add, name))
        for _ in range(random.randint(10, 50)):
            self._plan(SECOND, self.span, self._submit)
        for _ in range(random.randint(0, 8)):
            self._plan(2 * SECOND, self.span, self._command)
        for _ in range(random.choice((0, 1, 2, 3, 4, 6))):
            self._plan(3 * SECOND, self.span, self._fault)
        self._plan_jobs()
        if self._of_machines.random() < 0.1:
            at = self._of_machines.randrange(3 * SECOND, self.span)
            cluster.conductor.plan(at, self._reboot)
        cluster.run(self.span)

    def _plan(self, first: Span, last: Span, call: Callable[[], object]) -> None:
        at = self._random.randrange(first, max(first + 1, last))
        self.cluster.conductor.plan(at, call)

    def _later(self, span: Span, call: Callable[[], object]) -> None:
        self.cluster.conductor.plan(self.cluster.now + span, call)

    # The cluster.

    def _weather(self) -> Weather:
        random = self._random
        if random.random() < 0.2:
            return Weather(latency=random.choice((0, MILLISECOND)))
        return Weather(
            latency=random.choice((MILLISECOND, 3 * MILLISECOND, 20 * MILLISECOND)),
            slow=random.choice((0.0, 0.01, 0.05)),
            fails_before=random.choice((0.0, 0.01, 0.05)),
            fails_after=random.choice((0.0, 0.01, 0.05)),
            fails_within=random.choice((0.0, 0.05)),
            hints_lost=random.choice((0.0, 0.1, 1.0)),
            hint_delay=random.choice((0, MILLISECOND, 100 * MILLISECOND)),
        )

    def _add(self, name: str) -> None:
        runs = frozenset(AGENTS)
        if self._remote and name == self._names[0]:
            runs -= {AgentName("beta")}
        off_by = self._random.choice((0, 0, -3 * SECOND, 3 * SECOND, 40 * SECOND))
        self.cluster.add(name, runs, off_by, self._host(name))

    def _host(self, name: str) -> str:
        """A node that comes back is on the machine that it was on before."""
        return f"machine {_NAMES.index(name[0]) % self._machines}"

    def _node(self) -> Node | None:
        up = self.cluster.up
        return self._random.choice(up) if up else None

    # Work.

    def _submit(self) -> None:
        node, random = self._node(), self._random
        if node is None:
            return
        self._asked += 1
        text = f"m{self._asked}"
        agent = random.choice(("alpha", "beta"))
        task = random.random() < 0.2
        options = self._task_options() if task else self._message_options(text)
        if random.random() < 0.15:
            options["lane"] = FEW
        if random.random() < 0.15:
            options["due"] = random.choice(("200ms", "1s", "3s", "12s"))
        if random.random() < 0.15:
            options["deadline"] = random.choice(("500ms", "3s", "20s", "60s"))
        if random.random() < 0.2:
            options["idempotency_key"] = f"key-{random.randrange(6)}"
        options["max_attempts"] = random.choice((1, 2, 2, 3))
        options["retries"] = random.choice((0, 0, 0, 1))
        if self._of_machines.random() < self._outliving:
            # Not in a lane that is bounded over all nodes: what goes on there was counted on a node that is gone.
            agent = OUTLIVING
            options.pop("lane", None)
        self._ask(node, agent, text, options)
        if random.random() < 0.1:
            other = self._node()
            if other is not None:
                self._ask(other, agent, text, options)

    def _ask(self, node: Node, agent: str, text: str, options: SubmitOptions) -> None:
        node.submit(agent, text, options)
        self._runs = list(self.cluster.witness.stored)[-20:]

    def _task_options(self) -> SubmitOptions:
        options = SubmitOptions(source="task", deadline="60s")
        if self._random.random() < 0.6:
            self._session(options)
        return options

    def _message_options(self, text: str) -> SubmitOptions:
        random = self._random
        mode = random.choice(_MODES)
        options = SubmitOptions(
            mode=Mode(mode), debounce=0, drop=random.choice(("old", "new", "summarize"))
        )
        self._session(options)
        options["cap"] = random.choice((2, 5, 20))
        if random.random() < 0.15:
            options["debounce"] = random.choice(("50ms", "800ms"))
        if random.random() < 0.5:
            peer = random.choice(("p", "q"))
            options["route"] = Route(CHANNEL, peer=peer)
            options["sender"] = Sender(peer)
            if random.random() < 0.5:
                options["message_id"] = text
        return options

    def _session(self, options: SubmitOptions) -> None:
        session = self._random.choice(self._sessions)
        options["session"] = session
        options["max_concurrent"] = 3 if session == "wide" else 1

    def _command(self) -> None:
        node, random = self._node(), self._random
        if node is None or node.engine is None:
            return
        engine = node.engine
        session = SessionKey(random.choice(self._sessions))
        match random.randrange(6):
            case 0:
                node.ask(f"/stop {session}", engine.stop(session))
            case 1:
                node.ask(f"/stopall {session}", engine.stop_all(session))
            case 2:
                node.ask(f"/queue clear {session}", engine.clear_session(session))
            case 3:
                options = random.choice((None, QueueOptions(cap=random.choice((1, 5)))))
                node.ask(f"/queue {session}", engine.configure(session, options))
            case _:
                if self._runs:
                    run_id = random.choice(self._runs)
                    node.ask(f"cancel {run_id}", engine.cancel(run_id))

    # Jobs.

    def _plan_jobs(self) -> None:
        random = self._of_jobs
        plan = self.cluster.conductor.plan
        for number in range(random.choice((0, 0, 1, 2, 3))):
            plan(random.randrange(2 * SECOND, self.span // 2), partial(self._add_job, f"j{number}"))
        for _ in range(random.choice((0, 0, 2, 5))):
            plan(random.randrange(3 * SECOND, self.span), self._touch_job)

    def _add_job(self, name: str) -> None:
        random, cluster = self._of_jobs, self.cluster
        if cluster.up:
            self._say(f"job {name} is added")
            cluster.witness.timetable.add(
                random.choice(cluster.up),
                name,
                random.choice((500 * MILLISECOND, SECOND, 3 * SECOND, 7 * SECOND)),
                cluster.wall.now(),
                overlap=random.choice(tuple(Overlap)),
                misfire=random.choice(tuple(Misfire)),
                gate=random.choice(("", "", GATE)),
            )

    def _touch_job(self) -> None:
        random, timetable = self._of_jobs, self.cluster.witness.timetable
        if not self.cluster.up or not timetable.jobs:
            return
        node, job = random.choice(self.cluster.up), random.choice(tuple(timetable.jobs))
        match random.randrange(5):
            case 0:
                self._say(f"{job} is paused")
                timetable.pause(node, job)
            case 1:
                self._say(f"{job} is resumed")
                timetable.resume(node, job)
            case 2:
                self._say(f"{job} is edited")
                timetable.edit(node, job, random.choice(("700ms", "2s")))
            case _ if job not in timetable.paused:
                self._say(f"{job} is run by hand")
                timetable.run(node, job)
            case _:
                pass

    # Faults.

    def _fault(self) -> None:
        random = self._random
        node = self._node()
        if node is None:
            return
        match random.choice(
            ("crash", "crash", "freeze", "freeze", "close", "restart", "away", "cut_off", "step")
        ):
            case "crash":
                self._crash(node)
            case "freeze":
                self._freeze(node)
            case "close":
                self._say(f"{node.name} closes")
                node.close(random.choice((None, 0)))
                self._come_back(node)
            case "restart" if node.engine is not None:
                self._say(f"{node.name} restarts in place")
                node.ask("restart", node.engine.restart(random.choice((None, 0))))
            case "away":
                self.cluster.store_away(random.randrange(100 * MILLISECOND, 9 * SECOND))
            case "cut_off":
                span = random.randrange(100 * MILLISECOND, 12 * SECOND)
                self._say(f"{node.name} does not reach the store for {span / SECOND:.3f} s")
                node.store.away_until = self.cluster.now + span
            case _:
                step = random.choice(
                    (-5 * MINUTE, -2 * SECOND, 2 * SECOND, 20 * SECOND, 5 * MINUTE)
                )
                self._say(f"the database's clock steps by {step / SECOND:g} s")
                self.cluster.wall.off_by += step

    def _crash(self, node: Node) -> None:
        self._say(f"{node.name} crashes")
        node.crash()
        self._come_back(node)

    def _reboot(self) -> None:
        """A whole machine: its nodes, and what they had begun."""
        host = f"machine {self._of_machines.randrange(self._machines)}"
        self._say(f"{host} starts anew")
        for node in [n for n in self.cluster.nodes if n.host == host and n.gone_at is None]:
            self._crash(node)
        self.cluster.witness.machines.named(host).reboot()

    def _come_back(self, node: Node) -> None:
        """Mostly somebody starts it again."""
        if self._random.random() < 0.8:
            name = f"{node.name[0]}{len(self.cluster.nodes)}"
            self._later(self._random.randrange(10 * SECOND), lambda: self._add(name))

    def _freeze(self, node: Node) -> None:
        random = self._random
        span = random.choice((500 * MILLISECOND, 3 * SECOND, 7 * SECOND, 14 * SECOND))
        span += random.randrange(SECOND)
        suspended = random.random() < 0.3
        self._say(f"{node.name} {'sleeps' if suspended else 'freezes'} for {span / SECOND:.3f} s")
        node.freeze()
        self._later(span, lambda: self._thaw(node, suspended=suspended))

    def _thaw(self, node: Node, *, suspended: bool) -> None:
        if node.frozen:
            self._say(f"{node.name} thaws")
            node.thaw(suspended=suspended)

    def _say(self, text: str) -> None:
        self.cluster.witness.note(text)


def _settings(random: Random) -> Settings:
    lanes = dict(SETTINGS.lanes)
    for name in lanes:
        lanes[name] = LaneSettings(random.randint(1, 3))
    lanes[FEW] = LaneSettings(random.randint(1, 2), cluster_limit=random.randint(1, 3))
    return msgspec.structs.replace(
        SETTINGS,
        lanes=MappingProxyType(lanes),
        idle_sessions=random.choice((0, 0, 2, 50)),
        live_runs=random.choice((3, 10_000)),
    )
