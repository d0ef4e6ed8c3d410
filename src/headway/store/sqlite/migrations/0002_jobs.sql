-- Rules that make runs over time, what they have made, and what they need beside it.

-- A job, and where it stands. `due_at` is when somebody must do something about it; of a disabled one it is null.
CREATE TABLE jobs (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    name TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    heartbeat INTEGER NOT NULL,
    delete_after_run INTEGER NOT NULL,
    needs TEXT NOT NULL,
    version INTEGER NOT NULL,
    due_at INTEGER,
    next_at INTEGER,
    wake_at INTEGER,
    claimed_until INTEGER,
    since INTEGER NOT NULL,
    paused TEXT,
    body TEXT NOT NULL
);

CREATE UNIQUE INDEX jobs_named ON jobs (agent, name);

-- What a job needs is part of the index: jobs that wait for another kind of node cost no look at their rows.
CREATE INDEX jobs_due ON jobs (due_at, number, needs) WHERE due_at IS NOT NULL;

-- Those to be deleted first: others may stand here for good.
CREATE INDEX jobs_settled ON jobs (delete_after_run DESC, number)
WHERE enabled = 1 AND due_at IS NULL;

-- What is counted of a job's runs as they end. It goes with its job.
CREATE TABLE tallies (
    job TEXT PRIMARY KEY,
    body TEXT NOT NULL
) WITHOUT ROWID;

CREATE TRIGGER jobs_gone AFTER DELETE ON jobs
BEGIN DELETE FROM tallies WHERE job = old.id; END;

-- The log. A line outlives its job and its run; `run_number` is that of its run among all runs, which is not given
-- twice.
CREATE TABLE firings (
    number INTEGER PRIMARY KEY,
    job TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    run TEXT,
    run_number INTEGER,
    reason TEXT,
    count INTEGER NOT NULL
);

-- A firing makes one run (C-5). The instant comes first, so that what fires together is written together.
CREATE UNIQUE INDEX firings_once ON firings (due_at, job) WHERE run IS NOT NULL;

-- Each line is in one of the next two: what a job has made, with all that its next firing depends on, and the rest.
CREATE INDEX firings_made ON firings (job, number, due_at, at, run_number)
WHERE run_number IS NOT NULL;

CREATE INDEX firings_unmade ON firings (job, number) WHERE run_number IS NULL;

CREATE INDEX firings_at ON firings (at);

-- Runs that jobs have made: how the latest ones ended is read with each firing, from here alone. (An index counts as
-- whole only if the column of its own condition is in it.)
ALTER TABLE runs ADD COLUMN fired INTEGER;

CREATE INDEX runs_fired ON runs (number, state, id, fired) WHERE fired = 1;

-- Where the latest message of an agent came from.
CREATE TABLE routes (
    agent TEXT PRIMARY KEY,
    route TEXT NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE texts (
    name TEXT PRIMARY KEY,
    text TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX outbox_dead ON outbox (first_at, id) WHERE dead = 1;
