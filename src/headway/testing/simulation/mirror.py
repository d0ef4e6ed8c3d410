"""The simulator's own picture of a node: what it told the kernel, and what actions made of it.

Nothing here asks the kernel. The rules are those of the specification, written a second time and as
plainly as possible: no heaps, no caches, only lists that are walked. Where the picture and the
kernel part ways, one of the two is wrong.
"""

from bisect import insort
from operator import attrgetter

import msgspec

from headway.model.run import (
    AgentName,
    LaneName,
    QueueOptions,
    Run,
    RunId,
    SessionKey,
)
from headway.model.settings import (
    DEFAULT_LANES,
    LANE_ALIASES,
    MAIN,
    AgentSettings,
    LaneSettings,
    Limits,
    QueueSettings,
    Settings,
)
from headway.model.time import Instant
from headway.model.words import State
from headway.testing.simulation.memories import Memories
from headway.testing.simulation.seen import (
    Seen,
    SeenAgent,
    SeenLane,
    SeenSession,
    Where,
    Window,
    changed,
)

_BY_PLACE = attrgetter("place")


class Mirror:
    """One node as the simulator sees it."""

    def __init__(self, settings: Settings, now: Instant) -> None:
        self.settings = settings
        self.now = now
        self.limits: Limits = settings.limits
        self.lanes: dict[LaneName, SeenLane] = {}
        self.agents: dict[AgentName, SeenAgent] = {}
        self.holds: dict[str, Instant] = {}
        """Until when each provider asked to wait; an agent without a key is its own."""
        self.sessions: dict[SessionKey, SeenSession] = {}
        self.memories = Memories()
        self.runs: dict[RunId, Seen] = {}
        self.attempts: dict[int, Seen] = {}
        self.tasks = 0
        self.draining = False
        self.closing = False
        """Whether a drain's grace is over."""
        self.keeps_waiting = True
        self.gated = False
        self.estimating = False
        self._orders = 0
        self._places = 0
        self._served = 0
        for name, lane in settings.lanes.items():
            self.set_lane(name, lane)
        if MAIN not in self.lanes:
            self.set_lane(MAIN, DEFAULT_LANES[MAIN])

    # Lanes, agents, sessions.

    def set_lane(self, name: LaneName, settings: LaneSettings) -> None:
        name = LANE_ALIASES.get(name, name)
        lane = self.lanes.get(name)
        if lane is None:
            lane = self.lanes[name] = SeenLane(name, settings)
        lane.budget = changed(lane.budget, settings.budget, self.now)
        lane.settings = settings

    def set_agent(self, name: AgentName, settings: AgentSettings) -> None:
        agent = self.agent(name)
        agent.budget = changed(agent.budget, settings.budget, self.now)
        agent.settings = settings
        agent.weighted |= settings.weight > 1

    def lane(self, name: LaneName) -> SeenLane:
        return self.lanes.get(LANE_ALIASES.get(name, name)) or self.lanes[MAIN]

    def agent(self, name: AgentName) -> SeenAgent:
        agent = self.agents.get(name)
        if agent is None:
            settings = self.settings.agents.get(name, AgentSettings())
            agent = self.agents[name] = SeenAgent(name, settings)
            agent.budget = changed(None, settings.budget, self.now)
            agent.weighted = settings.weight > 1
        return agent

    def session(self, key: SessionKey) -> SeenSession:
        session = self.sessions.get(key)
        if session is None:
            session = self.sessions[key] = SeenSession(key)
        return session

    def queue_settings(self, run: Run) -> QueueSettings:
        """What the run goes by: itself, else its session, else its channel, else the node (S-5)."""
        layers: list[QueueOptions | None] = [run.queue, self.memories.of(run.session).options]
        wide = self.settings.queue
        if run.route is None:
            wide = msgspec.structs.replace(wide, debounce=0)
        else:
            layers.append(self.settings.channels.get(run.route.channel))
        said = {}
        for layer in reversed(layers):
            if layer is not None:
                for name in QueueOptions.__struct_fields__:
                    value = getattr(layer, name)
                    if value is not None:
                        said[name] = value
        return msgspec.structs.replace(wide, **said) if said else wide

    # Moves of runs.

    def admit(self, run: Run, parent: Seen | None, state: State) -> Seen:
        """A run is known from now on; it has no place yet."""
        session = self.session(run.session)
        seen = Seen(run, self.lane(run.lane), self.agent(run.agent), session, state)
        if parent is not None:
            seen.parent = parent
            seen.root = parent.root or parent.session
            seen.root.offspring += 1
            seen.background |= parent.background
        self.runs[run.id] = seen
        return seen

    def line_up(self, seen: Seen, *, first: bool = False) -> None:
        """It takes its place: at the end, or in front of all; heartbeats step behind a message."""
        line = seen.session.line
        self._orders += 1
        seen.order = self._orders
        seen.state = State.QUEUED
        seen.where = Where.LINE
        seen.queued_at = self.now
        seen.rank = self.now + seen.run.priority * self.settings.ageing
        seen.started_before = seen.lane.started
        if first and line:
            seen.place = line[0].place - 0.5
        else:
            self._places += 1
            seen.place = self._places
            if seen.message:
                for other in line:
                    if other.heartbeat:
                        self._places += 1
                        other.place = self._places
                line.sort(key=_BY_PLACE)
        insort(line, seen, key=_BY_PLACE)

    def rejoin(self, seen: Seen) -> None:
        """Back to the place it had, in front of all that came later; heartbeats let messages by."""
        line = seen.session.line
        seen.where = Where.LINE
        if seen.heartbeat:
            self._step_back(seen, line)
        insort(line, seen, key=_BY_PLACE)

    def _step_back(self, beat: Seen, line: list[Seen]) -> None:
        """Its place is behind the last message, among heartbeats there by their order."""
        last = max((index for index, other in enumerate(line) if other.message), default=-1)
        if last < 0 or line[last].place < beat.place:
            return
        behind = last + 1
        while behind < len(line) and line[behind].heartbeat and line[behind].order < beat.order:
            behind += 1
        after = line[behind].place if behind < len(line) else self._places + 1
        beat.place = (line[behind - 1].place + after) / 2

    def open_window(self, seen: Seen, key: tuple[object, ...], span: Instant) -> None:
        """It is in a debounce window, which starts anew with it."""
        window = seen.session.windows.get(key)
        if window is None:
            latest_at = self.now + span * self.settings.debounce_limit
            window = seen.session.windows[key] = Window(0, latest_at)
        window.closes_at = min(self.now + span, window.latest_at)
        window.parts.append(seen)
        seen.where = Where.WINDOW
        seen.window = key

    def take_out(self, seen: Seen) -> None:
        """It leaves the place where it waits."""
        session = seen.session
        match seen.where:
            case Where.LINE:
                session.line.remove(seen)
            case Where.LATER:
                session.later -= 1
            case Where.WINDOW:
                assert seen.window is not None
                window = session.windows[seen.window]
                window.parts.remove(seen)
                if not window.parts:
                    del session.windows[seen.window]
            case Where.TURN:
                assert seen.taken_by is not None
                seen.taken_by.taken.remove(seen)
                seen.taken_by = None
            case _:
                pass
        seen.where = Where.NOWHERE

    def start(
        self, seen: Seen, ticket: int, lender: Seen | None = None, *, ahead: bool = False
    ) -> None:
        seen.session.line.remove(seen)
        seen.session.running.append(seen)
        seen.session.tight = None
        seen.session.asked = False
        seen.where = Where.SLOT
        seen.state = State.ASSIGNED if self.gated or ahead else State.RUNNING
        seen.ahead = ahead
        seen.ticket = ticket
        seen.attempt += 1
        seen.started_at = self.now
        seen.lender = lender
        if lender is not None:
            lender.lent_to = seen
        seen.lane.live.append(seen)
        self.attempts[ticket] = seen
        if not ahead:
            self._take_slot(seen)

    def call_up(self, seen: Seen) -> None:
        """It was started ahead, and has its slot now."""
        seen.ahead = False
        seen.started_at = self.now
        self._take_slot(seen)

    def _take_slot(self, seen: Seen) -> None:
        """It begins, and weighs on its agent and on budgets."""
        seen.begun = True
        lane, agent = seen.lane, seen.agent
        lane.started += 1
        agent.inflight += 1
        self._served += 1
        agent.served = self._served
        for budget in (lane.budget, agent.budget):
            if budget is not None and budget.runs is not None:
                budget.runs.take(1, self.now)
        if seen.task:
            self.tasks += 1
            agent.tasks += 1

    def step_down(self, seen: Seen) -> None:
        """Its attempt is over: it gives back what it held. What it lent goes on with who has it."""
        del self.attempts[seen.ticket]
        session = seen.session
        session.running.remove(seen)
        session.tight = None
        session.asked = False
        if seen.clears:
            seen.clears = False
            seen.lane.owed += 1
        if not seen.ahead:
            seen.agent.inflight -= 1
        seen.ticket = 0
        seen.ahead = False
        seen.cut = None
        seen.where = Where.NOWHERE
        seen.lane.live.remove(seen)
        if seen.task:
            self.tasks -= 1
            seen.agent.tasks -= 1
        for other in seen.awaiting:
            other.awaited_by.remove(seen)
        seen.awaiting.clear()
        lender, borrower = seen.lender, seen.lent_to
        seen.lender = seen.lent_to = None
        if lender is not None:
            lender.lent_to = borrower
        if borrower is not None:
            borrower.lender = lender
            self.check_lending(borrower)

    def forget(self, seen: Seen) -> None:
        """It has ended."""
        del self.runs[seen.run.id]
        if seen.root is not None:
            seen.root.offspring -= 1
        for other in self.runs.values():
            if other.parent is seen:
                other.parent = seen.parent
        for waiter in seen.awaited_by:
            waiter.awaiting.remove(seen)
            self.check_lending(waiter.lent_to)
        seen.awaited_by.clear()

    def begin_wait(self, waiter: Seen, other: Seen) -> None:
        waiter.awaiting.append(other)
        other.awaited_by.append(waiter)

    def end_wait(self, waiter: Seen, other: Seen) -> None:
        if other in waiter.awaiting:
            waiter.awaiting.remove(other)
            other.awaited_by.remove(waiter)
            self.check_lending(waiter.lent_to)

    def check_lending(self, borrower: Seen | None) -> None:
        """What a lender gave away is the borrower's own, once it no longer waits for it."""
        if borrower is not None and borrower.lender is not None:
            lender = borrower.lender
            if lender not in borrower.waiters():
                lender.lent_to = borrower.lender = None

    # Questions.

    def free_lender(self, seen: Seen) -> Seen | None:
        for waiter in seen.waiters():
            if waiter.lane is seen.lane and waiter.lent_to is None:
                return waiter
        return None

    def waiting_tasks(self, agent: SeenAgent | None = None) -> int:
        return sum(
            1
            for seen in self.runs.values()
            if seen.task and not seen.ticket and (agent is None or seen.agent is agent)
        )

    def yielding(self, lane: SeenLane) -> int:
        """Attempts that were cut for a user's turn and have not returned."""
        return sum(1 for seen in lane.live if seen.clears)
