"""The memory store: everything in this process, nothing promised beyond it.

`store` keeps the runs and puts the parts together, `outbox` what is to be said, `timetable` the jobs and when each
is due, `log` the lines of what jobs have made, `tokens` who may ask a server. There is one node, so each call is
whole by itself; and nothing may grow without bound, so each part forgets.
"""

from headway.store.memory.store import MemoryStore

__all__ = ["MemoryStore"]
