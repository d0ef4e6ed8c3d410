"""What the simulated cluster can find fault with; each promise has a name that findings give."""

from headway.model.words import Word


class Broken(Word):
    """What must hold in every history of a cluster."""

    CRASH = "crash"
    """An engine or a store raised what it must not."""
    NEVER_RESTS = "never_rests"
    """A node is busy for ever without any time passing."""
    LOST = "lost"
    """What was acknowledged is in the store, and ends (D-1)."""
    ONE_OUTCOME = "one_outcome"
    """A stored outcome never changes, and is that of the attempt that counted (R-2, R-4, D-4)."""
    CALLER = "caller"
    """Everybody who waits on a node that lives is told, and told what was stored (R-2)."""
    OWNER = "owner"
    """An attempt begins only on its session's owner, under its epoch, while the lease holds (D-3, D-4)."""
    OVERLAP = "overlap"
    """No more live attempts of a session than it allows, over all nodes (S-1, D-4)."""
    ORDER = "order"
    """Inside a session runs begin in the order in which they were stored (S-1)."""
    FENCE = "fence"
    """Fences of a session only grow (X-4)."""
    ATTEMPTS = "attempts"
    """No run is begun more often than it allows, and none gives up before (D-7)."""
    ZOMBIE = "zombie"
    """An attempt whose node owns its session no longer ends soon (D-3)."""
    LANE = "lane"
    """No lane goes beyond its width on a node (L-2)."""
    CLUSTER_LIMIT = "cluster_limit"
    """No lane goes beyond its cluster limit over all nodes (L-8)."""
    DEADLINE = "deadline"
    """Nothing begins after its deadline (F-5)."""
    KEYS = "keys"
    """A message id or idempotency key leads to one run (S-8, D-6)."""
    STEERING = "steering"
    """A steered message is consumed by the turn that counted, or becomes a turn of its own (X-2)."""
    CHILDREN = "children"
    """A run that was stopped, or has ended, starts nothing any more (X-3)."""
    ANSWER = "answer"
    """Every order gets its answer (D-10)."""
    OUTBOX = "outbox"
    """What is stored for a channel is delivered, and nothing else (X-4)."""
    FIRED_TWICE = "fired_twice"
    """A due time of a job makes at most one run, over all nodes (C-5)."""
    CADENCE = "cadence"
    """The due times of a job are its schedule's, and each is in the log, once: run, missed or skipped (C-5)."""
    PAUSED = "paused"
    """A job that was paused makes no run, also where a node had read it before (C-10)."""
    TWO_WORKERS = "two_workers"
    """An attempt has one worker at most, over all machines and crashes (W-2)."""
    GIVEN_UP = "given_up"
    """A worker that lives on its node's machine is adopted: its run is not taken over around it (W-2)."""
    RESERVED = "reserved"
    """Within the grace a run whose worker may live is left to its machine (W-2)."""
    LIVE_NODE = "live_node"
    """A live node is never declared dead (D-3)."""
    LEFT_OVER = "left_over"
    """When all is over the store holds no owner, no live attempt, no slot and no idle session (S-4)."""


class Violation(AssertionError):
    """A promise was not kept."""

    def __init__(self, promise: Broken, text: str) -> None:
        self.promise = promise
        self.text = text
        super().__init__(f"{promise}: {text}")
