-- Who may ask a server for what, and what a server is asked for most often.

-- The body is the whole token as JSON; names are unique among those that are there.
CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    body TEXT NOT NULL
) WITHOUT ROWID;

-- Lists of tasks do not look at messages, of which there may be far more. Entries come at its end, in order.
CREATE INDEX runs_tasks ON runs (number, agent, task) WHERE task = 1;
