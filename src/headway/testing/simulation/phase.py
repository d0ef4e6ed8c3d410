"""What the simulator does just now: the causes that the kernel's next actions may have."""

from dataclasses import dataclass, field

from headway.core.actions import Ended
from headway.model.run import RunId
from headway.model.settings import QueueSettings
from headway.model.time import Instant
from headway.model.words import Reason
from headway.testing.simulation.seen import Seen, SeenLane, SeenSession
from headway.testing.simulation.violation import Invariant, broken


@dataclass(slots=True, eq=False)
class Phase:
    """One call of the kernel: the first part is told before it, the rest gathers with actions."""

    since: Instant
    """Instants after this one may have been reached only in this phase."""
    returning: tuple[Seen, Ended] | None = None
    arriving: tuple[Seen, QueueSettings] | None = None
    """A message that will take its place, once what it brings about has been seen."""
    refused: RunId | None = None
    ending: frozenset[RunId] = frozenset()
    """What a stop or a clear may end, for the reason `ending_as`."""
    ending_as: Reason | None = None
    losing: frozenset[RunId] = frozenset()
    resetting: bool = False
    cutting_all: bool = False
    late: int | None = None
    """A ticket whose late return must be noted."""
    limits: bool = False
    """Whether a provider must be held back."""
    gives_up: RunId | None = None
    """A run whose worker died once too often: that must be noted."""
    resized: SeenLane | None = None
    """A lane whose width may have changed."""
    awaited: Seen | None = None
    """A run that a turn begins to wait for."""

    ahead: frozenset[int] = frozenset()
    """Tickets of which the kernel says that they have, or had in this call, no slot yet."""
    returned: bool = False
    abandoned: Seen | None = None
    noted: RunId | None = None
    superseded: list[SeenSession] = field(default_factory=list)
    """Where something was superseded; the message that did it takes its place next."""
    placed: list[Seen] = field(default_factory=list)
    """Messages that came into line; they may cut turns."""
    drops: list[tuple[Seen, int]] = field(default_factory=list)
    """Messages that gave way, and how many waited then; for whom they did comes next."""
    to_steer: Seen | None = None

    def check_complete(self) -> None:
        """The call is over: what was begun in it must have come to its end."""
        if self.superseded:
            broken(Invariant.REASON, f"{self.superseded[0].key} was superseded by nothing")
        if self.drops:
            broken(Invariant.REASON, f"{self.drops[0][0]} was dropped for nothing")
        if self.to_steer is not None:
            broken(Invariant.STEERING, f"{self.to_steer} was not offered to a turn")
        if self.late is not None:
            broken(Invariant.LATE_RESULT, f"the late return of {self.late} was not noted")
        if self.limits:
            broken(Invariant.BUDGET, "a rate limit holds nothing back")
        if self.gives_up is not None:
            broken(Invariant.RESUMING, f"{self.gives_up} was given up without a word")
        if self.abandoned is not None:
            broken(Invariant.ONE_OUTCOME, f"{self.abandoned} was abandoned and goes on")
        if self.returning is not None and not self.returned:
            broken(Invariant.ONE_OUTCOME, f"{self.returning[0]} has returned and goes on")
