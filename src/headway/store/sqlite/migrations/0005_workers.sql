-- Workers and machines as they were seen (D-8), and which runs each run has below it. Only adds.

-- A worker as it was last found, as JSON, which process that was, and when.
CREATE TABLE workers (
    id TEXT PRIMARY KEY,
    agent TEXT NOT NULL,
    host TEXT NOT NULL,
    node INTEGER NOT NULL,
    process TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    at INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    state TEXT NOT NULL,
    body TEXT NOT NULL
) WITHOUT ROWID;

-- Those that live are few: who wants them of one agent reads all of these.
CREATE INDEX workers_living ON workers (started_at, id) WHERE dead = 0;

CREATE INDEX workers_dead ON workers (started_at, id) WHERE dead = 1;

CREATE INDEX workers_dead_of_agent ON workers (agent, started_at, id) WHERE dead = 1;

CREATE INDEX workers_dead_of_host ON workers (host, started_at, id) WHERE dead = 1;

-- A row that has died does not change any more, until it is forgotten.
CREATE INDEX workers_ended ON workers (at) WHERE dead = 1;

CREATE TABLE beats (
    worker TEXT NOT NULL,
    at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (worker, at)
) WITHOUT ROWID;

CREATE INDEX beats_at ON beats (at);

CREATE TABLE snapshots (
    host TEXT NOT NULL,
    at INTEGER NOT NULL,
    node INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (host, at, node)
) WITHOUT ROWID;

CREATE INDEX snapshots_at ON snapshots (at, node);

-- Sub-runs, once for each run above them, as long as they are kept; `offspring` has only those that are unfinished.
-- Written by triggers, so that runs of an older program are in it too.
CREATE TABLE kin (
    ancestor TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (ancestor, number)
) WITHOUT ROWID;

CREATE INDEX kin_of_run ON kin (number);

-- A name that begins with this sign is that of a session.
CREATE TRIGGER offspring_added AFTER INSERT ON offspring
WHEN substr(new.ancestor, 1, 1) <> char(31)
BEGIN INSERT OR IGNORE INTO kin (ancestor, number) VALUES (new.ancestor, new.number); END;

CREATE TRIGGER runs_gone AFTER DELETE ON runs
BEGIN DELETE FROM kin WHERE number = old.number; END;

-- What had ended before is in no tree.
INSERT INTO kin (ancestor, number)
SELECT ancestor, number FROM offspring WHERE substr(ancestor, 1, 1) <> char(31);
