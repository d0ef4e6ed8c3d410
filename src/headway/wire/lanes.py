"""Lanes, as JSON."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from headway.config import MAX_WIDTH
from headway.model.views import LaneView
from headway.wire.base import Answer, Cursor, Limit, Request
from headway.wire.names import LaneName, Number

_MOST = 1_000_000_000
Width = Annotated[
    int, Meta(ge=0, le=MAX_WIDTH, description="How many runs go at once on this node; 0: none.")
]
Reserve = Annotated[
    int,
    Meta(
        ge=0,
        le=MAX_WIDTH,
        description="How many of the slots are kept for interactive work; at most the width.",
    ),
]
ClusterLimit = Annotated[
    int,
    Meta(
        ge=1,
        le=_MOST,
        description="How many go at once over all nodes, exactly. null: only widths count.",
    ),
]
PerMinute = Annotated[
    int, Meta(ge=1, le=_MOST, description="At most so many per minute. null: unbounded.")
]


class LanesQuery(Request, frozen=True, kw_only=True):
    """Which lanes to list."""

    limit: Limit = 100
    cursor: Cursor | None = None


class LanePath(Request, frozen=True, kw_only=True):
    """Which lane."""

    name: LaneName


class LaneRequest(LanePath, frozen=True, kw_only=True):
    """What to change of a lane, or a new one. What is not said stays; a new lane needs its width."""

    width: Width | UnsetType = UNSET
    reserve: Reserve | UnsetType = UNSET
    cluster_limit: ClusterLimit | UnsetType | None = UNSET
    runs_per_minute: PerMinute | UnsetType | None = UNSET
    tokens_per_minute: PerMinute | UnsetType | None = UNSET


class LaneAnswer(Answer, frozen=True, kw_only=True):
    """How wide a lane is on this node, and how full."""

    name: LaneName
    width: Width
    reserve: Reserve
    cluster_limit: ClusterLimit | None
    runs_per_minute: PerMinute | None
    tokens_per_minute: PerMinute | None
    paused: bool
    running: Number
    waiting: Number
    started: Annotated[Number, Meta(description="How many have begun since the node started.")]


class LanePage(Answer, frozen=True, kw_only=True):
    """Lanes by name."""

    lanes: tuple[LaneAnswer, ...]
    cursor: Cursor | None = None


class LaneCleared(Answer, frozen=True, kw_only=True):
    """How many waiting runs ended `cancelled/lane_cleared`."""

    name: LaneName
    cleared: Number


def lane_answer(lane: LaneView) -> LaneAnswer:
    return LaneAnswer(
        name=lane.name,
        width=lane.width,
        reserve=lane.reserve,
        cluster_limit=lane.cluster_limit,
        runs_per_minute=lane.budget.runs_per_minute,
        tokens_per_minute=lane.budget.tokens_per_minute,
        paused=lane.paused,
        running=lane.running,
        waiting=lane.waiting,
        started=lane.started,
    )
