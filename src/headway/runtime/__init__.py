"""The room that acts: asyncio tasks, timers and callbacks live here and nowhere else.

The engine tells the kernel what happened, stores what the kernel decided, then carries it out, in that order. It
decides nothing itself. May import `ports`, `core`, `model` and `turn`; stores and runners reach it only through
their ports. If it acted before storing, a crash would forget what was already done.
"""
