"""Lanes, as text for people."""

from collections.abc import Sequence

from headway.cli.answers import NOTHING
from headway.cli.tables import table
from headway.wire.lanes import LaneAnswer


def lanes_table(lanes: Sequence[LaneAnswer]) -> str:
    if not lanes:
        return "no lanes"
    head = ("lane", "width", "reserve", "running", "waiting", "started", "cluster", "per minute")
    rows = [
        (
            lane.name,
            "paused" if lane.paused else str(lane.width),
            str(lane.reserve),
            str(lane.running),
            str(lane.waiting),
            str(lane.started),
            NOTHING if lane.cluster_limit is None else str(lane.cluster_limit),
            budget_text(lane),
        )
        for lane in lanes
    ]
    return table(head, rows)


def budget_text(lane: LaneAnswer) -> str:
    parts = [
        f"{amount} {what}"
        for amount, what in ((lane.runs_per_minute, "runs"), (lane.tokens_per_minute, "tokens"))
        if amount is not None
    ]
    return ", ".join(parts) or NOTHING


def lane_line(lane: LaneAnswer) -> str:
    width = "paused" if lane.paused else f"{lane.width} wide"
    reserve = f", {lane.reserve} of them for interactive work" if lane.reserve else ""
    return f"lane {lane.name} is {width}{reserve}; {lane.running} run, {lane.waiting} wait"
