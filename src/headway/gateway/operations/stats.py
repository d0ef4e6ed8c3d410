"""What this node is at."""

from headway.gateway.access.caller import Caller
from headway.gateway.desk import Desk
from headway.gateway.operations import operation
from headway.model.words import Scope
from headway.wire.health import NothingAsked
from headway.wire.stats import StatsAnswer, stats_answer


@operation(Scope.READ)
async def scheduler_stats(desk: Desk, caller: Caller, asked: NothingAsked) -> StatsAnswer:  # noqa: ARG001
    """Show what this node is at: tasks, agents, lanes, sessions and limits, in numbers (T-1).

    A token for one agent sees only that agent's load.
    """
    return stats_answer(desk.hw.stats(), caller.agent)
