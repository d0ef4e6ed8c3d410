"""What each agent has on its plate: counted by looking at every live run once."""

from collections import Counter

from headway.core.kernel import Kernel
from headway.model.run import AgentName
from headway.model.views import AgentLoad


def agent_loads(kernel: Kernel) -> tuple[AgentLoad, ...]:
    """Every agent that this node knows of, by name."""
    stage = kernel.stage
    waiting: Counter[AgentName] = Counter()
    running: Counter[AgentName] = Counter()
    for live in stage.runs.values():
        (running if live.has_slot else waiting)[live.run.agent] += 1
    return tuple(
        AgentLoad(name, agent.waiting_tasks, agent.tasks, waiting[name], running[name])
        for name, agent in sorted(stage.floor.agents.items())
    )
