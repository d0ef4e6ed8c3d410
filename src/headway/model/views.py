"""What readers see: snapshots of runs, lanes and sessions, and why a run waits."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from headway.model.job import Job
from headway.model.outcome import Outcome
from headway.model.run import AgentName, JobId, LaneName, QueueOptions, Run, RunId, SessionKey
from headway.model.settings import Budget, Limits
from headway.model.time import Instant, Span, instant_text, span_text
from headway.model.value import Value
from headway.model.words import Rule, State


class RunView(Value, frozen=True):
    """A run as it is at one moment."""

    run: Run
    state: State
    attempt: int = 0
    started_at: Instant | None = None
    finished_at: Instant | None = None
    outcome: Outcome | None = None
    cancelling: bool = False
    node: int = 0
    """The node that runs it; 0 while none does."""

    @property
    def id(self) -> RunId:
        return self.run.id


class Branch(Value, frozen=True):
    """A run in a tree: `depth` 0 is the one that the tree was asked for."""

    depth: int
    view: RunView


class RunTree(Value, frozen=True):
    """A run and all that it started, each behind the one that asked for it."""

    branches: tuple[Branch, ...]
    more: bool = False
    """Whether there are more than are shown."""


class LaneView(Value, frozen=True):
    """How full a lane is."""

    name: LaneName
    width: int
    running: int
    waiting: int
    reserve: int = 0
    started: int = 0
    paused: bool = False
    """Whether nothing starts in it, because its width is 0."""
    cluster_limit: int | None = None
    """How many of its runs go at once over all nodes; None: as many as their widths allow (L-8)."""
    budget: Budget = Budget()


class SessionView(Value, frozen=True):
    """What a session is at."""

    key: SessionKey
    running: tuple[RunId, ...] = ()
    waiting: tuple[RunId, ...] = ()
    debouncing: tuple[RunId, ...] = ()
    options: QueueOptions | None = None
    agents: tuple[AgentName, ...] = ()
    """Whose runs these are, each once."""


class AgentLoad(Value, frozen=True):
    """What an agent has on its plate on one node."""

    name: AgentName
    queued: int = 0
    """Tasks that wait."""
    inflight: int = 0
    """Tasks that run."""
    waiting: int = 0
    """Runs of any source that wait."""
    running: int = 0


class Stats(Value, frozen=True):
    """What a node is at, in numbers."""

    node: int
    """Its number among all that share its store; 0: it owns nothing."""
    name: str
    started_at: Instant
    draining: bool
    limits: Limits
    queued: int
    """Tasks that wait."""
    inflight: int
    """Tasks that run."""
    agents: tuple[AgentLoad, ...] = ()
    lanes: tuple[LaneView, ...] = ()
    sessions: int = 0
    """Sessions with work in them."""
    unknown_lanes: int = 0
    """Runs that named a lane which does not exist, and went to `main` (L-1)."""
    lease_left: Span | None = None
    """How long the node may act if it cannot renew; None: it needs no lease."""


class Reloaded(Value, frozen=True):
    """What new settings have changed, and what of them waits for a new start: names such as `lanes.main`."""

    changed: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()


class JobView(Value, frozen=True):
    """A job as it is at one moment (C-1)."""

    job: Job
    next_run_at: Instant | None = None
    last_run_at: Instant | None = None
    last_outcome: State | None = None
    last_error: str = ""
    consecutive_failures: int = 0
    unfinished: int = 0
    """How many of its runs wait or run just now."""
    paused: str = ""
    """Why Headway has disabled it by itself, if it has."""

    @property
    def id(self) -> JobId:
        return self.job.id

    @property
    def name(self) -> str:
        return self.job.name

    @property
    def agent(self) -> AgentName:
        return self.job.agent

    @property
    def enabled(self) -> bool:
        return self.job.enabled


class JobViews(Value, frozen=True):
    """One page of jobs, and the cursor of the next one."""

    jobs: tuple[JobView, ...]
    cursor: str | None = None


class NodeView(Value, frozen=True):
    """A node, as the store knows it."""

    id: int
    name: str
    started_at: Instant
    counter: int
    lease: Span
    ended: str = ""
    """Empty while it lives; else how it ended: `retired` or `dead`."""
    sessions: int = 0
    running: int = 0
    host: str = ""
    """The machine that it runs on."""


class StoreStatus(Value, frozen=True):
    """What a store is at, read without changing anything."""

    store: str
    """Its address, without a password."""
    version: int
    """0: there is nothing yet."""
    newest: int
    """The version that this program brings it to."""
    pending: tuple[str, ...] = ()
    """The migrations that are still to run, in order."""
    runs: Mapping[State, int] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """How many runs there are, by state."""
    size: int = 0
    """Bytes on disk."""


class Why(Value, frozen=True):
    """Which rule holds a run, its place in line, and when it may start (X-1)."""

    run_id: RunId
    state: State
    rule: Rule | None = None
    """None: it runs or has ended, nothing holds it."""
    until: Instant | None = None
    by: RunId | None = None
    """The run that is in the way, if it is one."""
    lane: LaneName | None = None
    agent: AgentName | None = None
    session: SessionKey | None = None
    place: int | None = None
    """How many runs start before it, if nothing else arrives."""
    exact: bool = True
    """False: too much waits to try it out; the place is the number that rank before it."""
    starts_in: Span | None = None
    """A guess from how long its agents' runs took lately."""
    node: int | None = None
    """The node that decides for its session, if it is another one: its place in line is known there."""
    machine: str | None = None
    """The machine that it waits for, if it is one (W-2)."""

    def __str__(self) -> str:
        if self.rule is None:
            return f"run {self.run_id} is {self.state}: nothing holds it"
        untaken = self.rule is Rule.ELSEWHERE and self.node is None
        text = (_UNTAKEN if untaken else _SENTENCES[self.rule]).format(
            by=self.by,
            lane=self.lane,
            agent=self.agent,
            session=self.session,
            until=instant_text(self.until) if self.until is not None else "later",
            node=self.node,
            machine=self.machine,
        )
        if self.place is not None:
            about = "" if self.exact else "about "
            text += f"; {about}{self.place} start{'' if self.place == 1 else 's'} before it"
        if self.starts_in:
            text += f", in about {span_text(self.starts_in)}"
        return text


_SENTENCES: dict[Rule, str] = {
    Rule.NOT_DUE: "not due before {until}",
    Rule.DEBOUNCE: "more text may follow: collecting until {until}",
    Rule.RETRY: "tried again at {until}",
    Rule.COLLECTING: "waits for a quiet moment, until {until}",
    Rule.SESSION_BUSY: "session {session} is busy with run {by}",
    Rule.SESSION_ORDER: "run {by} of session {session} comes first",
    Rule.SESSION_THROTTLED: "session {session} has little context left, so it runs one at a time: run {by}",
    Rule.ESTIMATING: "finding out how much context session {session} has left",
    Rule.STEERED: "taken over by run {by}",
    Rule.RATE_LIMITED: "the provider of agent {agent} asked to wait until {until}",
    Rule.AGENT_BUDGET: "agent {agent} has used up its budget until {until}",
    Rule.LANE_BUDGET: "lane {lane} has used up its budget until {until}",
    Rule.AGENT_QUOTA: "agent {agent} has as many tasks in flight as it may",
    Rule.INFLIGHT_LIMIT: "as many tasks are in flight as may be",
    Rule.LANE_PAUSED: "lane {lane} is paused",
    Rule.LANE_RESERVED: "the free slots of lane {lane} are reserved for interactive work",
    Rule.LANE_FULL: "lane {lane} is full",
    Rule.DRAINING: "the node is draining: it starts nothing new",
    Rule.SUSPENDED: "the node cannot reach its store in time, so it starts nothing",
    Rule.ADOPTION: "its worker may live on: machine {machine} can go on with it until {until}",
    Rule.ELSEWHERE: "node {node} decides for session {session}, and has not started it yet",
    Rule.STARTING: "about to start",
}
_UNTAKEN = "no node that runs agent {agent} has taken session {session} yet: one does as soon as it has room"
