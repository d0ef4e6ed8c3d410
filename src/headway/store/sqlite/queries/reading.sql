-- name: views
-- Index: runs.id; the primary keys of queue and attempts.
SELECT
    runs.number, runs.body, runs.state, runs.attempt, runs.started_at, runs.finished_at, runs.outcome,
    queue.state, queue.attempt, queue.cut, attempts.attempt, attempts.started_at, attempts.node
FROM runs
LEFT JOIN queue ON queue.number = runs.number
LEFT JOIN attempts ON attempts.number = runs.number
WHERE runs.id = ?;

-- name: outcomes
-- Index: runs.id.
SELECT json_group_array(json_array(id, outcome))
FROM runs
WHERE outcome IS NOT NULL AND id IN (VALUES /* rows */ (?));

-- name: answers
-- Index: the primary key of orders.
SELECT json_group_array(json_array(id, answer))
FROM orders
WHERE answer IS NOT NULL AND id IN (VALUES /* rows */ (?));

-- name: memory_of
-- Index: the primary key of sessions.
SELECT memory FROM sessions WHERE key = ?;

-- name: nodes
-- Scans of sessions and attempts: for people, who ask seldom.
SELECT
    id, name, started_at, counter, lease, ended,
    (SELECT count(*) FROM sessions WHERE sessions.owner = nodes.id),
    (SELECT count(*) FROM attempts WHERE attempts.node = nodes.id),
    host
FROM nodes
ORDER BY id;

-- name: counts
-- Scans: for people, who ask seldom.
SELECT state, count(*) FROM runs WHERE state IS NOT NULL GROUP BY state
UNION ALL
SELECT iif(attempts.number IS NULL, queue.state, 'running') AS state, count(*)
FROM queue
LEFT JOIN attempts ON attempts.number = queue.number
GROUP BY 1;
