-- name: sessions_of
-- Sessions by key, as one JSON text: a row for each would hand Python's lock over and back each time.
-- Index: the primary key of sessions.
SELECT json_group_array(json_array(
    key, owner, epoch, last_seq, memory, lane, agent, rank, first, ready_at, deadline_at
))
FROM sessions
WHERE key IN (VALUES /* rows */ (?));

-- name: counters
-- Index: the primary key of meta.
SELECT
    (SELECT value FROM meta WHERE name = 'runs'),
    (SELECT value FROM meta WHERE name = 'epochs');

-- name: set_counters
-- Index: the primary key of meta.
UPDATE meta
SET value = CASE name WHEN 'runs' THEN ? ELSE ? END
WHERE name IN ('runs', 'epochs');

-- name: keys_of
-- Keys that still hold, the run each leads to, and how that ended. Index: the primary key of keys; runs.id.
SELECT json_group_array(json_array(keys.key, keys.run, runs.state))
FROM keys
LEFT JOIN runs ON runs.id = keys.run
WHERE keys.expires_at > ? AND keys.key IN (VALUES /* rows */ (?));

-- name: take_keys
-- Index: the primary key of keys.
INSERT INTO keys (key, run, expires_at)
SELECT * FROM (VALUES /* rows */ (?, ?, ?)) WHERE column1 IS NOT NULL
ON CONFLICT (key) DO UPDATE SET run = excluded.run, expires_at = excluded.expires_at;

-- name: unstopped
-- Which of these runs have no outcome and were not told to end. Index: runs.id; the primary key of queue.
SELECT json_group_array(runs.id)
FROM runs
JOIN queue ON queue.number = runs.number
WHERE queue.cut IS NULL AND runs.id IN (VALUES /* rows */ (?));

-- name: ended_by_itself
-- Which of these runs ended without being told to: what they started lives on. Index: runs.id.
SELECT json_group_array(id)
FROM runs
WHERE state IS NOT NULL
AND coalesce(json_extract(outcome, '$.reason'), '')
    NOT IN ('stopped', 'superseded', 'deadline_running', 'timed_out')
AND id IN (VALUES /* rows */ (?));

-- name: waiting_tasks
-- Waiting tasks by agent, those that run not counted. Index: queue_of_tasks; the primary key of queue.
SELECT agent, sum(count) AS waiting
FROM (
    SELECT agent, count(*) AS count FROM queue WHERE task = 1 GROUP BY agent
    UNION ALL
    SELECT queue.agent, -1 FROM attempts JOIN queue ON queue.number = attempts.number
    WHERE queue.task = 1
)
GROUP BY agent;

-- name: add_runs
-- Index: the primary key of runs, runs.id, runs_of_session; of those that jobs made, runs_fired.
INSERT INTO runs (number, id, session, agent, task, fired, body)
SELECT * FROM (VALUES /* rows */ (?, ?, ?, ?, ?, ?, ?)) WHERE column1 IS NOT NULL;

-- name: add_refused
-- Runs that ended as they came. Index: the primary key of runs, runs.id, runs_of_session, runs_ended.
INSERT INTO runs (number, id, session, agent, task, fired, body, state, outcome, finished_at)
SELECT * FROM (VALUES /* rows */ (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)) WHERE column1 IS NOT NULL;

-- name: add_places
-- Index: the primary key of queue, queue_of_session, queue_of_tasks.
INSERT INTO queue (
    number, session, seq, agent, lane, task, rank, ready_at, deadline_at, state, merged, asked_by
)
SELECT * FROM (VALUES /* rows */ (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)) WHERE column1 IS NOT NULL;

-- name: add_offspring
-- Index: the primary key of offspring.
INSERT OR IGNORE INTO offspring (ancestor, number)
SELECT * FROM (VALUES /* rows */ (?, ?)) WHERE column1 IS NOT NULL;

-- name: put_sessions
-- Index: the primary key of sessions; the partial indexes only of sessions that nobody owns.
INSERT INTO sessions (key, owner, epoch, last_seq, lane, agent, rank, first, ready_at, deadline_at)
SELECT * FROM (VALUES /* rows */ (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)) WHERE column1 IS NOT NULL
ON CONFLICT (key) DO UPDATE SET
    owner = excluded.owner,
    epoch = excluded.epoch,
    last_seq = excluded.last_seq,
    lane = excluded.lane,
    agent = excluded.agent,
    rank = excluded.rank,
    first = excluded.first,
    ready_at = excluded.ready_at,
    deadline_at = excluded.deadline_at;

-- name: repeated_run
-- What is kept of a run that comes a second time. Index: runs.id; the primary key of queue.
SELECT runs.state, runs.outcome, queue.seq
FROM runs
LEFT JOIN queue ON queue.number = runs.number
WHERE runs.id = ?;

-- name: repeated_order
-- Index: the primary key of orders.
SELECT seq FROM orders WHERE id = ?;

-- name: has_runs
-- Index: queue_of_session.
SELECT EXISTS (SELECT 1 FROM queue WHERE session = ?1);

-- name: add_order
-- Index: the primary key of orders, orders_open.
INSERT OR IGNORE INTO orders (id, session, seq, command, asked_by) VALUES (?, ?, ?, ?, ?);
