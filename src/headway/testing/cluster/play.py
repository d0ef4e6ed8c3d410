"""One history of a cluster, played to its end; and how it reads if something was wrong with it."""

from headway.testing.cluster.cluster import Cluster
from headway.testing.cluster.history import History
from headway.testing.cluster.rush import Rush
from headway.testing.cluster.violation import Violation

SHOWN = 40


class ClusterFinding(Exception):
    """A history in which a promise was not kept, with the last things that happened."""

    def __init__(self, seed: int, violation: Violation, log: list[str]) -> None:
        self.seed = seed
        self.promise = violation.promise
        self.violation = violation
        self.log = log
        lines = "\n".join(log[-SHOWN:])
        super().__init__(f"seed {seed}: {violation}\n{lines}")


def simulate_cluster(seed: int, *, rush: bool = False) -> Cluster:
    """Play one history to its end, with a rush of short runs if asked for.

    Raises `ClusterFinding` if a promise was not kept.
    """
    history = Rush(seed) if rush else History(seed)
    with history.cluster as cluster:
        try:
            history.play()
            cluster.settle()
        except Violation as violation:
            raise ClusterFinding(seed, violation, cluster.log) from violation
    return cluster
