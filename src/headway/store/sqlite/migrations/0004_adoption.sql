-- Work that outlives its node (W-2): on which machine a node runs, which attempts go on without it, and how long
-- their sessions are left to other nodes of that machine.

ALTER TABLE nodes ADD COLUMN host TEXT NOT NULL DEFAULT '';

ALTER TABLE nodes ADD COLUMN grace INTEGER NOT NULL DEFAULT 0;

ALTER TABLE attempts ADD COLUMN outlives INTEGER NOT NULL DEFAULT 0;

-- The machine on which a worker of an orphaned run may still be.
ALTER TABLE queue ADD COLUMN host TEXT;

-- Until then only nodes of that machine may claim the session. Whoever owns it next takes both away.
ALTER TABLE sessions ADD COLUMN reserved_for TEXT;

ALTER TABLE sessions ADD COLUMN reserved_until INTEGER;

CREATE INDEX sessions_reserved ON sessions (reserved_until) WHERE reserved_until IS NOT NULL;
