"""For your own tests: virtual time, a Headway without async code, and the kernel's simulator.

`virtual_time` turns an async test into a plain one in which hours pass in milliseconds; `Inline`
drives a `Headway` without any async code; `simulate` plays one random history against the kernel.
Nothing outside this room and your tests may import it.
"""

from headway.testing.clock import (
    TimeStandsStill,
    VirtualClock,
    VirtualLoop,
    run_virtual,
    virtual_time,
)
from headway.testing.inline import Inline
from headway.testing.simulation.play import Finding, simulate
from headway.testing.simulation.violation import Invariant

__all__ = [
    "Finding",
    "Inline",
    "Invariant",
    "TimeStandsStill",
    "VirtualClock",
    "VirtualLoop",
    "run_virtual",
    "simulate",
    "virtual_time",
]
