-- name: due_deliveries
-- Index: outbox_due.
SELECT id, tries, body
FROM outbox
WHERE dead = 0 AND channel IN (SELECT value FROM json_each(?)) AND due_at <= ?
ORDER BY first_at, id
LIMIT ?;

-- name: defer_delivery
-- Index: the primary key of outbox.
UPDATE outbox SET due_at = ? WHERE id = ?;

-- name: delivered
-- Index: the primary key of outbox.
DELETE FROM outbox WHERE id = ?;

-- name: retry_delivery
-- Index: the primary key of outbox.
UPDATE outbox SET due_at = ?, tries = ?, error = ? WHERE id = ?;

-- name: dead_letter
-- Index: the primary key of outbox.
UPDATE outbox SET dead = 1, tries = ?, error = ? WHERE id = ?;

-- name: past_retention
-- Those that no key leads to any more. Index: runs_ended; keys_run.
SELECT number
FROM runs
WHERE
    task = ?
    AND finished_at <= ?
    AND NOT EXISTS (SELECT 1 FROM keys WHERE keys.run = runs.id AND keys.expires_at > ?)
ORDER BY finished_at
LIMIT ?;

-- name: forget_run
-- Index: the primary key of runs.
DELETE FROM runs WHERE number = ?;

-- name: forget_attempts
-- Index: past_attempts_of_run.
DELETE FROM past_attempts WHERE number = ?;

-- name: forget_keys
-- Index: keys_ends.
DELETE FROM keys
WHERE key IN (SELECT key FROM keys WHERE expires_at <= ? ORDER BY expires_at LIMIT ?);

-- name: forget_orders
-- Index: orders_answered.
DELETE FROM orders
WHERE id IN (SELECT id FROM orders WHERE answered_at <= ? ORDER BY answered_at LIMIT ?);

-- name: forget_nodes
-- A scan of nodes: they are few.
DELETE FROM nodes WHERE ended_at <= ?;

-- name: forget_events
-- A scan from the oldest on. Index: the primary key of events.
DELETE FROM events
WHERE number IN (SELECT number FROM events WHERE at <= ? ORDER BY number LIMIT ?);

-- name: forget_dead_letters
DELETE FROM outbox WHERE dead = 1 AND first_at <= ?;
