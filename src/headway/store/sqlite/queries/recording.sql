-- name: numbers_of
-- Runs that have no outcome yet. Index: runs.id; the primary key of queue.
SELECT json_group_array(json_array(runs.id, runs.number))
FROM runs
JOIN queue ON queue.number = runs.number
WHERE runs.id IN (VALUES /* rows */ (?));

-- name: begin_attempts
-- Index: the primary key of attempts, attempts_slot.
INSERT INTO attempts (number, session, slot, attempt, node, epoch, started_at, outlives)
SELECT * FROM (VALUES /* rows */ (?, ?, ?, ?, ?, ?, ?, ?)) WHERE column1 IS NOT NULL;

-- name: end_attempts
-- Index: the primary key of attempts.
DELETE FROM attempts WHERE number IN (VALUES /* rows */ (?));

-- name: attempt_in_slot
-- Index: attempts_slot.
SELECT number FROM attempts WHERE session = ? AND slot = ?;

-- name: past_attempt
-- An attempt that did not end its run. Index: the primary key of attempts.
INSERT INTO past_attempts (number, attempt, node, epoch, started_at, ended_at, ending)
SELECT number, attempt, node, epoch, started_at, ?, ? FROM attempts WHERE number = ?;

-- name: set_body
-- Index: the primary key of runs.
UPDATE runs SET body = ? WHERE number = ?;

-- name: finish_runs
-- The first outcome stays. Index: the primary key of runs; runs_ended, of a merged one runs_taken, of one that a job
-- made runs_fired.
UPDATE runs
SET
    state = ended.column2,
    outcome = ended.column3,
    attempt = ended.column4,
    started_at = ended.column5,
    finished_at = ended.column6,
    taken_by = ended.column7
FROM (VALUES /* rows */ (?, ?, ?, ?, ?, ?, ?)) AS ended
WHERE runs.number = ended.column1 AND runs.state IS NULL;

-- name: leave_queue
-- Index: the primary key of queue.
DELETE FROM queue WHERE number IN (VALUES /* rows */ (?));

-- name: leave_offspring
-- Index: the primary key of offspring.
DELETE FROM offspring WHERE ancestor = ? AND number = ?;

-- name: askers
-- Other nodes that asked for one of these runs. Index: the primary key of queue.
SELECT DISTINCT asked_by
FROM queue
WHERE asked_by <> ? AND number IN (VALUES /* rows */ (?));

-- name: wait
-- Index: the primary key of queue.
UPDATE queue
SET
    state = ?2,
    attempt = ?3,
    standing = ?4,
    begun = ?5,
    ready_at = max(?6, coalesce(?7, 0)),
    orphaned = 0,
    cut = NULL
WHERE number = ?1;

-- name: mark_cut
-- Index: the primary key of queue.
UPDATE queue SET cut = ? WHERE number = ?;

-- name: begin_again
-- What its last attempt left behind counts no more. Index: the primary key of queue.
UPDATE queue
SET cut = NULL, orphaned = 0
WHERE number IN (VALUES /* rows */ (?)) AND (cut IS NOT NULL OR orphaned);

-- name: descendants
-- Unfinished runs below one. Index: the primary keys of offspring, queue and runs.
SELECT queue.session, runs.id
FROM offspring
JOIN queue ON queue.number = offspring.number
JOIN runs ON runs.number = offspring.number
WHERE offspring.ancestor = ?
ORDER BY queue.session, queue.seq;

-- name: decide
-- A steered message keeps its place. Index: the primary key of queue.
UPDATE queue
SET standing = json_object('after', seq)
WHERE number = ? AND standing IS NULL;

-- name: remember
-- Index: the primary key of sessions.
UPDATE sessions SET memory = ? WHERE key = ?;

-- name: answer
-- Index: the primary key of orders.
UPDATE orders SET answer = ?, answered_at = ? WHERE id = ? RETURNING asked_by;

-- name: drop_idle
-- Of these sessions those with nothing unfinished and nothing to remember.
-- Index: the primary key of sessions; queue_of_session; orders_open.
DELETE FROM sessions
WHERE
    key IN (VALUES /* rows */ (?))
    AND memory IS NULL
    AND NOT EXISTS (SELECT 1 FROM queue WHERE queue.session = sessions.key)
    AND NOT EXISTS (
        SELECT 1 FROM orders WHERE orders.session = sessions.key AND orders.answer IS NULL
    );

-- name: free_session
-- Nobody's from now on: what a claim must know is taken from its first run that is ready, or from the run that
-- holds the session. Index: the primary key of sessions; queue_of_session; orders_open.
UPDATE sessions
SET
    owner = NULL,
    (lane, agent, ready_at) = (
        SELECT lane, agent, CASE WHEN orphaned THEN min(ready_at, ?2) ELSE ready_at END
        FROM queue
        WHERE queue.session = ?1
        ORDER BY begun DESC, ready_at, seq
        LIMIT 1
    ),
    (rank, first) = (SELECT min(rank), min(number) FROM queue WHERE queue.session = ?1),
    deadline_at = CASE
        WHEN EXISTS (SELECT 1 FROM orders WHERE orders.session = ?1 AND answer IS NULL) THEN 0
        ELSE (SELECT min(deadline_at) FROM queue WHERE queue.session = ?1)
    END
WHERE key = ?1
RETURNING ready_at IS NOT NULL OR deadline_at IS NOT NULL;

-- name: keyed_run
-- Index: runs.id.
SELECT body FROM runs WHERE id = ?;

-- name: taken_by
-- Index: runs_taken.
SELECT id FROM runs WHERE taken_by = ?;

-- name: free_key
-- Index: the primary key of keys.
DELETE FROM keys WHERE key = ? AND run = ?;

-- name: keep_event
INSERT INTO events (at, kind, fields) VALUES (?, ?, ?);
