"""A simulated cluster: real engines on one real database, each node on an event loop of its own, in virtual time.

    play                 one history from its seed to its end
    history              draws what happens (the only place with randomness, besides faults and agents)
    rush                 the same with many short runs, whose starts are stored ahead of their slots
    cluster, nodes       the nodes: started, frozen, crashed and closed from outside
    loops, clocks        one loop and one clock for each node, stepped by the conductor
    faults               what goes wrong between a node and its store
    agents, journal      what attempts do, and what they write down
    machines             where nodes run, and what goes on there when one is gone
    database             the shared database, and a reader that looks past all stores
    timetable            its jobs, and what must hold of their firings
    witness, verdict     what must hold while it happens, and when all is over

Nodes know nothing of each other but through the database. The witness never asks an engine; it goes by what was
really stored and what agents really did. If this room is wrong, a broken cluster passes, so
`tests/simulation/cluster` also breaks each rule of many nodes on purpose.
"""

from headway.testing.cluster.cluster import Cluster
from headway.testing.cluster.faults import CALM, Weather
from headway.testing.cluster.nodes import Node
from headway.testing.cluster.play import ClusterFinding, simulate_cluster
from headway.testing.cluster.violation import Broken, Violation

__all__ = [
    "CALM",
    "Broken",
    "Cluster",
    "ClusterFinding",
    "Node",
    "Violation",
    "Weather",
    "simulate_cluster",
]
