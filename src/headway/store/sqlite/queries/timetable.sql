-- name: add_job
-- Index: the primary key of jobs, jobs.id, jobs_named, jobs_due or jobs_settled.
INSERT OR IGNORE INTO jobs (
    id, agent, name, heartbeat, delete_after_run, needs, body,
    enabled, due_at, next_at, wake_at, claimed_until, since, paused, version
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1);

-- name: name_taken
-- Index: jobs_named.
SELECT EXISTS (SELECT 1 FROM jobs WHERE agent = ? AND name = ? AND id <> ?);

-- name: change_job
-- Index: jobs.id; jobs_named, jobs_due and jobs_settled.
UPDATE jobs
SET
    agent = ?,
    name = ?,
    heartbeat = ?,
    delete_after_run = ?,
    needs = ?,
    body = ?,
    enabled = ?,
    due_at = ?,
    next_at = ?,
    wake_at = ?,
    claimed_until = ?,
    since = ?,
    paused = ?,
    version = version + 1
WHERE id = ?;

-- name: version_of_job
-- Index: jobs.id.
SELECT version FROM jobs WHERE id = ?;

-- name: remove_job
-- Index: jobs.id.
DELETE FROM jobs WHERE id = ?;

-- name: standing_jobs
-- Where jobs stand that are about to go on. One JSON text, see sessions_of. Index: jobs.id.
SELECT json_group_array(json_array(id, version, due_at))
FROM jobs
WHERE id IN (VALUES /* rows */ (?));

-- name: fired_already
-- Those of these firings that have made a run. Index: firings_once.
SELECT json_group_array(json_array(firings.job, firings.due_at))
FROM (VALUES /* rows */ (?, ?)) AS asked
CROSS JOIN firings
    ON firings.job = asked.column1 AND firings.due_at = asked.column2 AND firings.run IS NOT NULL;

-- name: advance_jobs
-- Index: jobs.id; jobs_due and jobs_settled.
UPDATE jobs
SET
    enabled = went.column2,
    due_at = went.column3,
    next_at = went.column4,
    wake_at = went.column5,
    claimed_until = went.column6,
    since = went.column7,
    paused = went.column8,
    version = went.column9
FROM (VALUES /* rows */ (?, ?, ?, ?, ?, ?, ?, ?, ?)) AS went
WHERE jobs.id = went.column1;

-- name: delete_jobs
-- Index: jobs.id.
DELETE FROM jobs WHERE id IN (VALUES /* rows */ (?));

-- name: add_firings
-- Once their runs are kept. Index: runs.id; all of firings.
INSERT INTO firings (job, due_at, kind, at, run, reason, count, run_number)
SELECT *, (SELECT number FROM runs WHERE runs.id = column5)
FROM (VALUES /* rows */ (?, ?, ?, ?, ?, ?, ?))
WHERE column1 IS NOT NULL;

-- name: job_records
-- Jobs as they stand, with the latest runs that each has made and that are still known, the newest first. Which jobs is
-- added: `WHERE jobs.number IN` one of the statements below. One JSON text, see sessions_of; the runs of each are
-- a text in it, so that one that cannot be read spoils no other.
-- Index: the primary keys of jobs, attempts, queue and tallies; firings_made; runs_fired.
SELECT json_group_array(json_array(
    jobs.number,
    jobs.body,
    jobs.enabled,
    jobs.due_at,
    jobs.version,
    jobs.next_at,
    jobs.wake_at,
    jobs.claimed_until,
    jobs.since,
    jobs.paused,
    '' || (
        SELECT json_group_array(json_object(
            'run_id', made.id, 'due_at', made.due_at, 'made_at', made.at, 'state', made.state
        ))
        FROM (
            SELECT
                runs.id,
                line.due_at,
                line.at,
                coalesce(
                    runs.state,
                    (SELECT 'running' FROM attempts WHERE attempts.number = line.run_number),
                    (SELECT queue.state FROM queue WHERE queue.number = line.run_number)
                ) AS state
            FROM firings AS line
            CROSS JOIN runs INDEXED BY runs_fired ON runs.number = line.run_number
            WHERE line.job = jobs.id AND line.run_number IS NOT NULL AND runs.fired = 1
            ORDER BY line.number DESC
            LIMIT 20
        ) AS made
    ),
    (SELECT tallies.body FROM tallies WHERE tallies.job = jobs.id)
))
FROM jobs;

-- name: tallies_of
-- What was counted so far of some jobs, and since when. One JSON text, see sessions_of. Index: jobs.id, tallies.
SELECT json_group_array(json_array(jobs.id, jobs.since, tallies.body))
FROM jobs LEFT JOIN tallies ON tallies.job = jobs.id
WHERE jobs.id IN (VALUES /* rows */ (?));

-- name: keep_tallies
-- Index: the primary key of tallies.
INSERT INTO tallies (job, body)
SELECT * FROM (VALUES /* rows */ (?, ?))
WHERE column1 IS NOT NULL
ON CONFLICT (job) DO UPDATE SET body = excluded.body;

-- name: job_of_id
-- Index: jobs.id.
SELECT number FROM jobs WHERE id = ?;

-- name: job_named
-- Index: jobs_named.
SELECT number FROM jobs WHERE agent = ? AND name = ?;

-- name: jobs_due_by
-- Those that this node can see to, the earliest first, after a place among them. Index: jobs_due.
SELECT number
FROM jobs
WHERE
    due_at <= ?1
    AND (due_at, number) > (?2, ?3)
    AND (needs = '' OR needs IN (SELECT value FROM json_each(?4)))
ORDER BY due_at, number
LIMIT ?5;

-- name: jobs_settled
-- Enabled ones without a date, those to be deleted first. Index: jobs_settled.
SELECT number
FROM jobs
WHERE enabled = 1 AND due_at IS NULL
ORDER BY delete_after_run DESC, number
LIMIT ?;

-- name: next_job
-- When one that this node can see to comes due after a place among them. Index: jobs_due.
SELECT due_at
FROM jobs
WHERE
    due_at IS NOT NULL
    AND (due_at, number) > (?1, ?2)
    AND (needs = '' OR needs IN (SELECT value FROM json_each(?3)))
ORDER BY due_at, number
LIMIT 1;

-- name: log_lines
-- Lines of the log, with what is known of their runs. Which is added: one of the two below, or some numbers.
-- Index: the primary keys of firings, runs, queue and attempts.
SELECT
    firings.job,
    firings.due_at,
    firings.kind,
    firings.at,
    firings.run,
    firings.reason,
    firings.count,
    firings.number,
    coalesce(runs.state, iif(attempts.number IS NULL, queue.state, 'running')),
    iif(runs.state IS NULL, coalesce(attempts.attempt, queue.attempt, 0), runs.attempt),
    coalesce(runs.started_at, attempts.started_at),
    runs.finished_at,
    runs.outcome
FROM firings
LEFT JOIN runs ON runs.number = firings.run_number
LEFT JOIN queue ON queue.number = firings.run_number
LEFT JOIN attempts ON attempts.number = firings.run_number;

-- name: lines_of_all
-- The newest up to a number. Index: the primary key of firings.
SELECT number FROM firings WHERE number <= ?1 ORDER BY number DESC LIMIT ?2;

-- name: lines_of_job
-- As many of the newest of both kinds up to a number. Index: firings_made; firings_unmade.
SELECT number FROM (
    SELECT number FROM firings
    WHERE job = ?3 AND run_number IS NOT NULL AND number <= ?1
    ORDER BY number DESC
    LIMIT ?2
)
UNION ALL
SELECT number FROM (
    SELECT number FROM firings
    WHERE job = ?3 AND run_number IS NULL AND number <= ?1
    ORDER BY number DESC
    LIMIT ?2
)
ORDER BY number DESC
LIMIT ?2;

-- name: last_lines
-- Of each job the latest line whose run has ended. Index: firings_made; runs_fired.
SELECT (
    SELECT line.number
    FROM firings AS line
    CROSS JOIN runs INDEXED BY runs_fired ON runs.number = line.run_number
    WHERE
        line.job = asked.column1
        AND line.run_number IS NOT NULL
        AND runs.fired = 1
        AND runs.state IS NOT NULL
    ORDER BY line.number DESC
    LIMIT 1
)
FROM (VALUES /* rows */ (?)) AS asked;

-- name: keep_text
-- Index: the primary key of texts.
INSERT INTO texts (name, text) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET text = excluded.text;

-- name: forget_text
-- Index: the primary key of texts.
DELETE FROM texts WHERE name = ?;

-- name: text_of
-- Index: the primary key of texts.
SELECT text FROM texts WHERE name = ?;
