-- Everything that a node must find again. Instants and spans are whole microseconds, values are JSON text.

-- Numbers that go on over restarts: the schema's version, the oldest program version that may use it, and the
-- counters of runs, epochs and nodes.
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

INSERT INTO meta (name, value)
VALUES ('version', 0), ('minimum', 1), ('runs', 0), ('epochs', 0), ('nodes', 0);

-- A session that somebody owns, that has unfinished work, or that remembers something. While nobody owns it, the
-- last six columns say what a claim must know of its work; without work they are null.
CREATE TABLE sessions (
    key TEXT PRIMARY KEY,
    owner INTEGER,
    epoch INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    memory TEXT,
    lane TEXT,
    agent TEXT,
    rank INTEGER,
    first INTEGER,
    ready_at INTEGER,
    deadline_at INTEGER
) WITHOUT ROWID;

-- Runs of the same rank go by their numbers: the order of submission is never left to the clock (F-2).
CREATE INDEX sessions_ready ON sessions (lane, agent, rank, first)
WHERE owner IS NULL AND ready_at IS NOT NULL;

CREATE INDEX sessions_due ON sessions (ready_at)
WHERE owner IS NULL AND ready_at IS NOT NULL;

-- A session with an order that nobody has carried out counts as one whose deadline has passed.
CREATE INDEX sessions_urgent ON sessions (deadline_at)
WHERE owner IS NULL AND deadline_at IS NOT NULL;

-- What was asked, and how it ended. The state of a run without one is in the queue.
CREATE TABLE runs (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    session TEXT NOT NULL,
    agent TEXT NOT NULL,
    task INTEGER NOT NULL,
    state TEXT,
    attempt INTEGER NOT NULL DEFAULT 0,
    started_at INTEGER,
    finished_at INTEGER,
    taken_by TEXT,
    body TEXT NOT NULL,
    outcome TEXT
);

CREATE INDEX runs_of_session ON runs (session);

CREATE INDEX runs_ended ON runs (task, finished_at) WHERE finished_at IS NOT NULL;

CREATE INDEX runs_taken ON runs (taken_by) WHERE taken_by IS NOT NULL;

-- Runs without an outcome. What a start and a finish change has no index but the primary key.
CREATE TABLE queue (
    number INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    agent TEXT NOT NULL,
    lane TEXT NOT NULL,
    task INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    ready_at INTEGER NOT NULL,
    deadline_at INTEGER,
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,
    standing TEXT,
    begun INTEGER NOT NULL DEFAULT 0,
    orphaned INTEGER NOT NULL DEFAULT 0,
    cut TEXT,
    merged INTEGER NOT NULL DEFAULT 0,
    asked_by INTEGER
);

CREATE INDEX queue_of_session ON queue (session, seq);

CREATE INDEX queue_of_tasks ON queue (agent) WHERE task = 1;

-- Unfinished sub-runs, once for each run above them.
CREATE TABLE offspring (
    ancestor TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (ancestor, number)
) WITHOUT ROWID;

-- Live attempts. The unique index states that no two of a session share a slot (N-11).
CREATE TABLE attempts (
    number INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    slot INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    node INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    started_at INTEGER NOT NULL
);

CREATE UNIQUE INDEX attempts_slot ON attempts (session, slot);

-- Attempts that ended and did not end their run, and why.
CREATE TABLE past_attempts (
    id INTEGER PRIMARY KEY,
    number INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    node INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    ending TEXT NOT NULL
);

CREATE INDEX past_attempts_of_run ON past_attempts (number);

CREATE TABLE orders (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    command TEXT NOT NULL,
    asked_by INTEGER,
    answer TEXT,
    answered_at INTEGER
) WITHOUT ROWID;

CREATE INDEX orders_open ON orders (session, seq) WHERE answer IS NULL;

CREATE INDEX orders_answered ON orders (answered_at) WHERE answered_at IS NOT NULL;

CREATE TABLE keys (
    key TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX keys_ends ON keys (expires_at);
CREATE INDEX keys_run ON keys (run);

CREATE TABLE outbox (
    id TEXT PRIMARY KEY,
    channel TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0,
    dead INTEGER NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT '',
    body TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX outbox_due ON outbox (channel, due_at) WHERE dead = 0;

CREATE TABLE slots (
    lane TEXT NOT NULL,
    slot INTEGER NOT NULL,
    node INTEGER NOT NULL,
    PRIMARY KEY (lane, slot)
) WITHOUT ROWID;

-- The lowest number has wanted a slot for longest.
CREATE TABLE slot_wants (
    number INTEGER PRIMARY KEY,
    lane TEXT NOT NULL,
    node INTEGER NOT NULL,
    UNIQUE (lane, node)
);

CREATE TABLE nodes (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    counter INTEGER NOT NULL DEFAULT 0,
    lease INTEGER NOT NULL,
    ended TEXT NOT NULL DEFAULT '',
    ended_at INTEGER
);

CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    fields TEXT NOT NULL
);
