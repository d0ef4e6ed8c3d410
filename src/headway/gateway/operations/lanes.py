"""What can be asked about lanes: how full they are, how wide they shall be."""

import msgspec
from msgspec import UNSET

from headway.gateway.access.caller import Caller
from headway.gateway.desk import Desk
from headway.gateway.errors import Conflict, NotThere
from headway.gateway.operations import operation
from headway.gateway.operations.pages import page_of
from headway.model.errors import InvalidInput
from headway.model.settings import LANE_ALIASES, Budget, LaneSettings
from headway.model.views import LaneView
from headway.model.words import Scope
from headway.wire.lanes import (
    LaneAnswer,
    LaneCleared,
    LanePage,
    LanePath,
    LaneRequest,
    LanesQuery,
    lane_answer,
)


@operation(Scope.READ)
async def list_lanes(desk: Desk, caller: Caller, asked: LanesQuery) -> LanePage:  # noqa: ARG001
    """List the lanes of this node by name: how wide, how full, how many wait."""
    lanes = desk.hw.lanes().values()
    page, cursor = page_of(lanes, lambda lane: lane.name, asked.limit, asked.cursor)
    return LanePage(lanes=tuple(map(lane_answer, page)), cursor=cursor)


@operation(Scope.READ)
async def get_lane(desk: Desk, caller: Caller, asked: LanePath) -> LaneAnswer:  # noqa: ARG001
    """Show one lane. `delegate` is another name of `team`."""
    return lane_answer(_lane(desk, asked.name))


@operation(Scope.CONTROL)
async def set_lane(desk: Desk, caller: Caller, asked: LaneRequest) -> LaneAnswer:
    """Make a lane or change one, at once (L-2): wider starts what waits, narrower lets what runs finish.

    It holds on this node until its next start. What is not said stays as it is; a new lane needs a width.
    """
    caller.need_all_agents()
    settings = _settings(desk, asked)
    if isinstance(settings, LaneSettings) and settings.reserve > settings.width:
        why = f"{settings.reserve} slots of {settings.width} cannot be kept for interactive work"
        raise Conflict(why, field="reserve")
    desk.hw.set_lane(asked.name, settings)
    return lane_answer(_lane(desk, asked.name))


@operation(Scope.CONTROL)
async def clear_lane(desk: Desk, caller: Caller, asked: LanePath) -> LaneCleared:
    """End all that waits in a lane; what runs goes on (L-5)."""
    caller.need_all_agents()
    lane = _lane(desk, asked.name)
    return LaneCleared(name=lane.name, cleared=desk.hw.clear_lane(lane.name))


@operation(Scope.CONTROL)
async def pause_lane(desk: Desk, caller: Caller, asked: LanePath) -> LaneAnswer:
    """Start nothing in a lane any more; what runs goes on."""
    caller.need_all_agents()
    desk.hw.pause_lane(_lane(desk, asked.name).name)
    return lane_answer(_lane(desk, asked.name))


@operation(Scope.CONTROL)
async def resume_lane(desk: Desk, caller: Caller, asked: LanePath) -> LaneAnswer:
    """Start again what waits in a paused lane, as many at once as before."""
    caller.need_all_agents()
    name = _lane(desk, asked.name).name
    try:
        desk.hw.resume_lane(name)
    except InvalidInput as wrong:
        raise Conflict(
            f"nobody knows how wide lane {name!r} was: give it a width", lane=name
        ) from wrong
    return lane_answer(_lane(desk, asked.name))


def _lane(desk: Desk, name: str) -> LaneView:
    lane = _known(desk, name)
    if lane is None:
        raise NotThere("lane", name)
    return lane


def _known(desk: Desk, name: str) -> LaneView | None:
    return desk.hw.lanes().get(LANE_ALIASES.get(name, name))


def _settings(desk: Desk, asked: LaneRequest) -> int | LaneSettings:
    """A width alone keeps all else, as the façade does it; anything more is put onto what there is."""
    said = msgspec.structs.asdict(asked)
    del said["name"]
    said = {name: value for name, value in said.items() if value is not UNSET}
    lane = _known(desk, asked.name)
    if lane is None and "width" not in said:
        raise NotThere("lane", asked.name)
    if isinstance(asked.width, int) and len(said) == 1:
        return asked.width
    plain = LaneSettings(0)
    if lane is not None:
        plain = LaneSettings(lane.width, lane.reserve, lane.budget, lane.cluster_limit)
    budget = {name: said.pop(name) for name in Budget.__struct_fields__ if name in said}
    return msgspec.structs.replace(
        plain, budget=msgspec.structs.replace(plain.budget, **budget), **said
    )
