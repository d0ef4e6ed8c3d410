-- name: beat
-- Only what is newer, or the death of which its node tells; never of a process that is dead.
-- Index: the primary key of workers.
INSERT INTO workers (id, agent, host, node, process, started_at, at, dead, state, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    agent = excluded.agent,
    host = excluded.host,
    node = excluded.node,
    process = excluded.process,
    started_at = excluded.started_at,
    at = max(excluded.at, workers.at),
    dead = excluded.dead,
    state = excluded.state,
    body = excluded.body
WHERE
    CASE
        WHEN excluded.process <> workers.process THEN excluded.at > workers.at
        ELSE workers.dead = 0
            AND (excluded.at > workers.at OR (excluded.dead = 1 AND excluded.node = workers.node))
    END;

-- name: add_beat
-- At the instant that its worker has now. Index: the primary keys of workers and beats; beats_at.
INSERT INTO beats (worker, at, body)
SELECT id, at, ?2 FROM workers WHERE id = ?1
ON CONFLICT (worker, at) DO UPDATE SET body = excluded.body;

-- name: worker_page
-- The latest first. Index: workers_living; workers_dead, workers_dead_of_agent or workers_dead_of_host.
SELECT started_at, id, body
FROM workers
WHERE /* wanted */ TRUE
ORDER BY started_at DESC, id DESC
LIMIT ?;

-- name: worker
-- Index: the primary key of workers.
SELECT body FROM workers WHERE id = ?;

-- name: beats
-- Index: the primary key of beats.
SELECT at, body FROM beats WHERE worker = ? ORDER BY at DESC LIMIT ?;

-- name: keep_snapshot
-- Index: the primary key of snapshots; snapshots_at.
INSERT OR IGNORE INTO snapshots (host, at, node, body) VALUES (?, ?, ?, ?);

-- name: snapshot_page
-- The latest first. Index: snapshots_at; of one machine, the primary key of snapshots.
SELECT at, node, body
FROM snapshots
WHERE /* wanted */ TRUE
ORDER BY at DESC, node DESC
LIMIT ?;

-- name: machines
-- From each machine to the next, and to its latest one: no row is read beside those. Index: the primary key of snapshots.
WITH RECURSIVE machines (host) AS (
    SELECT min(host) FROM snapshots
    UNION ALL
    SELECT (SELECT min(snapshots.host) FROM snapshots WHERE snapshots.host > machines.host)
    FROM machines
    WHERE machines.host IS NOT NULL
)
SELECT (
    SELECT snapshots.body FROM snapshots
    WHERE snapshots.host = machines.host
    ORDER BY snapshots.at DESC, snapshots.node DESC
    LIMIT 1
)
FROM machines
WHERE machines.host IS NOT NULL
ORDER BY machines.host;

-- name: forget_beats
-- Index: beats_at.
DELETE FROM beats
WHERE (worker, at) IN (SELECT worker, at FROM beats WHERE at <= ? ORDER BY at LIMIT ?);

-- name: forget_dead_workers
-- Index: workers_ended; the primary key of workers.
DELETE FROM workers
WHERE id IN (SELECT id FROM workers WHERE dead = 1 AND at <= ? ORDER BY at LIMIT ?);

-- name: forget_lost_workers
-- What nobody looks at any more: its machine is gone. Index: workers_living, of which there are few.
DELETE FROM workers
WHERE id IN (SELECT id FROM workers WHERE dead = 0 AND at <= ? LIMIT ?);

-- name: forget_snapshots
-- Index: snapshots_at.
DELETE FROM snapshots
WHERE (host, at, node) IN (SELECT host, at, node FROM snapshots WHERE at <= ? ORDER BY at LIMIT ?);

-- name: tree
-- A run and those below it, with the columns of `views`. Index: runs.id; the primary keys of kin, queue and attempts.
SELECT
    runs.number, runs.body, runs.state, runs.attempt, runs.started_at, runs.finished_at, runs.outcome,
    queue.state, queue.attempt, queue.cut, attempts.attempt, attempts.started_at, attempts.node
FROM (
    SELECT number FROM runs WHERE id = ?1
    UNION ALL
    SELECT number FROM kin WHERE ancestor = ?1
    ORDER BY number
    LIMIT ?2
) AS wanted
JOIN runs ON runs.number = wanted.number
LEFT JOIN queue ON queue.number = runs.number
LEFT JOIN attempts ON attempts.number = runs.number
ORDER BY runs.number;
