-- name: due_deliveries
-- Index: outbox_due.
SELECT id, tries, first_at, body
FROM outbox
WHERE dead = 0 AND channel IN (SELECT value FROM json_each(?)) AND due_at <= ?
ORDER BY first_at, id
LIMIT ?;

-- name: defer_delivery
-- Index: the primary key of outbox.
UPDATE outbox SET due_at = ? WHERE id = ?;

-- name: let_go_deliveries
-- Index: outbox_due.
UPDATE outbox INDEXED BY outbox_due SET due_at = ?1 WHERE dead = 0 AND due_at BETWEEN ?2 AND ?3;

-- name: delivered
-- Index: the primary key of outbox.
DELETE FROM outbox WHERE id = ?;

-- name: retry_delivery
-- Index: the primary key of outbox.
UPDATE outbox SET due_at = ?, tries = ?, error = ? WHERE id = ?;

-- name: dead_letter
-- Index: the primary key of outbox.
UPDATE outbox SET dead = 1, tries = ?, error = ? WHERE id = ?;

-- name: say_once
-- Remembered, unless it is already and its time has not passed. Index: the primary key of keys; keys_ends; keys_run.
INSERT INTO keys (key, run, expires_at) VALUES (?1, ?2, ?3)
ON CONFLICT (key) DO UPDATE SET run = excluded.run, expires_at = excluded.expires_at
WHERE keys.expires_at <= ?4;

-- name: deliver
-- Index: the primary key of outbox, outbox_due.
INSERT OR IGNORE INTO outbox (id, channel, due_at, first_at, tries, body) VALUES (?, ?, ?, ?, ?, ?);

-- name: letters
-- The oldest first, after a place among them; a null channel is any. Index: outbox_dead; of what waits, outbox_due.
SELECT first_at, id, tries, error, iif(dead, NULL, due_at), body
FROM outbox
WHERE dead = ?1 AND (first_at, id) > (?2, ?3) AND (?4 IS NULL OR channel = ?4)
ORDER BY first_at, id
LIMIT ?5;

-- name: all_letters
-- Also the oldest first, what waits and what was given up. No index: a person looks, and there are few.
SELECT first_at, id, tries, error, iif(dead, NULL, due_at), body
FROM outbox
WHERE (first_at, id) > (?1, ?2) AND (?3 IS NULL OR channel = ?3)
ORDER BY first_at, id
LIMIT ?4;

-- name: retry_letter
-- Index: the primary key of outbox.
UPDATE outbox
SET dead = 0, due_at = ?2, first_at = ?2, tries = 0, error = ''
WHERE id = ?1 AND dead = 1;

-- name: count_letters
-- Index: outbox_due and outbox_dead, each of which has just these.
SELECT
    (SELECT count(*) FROM outbox INDEXED BY outbox_due WHERE dead = 0),
    (SELECT count(*) FROM outbox INDEXED BY outbox_dead WHERE dead = 1);

-- name: note_routes
-- Index: the primary key of routes.
INSERT INTO routes (agent, route, at)
SELECT * FROM (VALUES /* rows */ (?, ?, ?)) WHERE column1 IS NOT NULL
ON CONFLICT (agent) DO UPDATE SET route = excluded.route, at = excluded.at
WHERE excluded.at >= routes.at;

-- name: last_route
-- Index: the primary key of routes.
SELECT route FROM routes WHERE agent = ?;

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

-- name: forget_firings
-- But for those whose run is unfinished. Index: firings_at; the primary key of queue.
DELETE FROM firings
WHERE number IN (
    SELECT number FROM firings
    WHERE
        at <= ?
        AND NOT EXISTS (SELECT 1 FROM queue WHERE queue.number = firings.run_number)
    ORDER BY at
    LIMIT ?
);

-- name: give_up_letters
-- What nobody has taken: no node has the channel. Index: outbox_due.
UPDATE outbox SET dead = 1, error = ?1
WHERE dead = 0 AND due_at <= ?2;

-- name: forget_dead_letters
-- Index: outbox_dead.
DELETE FROM outbox WHERE dead = 1 AND first_at <= ?;
