"""For your own tests: virtual time, an inline Headway, and the simulator that Headway is tested with.

`virtual_time` turns an async test into a plain one in which hours pass in milliseconds; `Inline` drives a
`Headway` without any async code. Nothing outside this room and your tests may import it.
"""

from headway.testing.clock import VirtualClock, VirtualLoop, run_virtual, virtual_time

__all__ = ["VirtualClock", "VirtualLoop", "run_virtual", "virtual_time"]
