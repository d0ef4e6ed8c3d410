"""Random histories of a whole kernel: what must be true after every single thing that happens.

A lane is never over its limit, a session never out of order nor wider than allowed, every run has
one outcome, nothing that could start is left waiting, and in the end nothing is left at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.actions import AskEstimate, Finish, Merge, Start
from headway.core.kernel import Kernel
from headway.core.why import holding_rule
from headway.model.errors import WouldDeadlock
from headway.model.run import Route, Sender
from headway.model.settings import AgentSettings, Budget, LaneSettings, Limits
from headway.model.time import SECOND
from headway.model.words import FINAL_STATES, WAITING_STATES, Rule, Source
from tests.unit.core.by_hand import ByHand

Thing = TypeVar("Thing")

LANES = {
    "main": LaneSettings(2, reserve=1),
    "team": LaneSettings(1),
    "subagent": LaneSettings(1),
    "cron": LaneSettings(2, budget=Budget(runs_per_minute=20)),
}
AGENTS = {
    "a": AgentSettings(steerable=True),
    "b": AgentSettings(preemptible=True, provider="key", weight=2),
    "c": AgentSettings(provider="key", max_inflight=1),
    "d": AgentSettings(budget=Budget(runs_per_minute=6, tokens_per_minute=100)),
}
LIMITS = Limits(max_queue=8, max_queue_per_agent=5, max_inflight=3, max_inflight_per_agent=2)
HABITS = {"s": "collect", "t": "steer"}
"""What messages of a session mostly do, so that they meet others of their kind."""
IN_LINE = ("queue", "followup", "collect", "reject")


@dataclass(frozen=True)
class Step:
    """Something that happens; the number chooses on whom, and how."""

    what: str
    pick: int
    agent: str
    session: str
    source: str
    mode: str
    priority: int


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(
            ["submit"] * 24
            + ["end"] * 7
            + ["fail"] * 2
            + ["child"] * 2
            + ["wait"] * 2
            + [
                "limit",
                "stop",
                "stop_all",
                "cancel",
                "clear",
                "clear_lane",
                "lane",
                "limits",
                "steer",
                "steer",
                "tokens",
            ]
            + ["estimate", "agent", "restart"]
        ),
        st.integers(0, 9_999),
        st.sampled_from(sorted(AGENTS)),
        st.sampled_from(sorted(HABITS)),
        st.sampled_from(["message"] * 4 + ["task", "firing", "heartbeat"]),
        st.sampled_from(
            [
                "queue",
                "queue",
                "collect",
                "collect",
                "collect",
                "steer",
                "steer",
                "interrupt",
                "reject",
            ]
        ),
        st.sampled_from([-1, 0, 0, 5, 10, 15]),
    ),
    min_size=20,
    max_size=70,
)


class History:
    """A kernel, what it was told, and what must therefore hold."""

    def __init__(self) -> None:
        self.hand = ByHand(lanes=LANES, agents=AGENTS, limits=LIMITS)
        self.kernel: Kernel = self.hand.kernel
        self.submitted: set[str] = set()
        self.orderly: dict[str, int] = {}
        """Runs that must start in the order of their submission, by that order."""
        self.last: dict[str, int] = {}
        """The order of the latest orderly start of each session."""
        self.began: set[str] = set()
        self.read = 0
        self.names = 0

    def take(self, step: Step) -> None:
        getattr(self, f"_{step.what}")(step)
        self.hand.wait(0)
        self._look()

    def finish(self) -> None:
        """Let everything come to its end; nothing may be left."""
        for name in LANES:
            self.hand.set_lane(name, 5)
        self.hand.set_limits(max_inflight=50, max_inflight_per_agent=50)
        for agent in AGENTS:
            self.hand.set_agent(agent, AgentSettings())
        for _ in range(2_000):
            self._answer_estimates()
            if self.hand.tickets:
                self.hand.end(self.hand.running[-1])
            elif self.kernel.wake_at is not None:
                self.hand.wait(self.kernel.wake_at - self.hand.now)
            else:
                break
            self._look()
        stage = self.kernel.stage
        assert (stage.runs, stage.attempts, stage.sessions) == ({}, {}, {})
        assert self.submitted == set(self.hand.outcomes), "R-2: every run has its outcome"
        assert stage.waiting_tasks == stage.floor.tasks == 0
        for lane in stage.floor.lanes.values():
            assert (lane.in_use, lane.background, lane.yielding) == (0, 0, 0)
        for load in stage.floor.agents.values():
            assert (load.inflight, load.tasks, load.waiting_tasks) == (0, 0, 0)

    # What happens.

    def _submit(self, step: Step) -> None:
        agent = step.agent
        options: dict[str, object] = {"source": step.source, "priority": step.priority}
        if step.source == "heartbeat":
            options["priority"] = 20
        if step.pick % 7:
            options["session"] = step.session
        mode = HABITS[step.session] if step.pick % 4 else step.mode
        orderly = step.source in {"task", "firing"} or mode in IN_LINE
        if step.source == "message":
            options["mode"] = mode
            options["steer_fallback"] = ("interrupt", "followup")[step.pick % 2]
            if step.pick % 3:
                agent, options["priority"] = "ab"[step.pick // 3 % 2], 10 * (step.pick // 3 % 2)
            if mode == "steer":
                agent, options["priority"] = "a", 0
            options["cap"] = 2 + step.pick % 3
            options["drop"] = ("old", "new", "summarize")[step.pick // 5 % 3]
            options["max_concurrent"] = (1, 1, 1, 2)[step.pick // 15 % 4]
            if step.pick % 7 == 0:
                options["route"] = Route("web", peer=str(step.pick % 2))
                options["sender"] = Sender("ann", "owner")
                orderly = False
        if step.pick % 11 == 0:
            options["deadline"] = f"{1 + step.pick % 60}s"
        if step.pick % 13 == 0:
            options["due"] = f"{1 + step.pick % 20}s"
            orderly = False
        if step.pick % 17 == 0:
            options["timeout"] = f"{1 + step.pick % 30}s"
        options["retries"] = step.pick // 100 % 2
        name = self._name()
        if orderly and step.source != "heartbeat":
            self.orderly[name] = self.names
        self.hand.submit(name, agent, **options)

    def _child(self, step: Step) -> None:
        """A turn starts a sub-run, and mostly waits for it."""
        if not self.hand.tickets:
            return
        parent = any_of(self.hand.running, step.pick)
        name = self._name()
        options: dict[str, object] = {"priority": step.priority}
        if step.pick % 3:
            options["lane"] = ("main", "team")[step.pick % 2]
        refused = self.hand.submit(name, step.agent, parent=parent, **options)
        if refused is None and step.pick % 4 and parent in self.hand.tickets:
            try:
                self.hand.awaits(parent, name)
            except WouldDeadlock:
                return

    def _end(self, step: Step) -> None:
        free = [name for name in self.hand.running if not self._awaits(name)]
        if free:
            self.hand.end(any_of(free, step.pick))

    def _fail(self, step: Step) -> None:
        if self.hand.tickets:
            self.hand.fail(any_of(self.hand.running, step.pick), permanent=step.pick % 3 == 0)

    def _limit(self, step: Step) -> None:
        if self.hand.tickets:
            name = any_of(self.hand.running, step.pick)
            self.hand.limit(name, step.pick % 30 * SECOND)

    def _wait(self, step: Step) -> None:
        wake_at = self.kernel.wake_at
        if step.pick % 2 and wake_at is not None:
            self.hand.wait(wake_at - self.hand.now)
        else:
            self.hand.wait(step.pick % 40 * SECOND // 2)

    def _stop(self, step: Step) -> None:
        self.hand.stop(step.session)

    def _stop_all(self, step: Step) -> None:
        self.hand.stop_all(step.session)

    def _cancel(self, step: Step) -> None:
        if self.kernel.stage.runs:
            self.hand.cancel(any_of(list(self.kernel.stage.runs), step.pick))

    def _clear(self, step: Step) -> None:
        self.hand.clear(step.session)

    def _clear_lane(self, step: Step) -> None:
        self.hand.clear_lane(any_of(sorted(LANES), step.pick))

    def _lane(self, step: Step) -> None:
        width = step.pick % 4
        settings = LaneSettings(width, min(width, step.pick // 4 % 2))
        self.hand.set_lane(any_of(sorted(LANES), step.pick), settings)

    def _limits(self, step: Step) -> None:
        self.hand.set_limits(
            max_inflight=step.pick % 4, max_inflight_per_agent=1 + step.pick // 4 % 3
        )

    def _agent(self, step: Step) -> None:
        self.hand.set_agent(step.agent, any_of([AGENTS[name] for name in AGENTS], step.pick))

    def _steer(self, step: Step) -> None:
        """A turn takes what was offered to it, if anything was."""
        for name in self.hand.running:
            for message in list(self.kernel.stage.runs):
                self.hand.takes(name, message)

    def _tokens(self, step: Step) -> None:
        if self.hand.tickets:
            self.hand.uses(any_of(self.hand.running, step.pick), step.pick % 200)

    def _estimate(self, step: Step) -> None:
        self.kernel.set_estimating(True)
        self._answer_estimates(step.pick % 100)

    def _restart(self, step: Step) -> None:
        self.hand.drain(keep_waiting=True)
        if step.pick % 2:
            self.hand.cut_all()
        self.hand.reset()

    # What must hold.

    def _look(self) -> None:
        actions = self.hand.actions[self.read :]
        self.read = len(self.hand.actions)
        for action in actions:
            match action:
                case Start():
                    self._check_start(action)
                case Merge(run=run):
                    self.submitted.add(run.id)
                    orders = [self.orderly.pop(part, 0) for part in run.merged_from]
                    if all(orders):
                        self.orderly[run.id] = orders[0]
                case Finish(run=run, outcome=outcome):
                    assert outcome.state in FINAL_STATES
                    assert run.id not in self.kernel.stage.runs
                case _:
                    pass
        self._check_lanes({action.ticket for action in actions if isinstance(action, Start)})
        self._check_sessions()
        self._check_counters()
        self._check_nothing_idles()

    def _check_start(self, start: Start) -> None:
        run = start.run
        assert run.deadline_at is None or run.deadline_at > start.at, "F-5"
        order = self.orderly.get(run.id)
        if order is not None and run.id not in self.began:
            assert order > self.last.get(run.session, 0), "S-1: out of order"
            self.last[run.session] = order
        self.began.add(run.id)

    def _check_lanes(self, new: set[int]) -> None:
        """L-2: a lane in which something just started is within its width; a lent slot is one."""
        stage = self.kernel.stage
        for lane in stage.floor.lanes.values():
            here = [live for live in stage.attempts.values() if live.lane is lane]
            own = [live for live in here if not (live.ties and live.ties.borrowed_from)]
            assert len(own) == lane.in_use
            if any(live.ticket in new for live in own):
                assert len(own) <= lane.width, "L-2"

    def _check_sessions(self) -> None:
        for session in self.kernel.stage.sessions.values():
            if session.running:
                assert len(session.running) <= max(live.width for live in session.running), "S-1"

    def _check_counters(self) -> None:
        stage = self.kernel.stage
        live = stage.runs.values()
        waiting = [r for r in live if r.run.source is Source.TASK and r.state in WAITING_STATES]
        assert stage.waiting_tasks == len(waiting)
        running = stage.attempts.values()
        assert stage.floor.tasks == sum(r.run.source is Source.TASK for r in running)
        for agent in stage.floor.agents.values():
            assert agent.inflight == sum(r.agent is agent for r in running)
        assert set(stage.attempts) == {r.ticket for r in live if r.ticket}

    def _check_nothing_idles(self) -> None:
        """No run waits for nothing, and no alarm is overdue: either would be a lost wake-up."""
        stage = self.kernel.stage
        assert self.kernel.wake_at is None or self.kernel.wake_at > stage.now
        for session in stage.sessions.values():
            if session.waiting:
                rule, _, _ = holding_rule(self.kernel, session.waiting[0])
                assert rule is not Rule.STARTING, session.waiting[0].run.id

    def _answer_estimates(self, tokens: int = 0) -> None:
        for action in tuple(self.hand.actions):
            if isinstance(action, AskEstimate):
                self.kernel.estimated(action.session, self.hand.now, tokens, 100)
        self.hand.read()

    def _awaits(self, name: str) -> bool:
        ties = self.kernel.stage.attempts[self.hand.tickets[name]].ties
        return ties is not None and bool(ties.awaiting)

    def _name(self) -> str:
        self.names += 1
        name = f"r{self.names}"
        self.submitted.add(name)
        return name


def any_of(things: Sequence[Thing], pick: int) -> Thing:
    return things[pick % len(things)]


@settings(max_examples=500)
@given(STEPS)
def test_l2_s1_r2_f5_hold_after_every_step_of_any_history(steps: list[Step]) -> None:
    history = History()
    for step in steps:
        history.take(step)
    history.finish()
