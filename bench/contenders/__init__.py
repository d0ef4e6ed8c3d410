"""Those that `bench peers` measures: each drains the same trivial async jobs from one PostgreSQL.

A contender is a module here with an async `drain(url, …)`. Each drain runs in a process of its own
(`python -m bench.contenders NAME OPTIONS`), so that none warms up or burdens the next, and prints what it found
as one line of JSON. All jobs are stored before the first one starts. The clock runs from the first call of the
job's function until the database says that the last one is done: starting and stopping a worker counts for nobody.
With `analysed` the database is vacuumed, analysed and checkpointed when all is stored, before the first start.
Without it the planner knows as much of the new rows as autovacuum has told it: so a user meets it.
"""
