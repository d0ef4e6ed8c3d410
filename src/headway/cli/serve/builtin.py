"""The agents of a server that was given none: enough for the first minute."""

import msgspec

from headway import Headway, Reply, Turn
from headway.cli.jobs.options import COMMAND_AGENT

ECHO = "echo"


def add_echo(headway: Headway) -> None:
    """An agent that answers what it was told; to a task, the task."""
    headway.agent(ECHO)(_echo)


def add_commands(headway: Headway) -> None:
    """The agent that runs the commands of jobs."""
    if COMMAND_AGENT not in headway.agents:
        headway.commands(COMMAND_AGENT)


async def _echo(turn: Turn) -> Reply:
    task = turn.run.task
    if task is None:
        return Reply(turn.text)
    return Reply(turn.text or task.action, data=msgspec.to_builtins(task))
