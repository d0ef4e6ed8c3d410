"""Who may start next: lanes, agents and slots (L, F, X-5, X-6, X-8).

The floor knows nothing of sessions' rules. A session posts the one run that it would start next; the floor
picks among the posted runs of a lane, fairly across agents, in O(log n) whatever their number.

Each lane keeps, for every kind of run, a heap of *flows* (one agent's posted runs) keyed by their agent's place
in the fair order. Places change as runs start and end. One that moved back is put right when it reaches the top;
for one that moved forward a new entry is pushed, and the old one is recognised by its stamp.
"""

from heapq import heapify, heappop, heappush, heapreplace

from headway.core.lanes import STRIDE, AgentLoad, Flow, FlowEntry, Lane, Provider, Purse
from headway.core.live import BACKGROUND, PLAIN, TASK, YIELDING, Kind, LiveRun
from headway.model.run import AgentName, LaneName
from headway.model.settings import (
    DEFAULT_LANES,
    LANE_ALIASES,
    MAIN,
    AgentSettings,
    Budget,
    LaneSettings,
    Limits,
    Settings,
)
from headway.model.time import Instant
from headway.model.words import Rule

_SPARE = 32
"""Outdated heap entries that are tolerated before a heap is rebuilt."""
_NEVER_SERVED = 1 << 48
"""Agents that were never served come before all others, each at a place of its own."""


class Floor:
    """All lanes and agents of a node, and the slots that runs hold."""

    def __init__(self, settings: Settings, now: Instant) -> None:
        self._settings = settings
        self.limits: Limits = settings.limits
        self.lanes: dict[LaneName, Lane] = {}
        self.agents: dict[AgentName, AgentLoad] = {}
        self.providers: dict[str, Provider] = {}
        self.tasks = 0
        """Tasks in flight, over all lanes and agents."""
        self.fallbacks = 0
        """Runs that named an unknown lane and went to `main` (L-1)."""
        self.wakes: list[AgentLoad | Lane] = []
        """Those held back until an instant, for which the kernel shall set an alarm."""
        self.shares_lanes = False
        """Whether any lane has a cluster limit (L-8)."""
        self.lighter: AgentLoad | None = None
        """An agent whose place moved forward just now; its flows are not entered anew yet."""
        self._stamps = 0
        self._services = 0
        self._strides = 0
        """The strides of whoever was served last: no agent saves up more by being idle."""
        for name, lane in settings.lanes.items():
            self.set_lane(name, lane, now)
        if MAIN not in self.lanes:
            self.set_lane(MAIN, DEFAULT_LANES[MAIN], now)

    def go_by(self, settings: Settings) -> None:
        """Agents that were not set yet get their settings from these."""
        self._settings = settings

    def lane(self, name: LaneName) -> Lane:
        """The lane of that name; an alias is followed, an unknown name means `main`."""
        lane = self.lanes.get(name)
        if lane is None:
            lane = self.lanes.get(LANE_ALIASES.get(name, name))
        if lane is None:
            self.fallbacks += 1
            lane = self.lanes[MAIN]
        return lane

    def agent(self, name: AgentName) -> AgentLoad:
        agent = self.agents.get(name)
        if agent is None:
            settings = self._settings.agents.get(name, AgentSettings())
            agent = self.set_agent(name, settings, 0)
        return agent

    def set_agent(self, name: AgentName, settings: AgentSettings, now: Instant) -> AgentLoad:
        agent = self.agents.get(name)
        if agent is None:
            never = len(self.agents) - _NEVER_SERVED
            agent = self.agents[name] = AgentLoad(name, settings, served=never)
        if settings.budget != agent.settings.budget or agent.purse is None:
            bounded = settings.budget != Budget()
            agent.purse = Purse(settings.budget, now) if bounded else None
        shared_before = agent.settings.provider is not None or settings.provider is not None
        if agent.provider is not None and shared_before:
            agent.provider = None
        if settings.provider is not None:
            agent.provider = self.providers.setdefault(settings.provider, Provider())
        agent.settings = settings
        agent.weight = settings.weight
        agent.stride = STRIDE // settings.weight
        agent.limited = agent.purse is not None or agent.provider is not None
        self._replace(agent)
        return agent

    def set_lane(self, name: LaneName, settings: LaneSettings, now: Instant) -> Lane:
        name = LANE_ALIASES.get(name, name)
        lane = self.lanes.get(name)
        if lane is None:
            lane = self.lanes[name] = Lane(name, settings, settings.width)
        lane.apply(settings, now)
        self.shares_lanes = any(
            lane.settings.cluster_limit is not None for lane in self.lanes.values()
        )
        return lane

    def post(self, live: LiveRun) -> None:
        """A session offers this run as its next one."""
        lane = live.lane
        kind = live.kind
        agent = live.agent
        flow = lane.flows[kind].get(agent.name)
        if flow is None:
            flow = lane.flows[kind][agent.name] = Flow(lane, agent, kind, lane.heaps[kind])
            agent.flows.append(flow)
            if kind not in lane.kinds:
                lane.kinds.append(kind)
                lane.kinds.sort()
        live.posted = True
        stamp = self._stamps = self._stamps + 1
        heappush(flow.heads, (live.rank, live.order, stamp, live))
        flow.count += 1
        if flow.parked:
            lane.parked += 1
        else:
            lane.ready[kind] += 1
            if flow.count == 1:
                self._push(flow)

    def withdraw(self, live: LiveRun) -> None:
        """The run is no longer its session's next one, or starts on a slot lent to it."""
        live.posted = False
        flow = live.lane.flows[live.kind][live.agent.name]
        flow.count -= 1
        if flow.parked:
            flow.lane.parked -= 1
        else:
            flow.lane.ready[flow.kind] -= 1
        if len(flow.heads) > _SPARE + 2 * flow.count:
            flow.heads = [entry for entry in flow.heads if entry[3].posted]
            heapify(flow.heads)
        if len(flow.next_up) > _SPARE + 2 * flow.count:
            flow.next_up = [entry for entry in flow.next_up if entry[3].posted]
            heapify(flow.next_up)

    def quick_flow(self, lane: Lane) -> Flow | None:
        """The flow of the agent that just became lighter, if it is next; to be claimed at once.

        The usual case when a run ends and the next one starts: the flow need not be entered anew, because
        starting takes its agent back behind the old entry. No entry is later than its agent's place, so the
        first one is a lower bound of all.
        """
        agent = self.lighter
        assert agent is not None
        if len(agent.flows) != 1 or agent.limited or lane.purse is not None:
            return None
        flow = agent.flows[0]
        if flow.lane is not lane or len(lane.kinds) != 1 or flow.kind or not flow.count:
            return None
        heap = flow.heap
        while heap and heap[0][0] < agent.place:
            if self._first_is_true(heap):
                return None
        self.lighter = None
        return flow

    def next_flow(self, lane: Lane, now: Instant) -> Flow | None:
        """Whose run starts next in this lane; None if none may start."""
        if self.lighter is not None:
            self._enter_lighter()
        if lane.in_use >= lane.width or (lane.purse is not None and self._lane_waits(lane, now)):
            return None
        best: Flow | None = None
        plain_waits = False
        for kind in lane.kinds:
            if not lane.ready[kind] or (kind and self._kind_waits(lane, kind)):
                continue
            if plain_waits and kind & YIELDING:
                continue
            flow = self._top(lane.heaps[kind], now)
            if flow is None:
                continue
            if kind == PLAIN:
                plain_waits = True
                if lane.owed:
                    return flow
            if best is None or flow.precedes(best):
                best = flow
        return best

    def first_unstarted(self, flow: Flow) -> LiveRun | None:
        """The first of the flow's runs whose start is not stored ahead."""
        heads = flow.heads
        while heads:
            live = heads[0][3]
            if live.posted and not live.next_up:
                return live
            heappop(heads)
        return None

    def set_aside(self, flow: Flow) -> None:
        """The first of those is being started ahead. It waits on, in the same place."""
        heappush(flow.next_up, heappop(flow.heads))

    def claim(self, flow: Flow, now: Instant) -> LiveRun:
        """Take the flow's first run off the floor, to start it: it holds a slot and weighs on its agent."""
        live = heappop(flow.line() if flow.next_up else flow.heads)[3]
        while not live.posted:
            live = heappop(flow.heads)[3]
        live.posted = False
        flow.count -= 1
        lane = flow.lane
        lane.ready[flow.kind] -= 1
        lane.in_use += 1
        lane.started += 1
        agent = flow.agent
        agent.inflight += 1
        if agent.strides > self._strides:
            self._strides = agent.strides
        agent.strides = self._strides + agent.stride
        agent.served = self._services = self._services + 1
        agent.place = (agent.inflight // agent.weight, agent.strides, agent.served)
        if flow.kind or agent.limited or lane.owed or lane.purse is not None:
            self._claim_special(live, now)
        return live

    def _claim_special(self, live: LiveRun, now: Instant) -> None:
        lane, agent, kind = live.lane, live.agent, live.kind
        if lane.owed:
            lane.owed = lane.owed - 1 if kind == PLAIN else 0
        if kind & BACKGROUND:
            lane.background += 1
        if kind & YIELDING:
            lane.preemptible.append(live)
        if kind & TASK:
            self.tasks += 1
            agent.tasks += 1
        for purse in (agent.purse, lane.purse):
            if purse is not None:
                purse.run_started(now)

    def borrow(self, live: LiveRun, now: Instant) -> None:
        """Take a posted run off the floor, to start it on a slot that is lent to it."""
        self.withdraw(live)
        flow = Flow(live.lane, live.agent, live.kind, [], [(0, 0, 0, live)], count=1)
        live.posted = True
        owed = live.lane.owed
        live.lane.ready[live.kind] += 1
        self.claim(flow, now)
        live.lane.owed = owed
        live.lane.in_use -= 1
        live.lane.background -= live.kind & BACKGROUND

    def take_up(self, live: LiveRun) -> None:
        """A run that goes on already holds a slot, free or not. No budget pays for it a second time."""
        lane, agent, kind = live.lane, live.agent, live.kind
        lane.in_use += 1
        agent.inflight += 1
        agent.place = (agent.inflight // agent.weight, agent.strides, agent.served)
        if kind & BACKGROUND:
            lane.background += 1
        if kind & YIELDING:
            lane.preemptible.append(live)
        if kind & TASK:
            self.tasks += 1
            agent.tasks += 1

    def replace(self, claimed: LiveRun, by: LiveRun) -> None:
        """A claimed run became part of another, which holds its slot now."""
        if claimed in claimed.lane.preemptible:
            claimed.lane.preemptible.remove(claimed)
            claimed.lane.preemptible.append(by)

    def count_ready(self, lane: Lane, kind: Kind, most: int, now: Instant) -> int:
        """How many posted runs of this kind their agents may start now, counted no further than `most`."""
        if lane.purse is not None and self._lane_waits(lane, now):
            return 0
        found = 0
        for flow in lane.flows[kind].values():
            if found >= most:
                break
            if flow.count and not flow.parked:
                bar = self.agent_bar(flow.agent, kind, now)
                if bar is None:
                    found += flow.count
                else:
                    self._park(flow, bar[1])
        return min(found, most)

    def bar(self, live: LiveRun, now: Instant) -> tuple[Rule, Instant | None] | None:
        """Which rule of lane or agent keeps this run from starting now; None if none does."""
        return self.load_bar(live, now) or live.lane.bar(live.kind, now)

    def load_bar(self, live: LiveRun, now: Instant) -> tuple[Rule, Instant | None] | None:
        """Which rule other than its lane's keeps this run from starting now."""
        return self.agent_bar(live.agent, live.kind, now) or self.tasks_bar(live.kind)

    def agent_bar(
        self, agent: AgentLoad, kind: Kind, now: Instant
    ) -> tuple[Rule, Instant | None] | None:
        """Which rule keeps this agent from starting anything of this kind."""
        if agent.provider is not None and agent.provider.held_until > now:
            return Rule.RATE_LIMITED, agent.provider.held_until
        if agent.purse is not None and (free_at := agent.purse.free_at(now)) > now:
            return Rule.AGENT_BUDGET, free_at
        if kind & TASK and agent.tasks >= self._task_quota(agent):
            return Rule.AGENT_QUOTA, None
        return None

    def free(self, live: LiveRun, *, keep_slot: bool = False) -> None:
        """The run's attempt is over: its slot is free (unless it passes on) and its agent is lighter."""
        lane = live.lane
        agent = live.agent
        if self.lighter is not None:
            self._enter_lighter()
        self.lighter = agent
        if not keep_slot:
            lane.in_use -= 1
        agent.inflight -= 1
        agent.place = (agent.inflight // agent.weight, agent.strides, agent.served)
        if live.kind:
            self._free_special(live, keep_slot=keep_slot)

    def _free_special(self, live: LiveRun, *, keep_slot: bool) -> None:
        lane, agent, kind = live.lane, live.agent, live.kind
        if kind & BACKGROUND and not keep_slot:
            lane.background -= 1
        if kind & YIELDING:
            lane.preemptible.remove(live)
        if kind & TASK:
            self.tasks -= 1
            agent.tasks -= 1
            if agent.parked:
                self.unpark(agent)

    def provider_of(self, agent: AgentLoad) -> Provider:
        """Whom a rate limit of this agent holds back: without a key to share, the agent alone."""
        if agent.provider is None:
            agent.provider = Provider()
            agent.limited = True
        return agent.provider

    def hold(self, provider: Provider, until: Instant) -> None:
        """A provider asked for a pause: nothing that shares its key starts before (X-6)."""
        provider.held_until = max(provider.held_until, until)

    def unpark(self, agent: AgentLoad) -> None:
        """What held the agent back may be over: its flows stand in their lanes again."""
        parked, agent.parked = agent.parked, []
        for flow in parked:
            flow.parked = False
            flow.lane.parked -= flow.count
            flow.lane.ready[flow.kind] += flow.count
            if flow.count:
                self._push(flow)

    def reset(self) -> None:
        """A new incarnation: no slot is held any more (L-6). What is posted stays."""
        self.tasks = 0
        self.lighter = None
        for lane in self.lanes.values():
            lane.in_use = lane.background = lane.yielding = lane.owed = lane.ahead = 0
            lane.preemptible.clear()
        for agent in self.agents.values():
            agent.inflight = agent.tasks = 0
            self.unpark(agent)
            self._replace(agent)

    def _task_quota(self, agent: AgentLoad) -> int:
        quota = agent.settings.max_inflight
        return self.limits.max_inflight_per_agent if quota is None else quota

    def tasks_bar(self, kind: Kind) -> tuple[Rule, Instant | None] | None:
        """Which rule keeps every task from starting."""
        if kind & TASK and self.tasks >= self.limits.max_inflight:
            return Rule.INFLIGHT_LIMIT, None
        return None

    def _kind_waits(self, lane: Lane, kind: Kind) -> bool:
        if kind & TASK and self.tasks >= self.limits.max_inflight:
            return True
        return bool(kind & BACKGROUND) and lane.background >= lane.width - lane.reserve

    def _lane_waits(self, lane: Lane, now: Instant) -> bool:
        assert lane.purse is not None
        free_at = lane.purse.free_at(now)
        if free_at <= now:
            return False
        if free_at != lane.free_at and any(lane.ready):
            lane.free_at = free_at
            self.wakes.append(lane)
        return True

    def _top(self, heap: list[FlowEntry], now: Instant) -> Flow | None:
        """The flow that is first in this heap and may start; parks those whose agent may not."""
        while heap:
            if not self._first_is_true(heap):
                continue
            flow = heap[0][2]
            agent = flow.agent
            if (agent.limited or flow.kind & TASK) and (
                bar := self.agent_bar(agent, flow.kind, now)
            ):
                heappop(heap)
                self._park(flow, bar[1])
                continue
            return flow
        return None

    def _first_is_true(self, heap: list[FlowEntry]) -> bool:
        """Whether the first entry says what is so; if not, it is put right or dropped."""
        place, stamp, flow = heap[0]
        if stamp != flow.stamp or not flow.count:
            heappop(heap)
            return False
        if place is not flow.agent.place:
            stamp = flow.stamp = self._stamps = self._stamps + 1
            heapreplace(heap, (flow.agent.place, stamp, flow))
            return False
        return True

    def _park(self, flow: Flow, until: Instant | None) -> None:
        flow.parked = True
        flow.stamp = 0
        flow.lane.ready[flow.kind] -= flow.count
        flow.lane.parked += flow.count
        agent = flow.agent
        agent.parked.append(flow)
        self.wake_later(agent, until)

    def wake_later(self, agent: AgentLoad, until: Instant | None) -> None:
        """The agent is held back until then; nothing else would bring it to mind."""
        if until is not None and until != agent.free_at:
            agent.free_at = until
            self.wakes.append(agent)

    def _push(self, flow: Flow) -> None:
        heap = flow.heap
        stamp = flow.stamp = self._stamps = self._stamps + 1
        heappush(heap, (flow.agent.place, stamp, flow))
        if len(heap) > _SPARE + 4 * len(flow.lane.flows[flow.kind]):
            heap[:] = [entry for entry in heap if entry[1] == entry[2].stamp and entry[2].count]
            heapify(heap)

    def _enter_lighter(self) -> None:
        agent = self.lighter
        assert agent is not None
        self.lighter = None
        for flow in agent.flows:
            if flow.count and not flow.parked:
                self._push(flow)

    def _replace(self, agent: AgentLoad) -> None:
        """Its place may have moved forward: new entries say so."""
        agent.place = (agent.inflight // agent.weight, agent.strides, agent.served)
        for flow in agent.flows:
            if flow.count and not flow.parked:
                self._push(flow)
