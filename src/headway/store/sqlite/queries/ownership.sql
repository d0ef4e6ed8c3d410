-- name: next_node
-- Index: the primary key of meta.
UPDATE meta SET value = value + 1 WHERE name = 'nodes' RETURNING value;

-- name: add_node
INSERT INTO nodes (id, name, started_at, lease, host, grace) VALUES (?, ?, ?, ?, ?, ?);

-- name: lives
-- Index: the primary key of nodes.
SELECT EXISTS (SELECT 1 FROM nodes WHERE id = ? AND ended = '');

-- name: renew
-- Index: the primary key of nodes.
UPDATE nodes SET counter = counter + 1 WHERE id = ? AND ended = '';

-- name: peers
-- A scan of nodes: they are few, and ended ones are pruned.
SELECT id, counter, lease FROM nodes WHERE id <> ? AND ended = '' ORDER BY id;

-- name: end_node
-- Index: the primary key of nodes.
UPDATE nodes
SET ended = ?, ended_at = ?
WHERE id = ? AND ended = '' AND counter = coalesce(?, counter);

-- name: orphan_attempts
-- A scan of live attempts: they are as many as the lanes are wide.
INSERT INTO past_attempts (number, attempt, node, epoch, started_at, ended_at, ending)
SELECT number, attempt, node, epoch, started_at, ?, 'orphaned' FROM attempts WHERE node = ?;

-- name: orphan_places
-- Where a worker may have outlived a dead node, its machine is kept. A scan of live attempts; the primary keys of nodes
-- and queue.
UPDATE queue
SET orphaned = 1, attempt = live.attempt, host = live.host
FROM (
    SELECT
        attempts.number,
        attempts.attempt,
        iif(attempts.outlives AND nodes.ended = 'dead', nullif(nodes.host, ''), NULL) AS host
    FROM attempts
    JOIN nodes ON nodes.id = attempts.node
    WHERE attempts.node = ?
) AS live
WHERE queue.number = live.number;

-- name: reserve
-- Sessions of a dead node in which work outlives it, or another one of its machine, are left to that for its grace.
-- A scan of sessions, once in the life of a node; the primary key of nodes, queue_of_session.
UPDATE sessions
SET reserved_for = gone.host, reserved_until = ?2 + gone.grace
FROM (SELECT host, grace FROM nodes WHERE id = ?1 AND host <> '') AS gone
WHERE
    sessions.owner = ?1
    AND EXISTS (
        SELECT 1 FROM queue
        WHERE queue.session = sessions.key AND queue.orphaned AND queue.host = gone.host
    );

-- name: drop_attempts
DELETE FROM attempts WHERE node = ?;

-- name: drop_idle_of
-- A scan of sessions, once in the life of a node: an index on the owner would cost each admission.
-- For each: queue_of_session; orders_open.
DELETE FROM sessions
WHERE
    owner = ?
    AND memory IS NULL
    AND NOT EXISTS (SELECT 1 FROM queue WHERE queue.session = sessions.key)
    AND NOT EXISTS (
        SELECT 1 FROM orders WHERE orders.session = sessions.key AND orders.answer IS NULL
    );

-- name: sessions_owned
-- A scan of sessions, once in the life of a node.
SELECT key FROM sessions WHERE owner = ?;

-- name: drop_slots
DELETE FROM slots WHERE node = ?;

-- name: drop_wants
DELETE FROM slot_wants WHERE node = ?;

-- name: ready_pairs
-- The lanes and agents that have something ready, by one look at the index for each: however much waits of one, it is
-- skipped (N-17). Index: sessions_ready.
WITH RECURSIVE
lanes (lane) AS (
    SELECT min(lane) FROM sessions WHERE owner IS NULL AND ready_at IS NOT NULL
    UNION ALL
    SELECT (
        SELECT min(next.lane) FROM sessions AS next
        WHERE next.owner IS NULL AND next.ready_at IS NOT NULL AND next.lane > lanes.lane
    )
    FROM lanes
    WHERE lanes.lane IS NOT NULL
),
pairs (lane, agent) AS (
    SELECT
        lanes.lane,
        (
            SELECT min(first.agent) FROM sessions AS first
            WHERE first.owner IS NULL AND first.ready_at IS NOT NULL AND first.lane = lanes.lane
        )
    FROM lanes
    UNION ALL
    SELECT
        pairs.lane,
        (
            SELECT min(next.agent) FROM sessions AS next
            WHERE
                next.owner IS NULL
                AND next.ready_at IS NOT NULL
                AND next.lane = pairs.lane
                AND next.agent > pairs.agent
        )
    FROM pairs
    WHERE pairs.agent IS NOT NULL
)
SELECT lane, agent FROM pairs WHERE agent IS NOT NULL;

-- name: ready_sessions
-- Index: sessions_ready.
SELECT rank, first, key
FROM sessions
WHERE
    owner IS NULL
    AND ready_at IS NOT NULL
    AND lane = ?
    AND agent = ?
    AND ready_at <= ?
    AND (reserved_until IS NULL OR reserved_until <= ?)
ORDER BY rank, first
LIMIT ?;

-- name: reserved_sessions
-- Those that are left to this machine, if all agents whose workers may be in them run on this node.
-- Index: sessions_reserved; queue_of_session.
SELECT key
FROM sessions
WHERE
    owner IS NULL
    AND reserved_until IS NOT NULL
    AND reserved_for = ?1
    AND NOT EXISTS (
        SELECT 1 FROM queue
        WHERE
            queue.session = sessions.key
            AND queue.orphaned
            AND queue.host = ?1
            AND queue.agent NOT IN (SELECT value FROM json_each(?2))
    )
ORDER BY reserved_until
LIMIT ?3;

-- name: next_reserved
-- When a session is left to its machine no longer. Index: sessions_reserved.
SELECT reserved_until
FROM sessions
WHERE
    owner IS NULL
    AND reserved_until > ?1
    AND (deadline_at IS NOT NULL OR agent IN (SELECT value FROM json_each(?2)))
ORDER BY reserved_until
LIMIT 1;

-- name: urgent_sessions
-- Whoever runs their agents: what must end can be ended by any node. Index: sessions_urgent.
SELECT key
FROM sessions
WHERE
    owner IS NULL
    AND deadline_at <= ?1
    AND (reserved_until IS NULL OR reserved_until <= ?1)
ORDER BY deadline_at
LIMIT ?2;

-- name: next_due
-- Index: sessions_due.
SELECT ready_at
FROM sessions
WHERE owner IS NULL AND ready_at > ? AND agent IN (SELECT value FROM json_each(?))
ORDER BY ready_at
LIMIT 1;

-- name: next_deadline
-- Index: sessions_urgent.
SELECT deadline_at
FROM sessions
WHERE owner IS NULL AND deadline_at > ?
ORDER BY deadline_at
LIMIT 1;

-- name: own
-- Index: the primary key of sessions.
UPDATE sessions
SET owner = mine.column2, epoch = mine.column3, reserved_for = NULL, reserved_until = NULL
FROM (VALUES /* rows */ (?, ?, ?)) AS mine
WHERE sessions.key = mine.column1 AND sessions.owner IS NULL;

-- name: disown
-- Index: the primary key of sessions.
UPDATE sessions SET owner = NULL WHERE key = ?;

-- name: places
-- Of each session what stands behind a number, one more than MOST_PLACES at most. Of one that was read before
-- without merged runs: those are its owner's own. One JSON text, see sessions_of.
-- Index: queue_of_session; the primary keys of queue, runs and attempts; past_attempts_of_run.
SELECT json_group_array(json_array(
    queue.session,
    queue.seq,
    runs.body,
    coalesce(attempts.attempt, queue.attempt),
    queue.standing,
    queue.orphaned AND attempts.number IS NULL,
    coalesce(
        attempts.started_at,
        (SELECT max(started_at) FROM past_attempts WHERE past_attempts.number = queue.number)
    ),
    queue.cut,
    iif(attempts.number IS NULL, queue.host, NULL)
))
FROM (VALUES /* rows */ (?, ?)) AS asked
CROSS JOIN queue ON queue.number IN (
    SELECT line.number FROM queue AS line
    WHERE
        line.session = asked.column1
        AND line.seq > asked.column2
        AND (asked.column2 = 0 OR line.merged = 0)
    ORDER BY line.seq, line.number
    LIMIT 1001
)
CROSS JOIN runs ON runs.number = queue.number
LEFT JOIN attempts ON attempts.number = queue.number;

-- name: merged_places
-- Those further behind that will be no news. Index: queue_of_session; the primary key of runs.
SELECT json_group_array(json_array(
    queue.session, queue.seq, runs.body, queue.attempt, queue.standing, queue.orphaned, NULL, queue.cut, queue.host
))
FROM queue
JOIN runs ON runs.number = queue.number
WHERE queue.session = ? AND queue.seq > ? AND queue.merged = 1;

-- name: open_orders
-- Of each session what stands behind a number, one more than MOST_PLACES at most.
-- Index: orders_open; the primary key of orders.
SELECT json_group_array(json_array(orders.session, orders.seq, orders.id, orders.command))
FROM (VALUES /* rows */ (?, ?)) AS asked
CROSS JOIN orders ON orders.id IN (
    SELECT line.id FROM orders AS line
    WHERE line.session = asked.column1 AND line.answer IS NULL AND line.seq > asked.column2
    ORDER BY line.seq
    LIMIT 1001
);

-- name: with_news
-- Sessions of this node in which more has come than it has seen. Index: the primary key of sessions.
SELECT sessions.key, sessions.epoch, sessions.last_seq, sessions.memory, seen.column2
FROM (VALUES /* rows */ (?, ?)) AS seen
CROSS JOIN sessions ON sessions.key = seen.column1
WHERE sessions.owner = ? AND sessions.last_seq > seen.column2;

-- name: taken_slots
-- Index: the primary key of slots.
SELECT slot, node FROM slots WHERE lane = ? ORDER BY slot;

-- name: take_slot
INSERT INTO slots (lane, slot, node) VALUES (?, ?, ?);

-- name: give_slots
-- Index: the primary key of slots.
DELETE FROM slots
WHERE lane = ?1 AND slot IN (
    SELECT slot FROM slots WHERE lane = ?1 AND node = ?2 ORDER BY slot DESC LIMIT ?3
);

-- name: want_slot
INSERT OR IGNORE INTO slot_wants (lane, node) VALUES (?, ?);

-- name: waits_longer
-- Another node whose want is older; without one of mine, any. Index: slot_wants (lane, node).
SELECT EXISTS (
    SELECT 1 FROM slot_wants AS other
    WHERE other.lane = ?1 AND other.node <> ?2 AND other.number < coalesce(
        (SELECT mine.number FROM slot_wants AS mine WHERE mine.lane = ?1 AND mine.node = ?2),
        other.number + 1
    )
);

-- name: owned
-- All sessions of a node, with nothing seen of them. A scan of sessions, only when an answer was lost.
SELECT key, epoch, last_seq, memory, 0 FROM sessions WHERE owner = ?;

-- name: want_no_slot
DELETE FROM slot_wants WHERE lane = ? AND node = ?;

-- name: wanting
-- Index: slot_wants (lane, node).
SELECT node FROM slot_wants WHERE lane = ? AND node <> ?;

-- name: glimpse
-- Index: the primary key of sessions.
SELECT owner, reserved_for, reserved_until, epoch, last_seq, memory FROM sessions WHERE key = ?;

-- name: running_in
-- Index: attempts_slot; the primary key of runs.
SELECT runs.id
FROM attempts
JOIN runs ON runs.number = attempts.number
WHERE attempts.session = ?
ORDER BY attempts.started_at, attempts.number;
