"""What agents and channels really did, written down outside of all nodes."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headway.model.run import Run, RunId
from headway.model.time import Instant
from headway.turn import Fence

if TYPE_CHECKING:
    from headway.testing.cluster.machines import Worker
    from headway.testing.cluster.nodes import Node


@dataclass(eq=False, slots=True)
class Attempt:
    """One call of an agent."""

    node: "Node"
    number: int
    """Which incarnation of the node it was."""
    run: Run
    attempt: int
    fence: Fence
    began_at: Instant
    cut_at: Instant | None = None
    """When it was asked to end."""
    ended_at: Instant | None = None
    done: bool = False
    """It returned a reply, which names its fence."""
    waits: int = 0
    """How many sub-runs it waits for just now: meanwhile its slot is lent (L-4)."""
    took: list[RunId] = field(default_factory=list)
    worker: "Worker | None" = None
    """What does its work, if that is outside of its node."""
    adopted: bool = False
    """Whether it goes on with a worker that another node has begun (W-2)."""

    def __str__(self) -> str:
        return f"{self.run.id} (attempt {self.attempt}, fence {self.fence}, node {self.node.name}/{self.number})"

    @property
    def reply(self) -> str:
        if self.worker is not None:
            return self.worker.reply
        return f"{self.run.id} {self.attempt} {self.fence}"
