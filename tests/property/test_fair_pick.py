"""Who starts next, against a reference that looks at everything each time (F-2, F-3, X-5, X-8)."""

from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headway.core.floor import Floor
from headway.core.live import LiveRun, kind_of
from headway.core.session import BLANK, SessionQueue
from headway.model.run import AgentName, LaneName, Run, RunId, SessionKey
from headway.model.settings import AgentSettings, LaneSettings, Limits, Settings
from headway.model.time import SECOND
from headway.model.words import Source, State
from tests.property.reference import Agent, Lane, Reference
from tests.unit.core.by_hand import ByHand

AGENTS = ("a", "b", "c", "d")
LANES = {"main": LaneSettings(2, reserve=1), "team": LaneSettings(3)}
LIMITS = Limits(max_inflight=4, max_inflight_per_agent=2)


@dataclass(frozen=True)
class Step:
    """Something that happens; the number chooses on whom."""

    what: str
    pick: int
    agent: str
    lane: str
    priority: int
    task: bool

    def post_to(self, slow: Reference, name: str, now: int) -> None:
        slow.post(
            name,
            agent=self.agent,
            lane=self.lane,
            priority=self.priority,
            task=self.task,
            now=now,
        )


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(
            ["post"] * 8 + ["free"] * 5 + ["withdraw", "weight", "width", "limit", "quota", "wait"]
        ),
        st.integers(0, 999),
        st.sampled_from(AGENTS),
        st.sampled_from(sorted(LANES)),
        st.sampled_from([-3, 0, 0, 0, 1, 5, 9, 10, 12]),
        st.booleans(),
    ),
    min_size=25,
    max_size=90,
)


def reference(kernel_settings: Settings) -> Reference:
    return Reference(
        {name: Lane(lane.width, lane.reserve) for name, lane in LANES.items()},
        kernel_settings.ageing,
        LIMITS.max_inflight,
        LIMITS.max_inflight_per_agent,
        {name: Agent() for name in AGENTS},
    )


def chosen(names: list[str], pick: int) -> str:
    return names[pick % len(names)]


class Checked:
    """A kernel with a session for each run, whose every start is held against the reference."""

    def __init__(self, hand: ByHand, slow: Reference) -> None:
        self.hand = hand
        self.slow = slow
        self.seen = 0

    def look(self) -> None:
        for name in self.hand.started[self.seen :]:
            assert name in self.slow.next_ones()
            self.slow.start(name)
        self.seen = len(self.hand.started)
        assert self.slow.next_ones() == set(), "nothing that may start is left waiting"

    def set_lane(self, name: str, lane: LaneSettings) -> None:
        self.slow.lanes[name] = Lane(lane.width, lane.reserve)
        self.hand.set_lane(name, lane)
        self.look()

    def take(self, step: Step, new: str) -> None:
        """Let one thing happen, to both."""
        hand, slow = self.hand, self.slow
        match step.what:
            case "post":
                step.post_to(slow, new, hand.now)
                source = "task" if step.task else "message"
                options = {"lane": step.lane, "priority": step.priority, "source": source}
                hand.submit(new, step.agent, deadline="9d", **options)
            case "free" if hand.running:
                name = chosen(hand.running, step.pick)
                slow.free(name)
                hand.end(name)
            case "withdraw" if slow.waiting:
                name = chosen(sorted(slow.waiting), step.pick)
                slow.withdraw(name)
                hand.cancel(name)
            case "weight":
                slow.agents[step.agent].weight = 1 + step.pick % 4
                hand.set_agent(step.agent, AgentSettings(weight=1 + step.pick % 4))
            case "width":
                width, reserve = step.pick % 5, min(step.pick % 5, step.pick // 5 % 3)
                self.set_lane(step.lane, LaneSettings(width, reserve))
            case "limit":
                slow.max_inflight = step.pick % 7
                hand.set_limits(max_inflight=step.pick % 7)
            case "quota":
                slow.max_inflight_per_agent = step.pick % 5
                hand.set_limits(max_inflight_per_agent=step.pick % 5)
            case _:
                hand.wait(step.pick * SECOND)
        self.look()


NEVER_SERVED = [
    Step("post", 0, "b", "main", 9, task=False),
    Step("post", 0, "a", "main", 0, task=False),
    Step("post", 0, "a", "main", 5, task=True),
    Step("wait", 0, "a", "main", 0, task=False),
]


@settings(max_examples=400)
@example(NEVER_SERVED, 3)
@given(STEPS, st.integers(0, 12))
def test_f2_f3_x8_the_kernel_starts_what_the_reference_says(steps: list[Step], held: int) -> None:
    """For the first `held` steps the lanes are paused: much waits before anyone was ever served."""
    kernel_settings = Settings(
        lanes={LaneName(name): LaneSettings(0) for name in LANES}, limits=LIMITS
    )
    slow = reference(kernel_settings)
    slow.lanes = {name: Lane(0) for name in LANES}
    checked = Checked(ByHand(kernel_settings), slow)
    for number, step in enumerate(steps):
        if number == held:
            for name, lane in LANES.items():
                checked.set_lane(name, lane)
        checked.take(step, f"r{number}")


class BareFloor:
    """The floor by itself: runs are posted, withdrawn, taken and freed by hand."""

    def __init__(self, kernel_settings: Settings) -> None:
        self.floor = Floor(kernel_settings, 0)
        self.ageing = kernel_settings.ageing
        self.posted: dict[str, LiveRun] = {}
        self.taken: dict[str, LiveRun] = {}
        self.orders = 0

    def post(self, name: str, step: Step, now: int) -> None:
        run = Run(
            RunId(name),
            AgentName(step.agent),
            SessionKey(name),
            Source.TASK if step.task else Source.MESSAGE,
            LaneName(step.lane),
            step.priority,
            now,
        )
        self.orders += 1
        live = self.posted[name] = LiveRun(
            run=run,
            session=SessionQueue(run.session, 0, BLANK),
            lane=self.floor.lane(run.lane),
            agent=self.floor.agent(run.agent),
            state=State.QUEUED,
            kind=kind_of(run),
            order=self.orders,
        )
        live.rank = now + step.priority * self.ageing
        self.floor.post(live)

    def start(self, lane: str, now: int) -> str | None:
        """Start the next run of one lane."""
        flow = self.floor.next_flow(self.floor.lane(LaneName(lane)), now)
        if flow is None:
            return None
        live = self.floor.claim(flow, now)
        name = str(live.run.id)
        self.taken[name] = self.posted.pop(name)
        return name

    def unpark(self) -> None:
        for agent in self.floor.agents.values():
            self.floor.unpark(agent)


@given(STEPS)
def test_f2_f3_x8_the_floor_picks_what_the_reference_picks(steps: list[Step]) -> None:
    """Lane by lane, with starts that come late: what is posted piles up between them."""
    kernel_settings = Settings(
        lanes={LaneName(name): lane for name, lane in LANES.items()}, limits=LIMITS
    )
    bare = BareFloor(kernel_settings)
    slow = reference(kernel_settings)
    now = 0
    for number, step in enumerate(steps):
        match step.what:
            case "post":
                step.post_to(slow, f"r{number}", now)
                bare.post(f"r{number}", step, now)
            case "free" if bare.taken:
                freed = chosen(sorted(bare.taken), step.pick)
                slow.free(freed)
                bare.floor.free(bare.taken.pop(freed))
            case "withdraw" if bare.posted:
                gone = chosen(sorted(bare.posted), step.pick)
                slow.withdraw(gone)
                bare.floor.withdraw(bare.posted.pop(gone))
            case "weight":
                slow.agents[step.agent].weight = 1 + step.pick % 4
                bare.floor.set_agent(
                    AgentName(step.agent), AgentSettings(weight=1 + step.pick % 4), now
                )
            case "width":
                slow.lanes[step.lane] = Lane(step.pick % 5)
                bare.floor.set_lane(LaneName(step.lane), LaneSettings(step.pick % 5), now)
            case "limit" | "quota":
                slow.max_inflight = step.pick % 7
                slow.max_inflight_per_agent = step.pick // 7 % 5
                bare.floor.limits = Limits(
                    max_inflight=slow.max_inflight,
                    max_inflight_per_agent=slow.max_inflight_per_agent,
                )
                bare.unpark()
            case _:
                now += step.pick * SECOND
        if step.pick % 3 == 0:
            expected = slow.next_ones([step.lane])
            name = bare.start(step.lane, now)
            assert (name in expected) if expected else name is None
            if name is not None:
                slow.start(name)


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 5))
def test_x8_starts_follow_the_weights_over_time(width: int, first: int, second: int) -> None:
    """Two agents that always have work: each gets its part, up to one round."""
    hand = ByHand(
        lanes={"main": width},
        agents={"a": AgentSettings(weight=first), "b": AgentSettings(weight=second)},
    )
    starts = 12 * (first + second)
    for number in range(starts):
        hand.submit(f"a{number}", "a")
        hand.submit(f"b{number}", "b")
    hand.end_oldest(starts - width)
    mine = sum(name[0] == "a" for name in hand.started)
    assert mine == pytest.approx(12 * first, abs=first + second + width)


@given(st.lists(st.sampled_from(AGENTS), min_size=1, max_size=40), st.integers(1, 3))
def test_f2_a_newcomer_waits_for_at_most_one_start_of_each_other_agent(
    queue: list[str], width: int
) -> None:
    hand = ByHand(lanes={"main": width})
    for number, agent in enumerate(queue):
        hand.submit(f"{agent}{number}", agent)
    before = len(hand.started)
    hand.submit("new", "newcomer")
    while "new" not in hand.started:
        hand.end_oldest()
    ahead = [name[0] for name in hand.started[before : hand.started.index("new")]]
    assert len(set(ahead)) == len(ahead)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 40)), min_size=1, max_size=20),
)
def test_f3_starts_follow_priority_and_age(runs: list[tuple[int, int]]) -> None:
    """Inside one agent the order is exactly: when it came, plus 30 s for each step of priority."""
    hand = ByHand(lanes={"main": 0})
    keys: dict[str, tuple[int, int]] = {}
    for number, (priority, gap) in enumerate(runs):
        hand.wait(gap * SECOND)
        hand.submit(f"r{number}", priority=priority)
        keys[f"r{number}"] = (hand.now + priority * 30 * SECOND, number)
    hand.set_lane("main", 1)
    while hand.tickets:
        hand.end_oldest()
    assert hand.started == sorted(keys, key=lambda name: keys[name])
