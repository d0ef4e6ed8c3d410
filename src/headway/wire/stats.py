"""What a node is at, as JSON."""

from typing import Annotated

from msgspec import Meta

from headway.model.settings import Limits
from headway.model.time import instant_text
from headway.model.views import AgentLoad, Stats
from headway.wire.base import Answer, Moment, maybe_length
from headway.wire.lanes import LaneAnswer, lane_answer
from headway.wire.names import AgentName, Number, ShownLength


class LimitsAnswer(Answer, frozen=True, kw_only=True):
    """The limits for tasks (F-1): admission over all nodes, execution on this one."""

    max_queue: Number
    max_queue_per_agent: Number
    max_inflight: Number
    max_inflight_per_agent: Number


class AgentLoadAnswer(Answer, frozen=True, kw_only=True):
    """What one agent has on this node."""

    agent_id: AgentName
    queued: Annotated[Number, Meta(description="Tasks that wait.")]
    inflight: Annotated[Number, Meta(description="Tasks that run.")]
    waiting: Annotated[Number, Meta(description="Runs of any kind that wait.")]
    running: Annotated[Number, Meta(description="Runs of any kind that run.")]


class StatsAnswer(Answer, frozen=True, kw_only=True):
    """What this node is at (T-1)."""

    node: Number
    name: str
    started_at: Moment
    draining: bool
    limits: LimitsAnswer
    queued: Annotated[Number, Meta(description="Tasks that wait.")]
    inflight: Annotated[Number, Meta(description="Tasks that run.")]
    agents: tuple[AgentLoadAnswer, ...]
    lanes: tuple[LaneAnswer, ...]
    sessions: Annotated[Number, Meta(description="Sessions that have work here.")]
    unknown_lanes: Annotated[
        Number, Meta(description="Runs that named a lane there is not, and went to `main` (L-1).")
    ]
    lease_left: Annotated[
        ShownLength | None,
        Meta(description="How long the node may act without another sign of life. null: for ever."),
    ]


def stats_answer(stats: Stats, agent: str | None = None) -> StatsAnswer:
    """All of it; for whoever sees only one agent, with the load of that one alone."""
    return StatsAnswer(
        node=stats.node,
        name=stats.name,
        started_at=instant_text(stats.started_at),
        draining=stats.draining,
        limits=_limits(stats.limits),
        queued=stats.queued,
        inflight=stats.inflight,
        agents=tuple(_load(load) for load in stats.agents if agent in {None, load.name}),
        lanes=tuple(lane_answer(lane) for lane in stats.lanes),
        sessions=stats.sessions,
        unknown_lanes=stats.unknown_lanes,
        lease_left=maybe_length(stats.lease_left),
    )


def _limits(limits: Limits) -> LimitsAnswer:
    return LimitsAnswer(
        max_queue=limits.max_queue,
        max_queue_per_agent=limits.max_queue_per_agent,
        max_inflight=limits.max_inflight,
        max_inflight_per_agent=limits.max_inflight_per_agent,
    )


def _load(load: AgentLoad) -> AgentLoadAnswer:
    return AgentLoadAnswer(
        agent_id=load.name,
        queued=load.queued,
        inflight=load.inflight,
        waiting=load.waiting,
        running=load.running,
    )
