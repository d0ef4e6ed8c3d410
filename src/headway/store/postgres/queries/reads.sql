-- Statements that only read, one for each name.

-- name: outcomes
-- Index: endings_pkey.
select e.run, e.outcome from headway.endings e where e.run = any ($1::text[]);

-- name: answers
-- Index: orders_pkey.
select o.id, o.answer from headway.orders o where o.id = any ($1::text[]) and o.answer is not null;

-- name: memory
-- Index: sessions_pkey.
select s.memory from headway.sessions s where s.key = $1;

-- name: glimpse
-- Indexes: sessions_pkey, attempts_pkey.
select s.owner, s.reserved_for, s.reserved_until, array(
    select a.run from headway.attempts a where a.session = s.key order by a.started_at, a.run
) as running
from headway.sessions s where s.key = $1;

-- name: places
-- Indexes: those of the function.
select * from headway.holdings_v1(array[$1::text], array[-1::bigint], $2);

-- name: view
-- The columns of a run as readers see it; what follows says which runs.
-- Indexes: endings_pkey, queue_run and attempts_pkey, by the run.
select r.number, r.body, e.state, e.attempt, e.started_at, e.finished_at, e.outcome,
       q.state as waits, q.attempt as waits_attempt, q.cut,
       a.attempt as live_attempt, a.started_at as live_since, a.node as live_on
from headway.runs r
left join headway.endings e on e.run = r.id
left join headway.queue q on q.run = r.id
left join headway.attempts a on a.session = q.session and a.run = q.run

-- name: nodes
-- Counts what each node has by reading all sessions once.
select n.id, n.name, n.started_at, n.counter, n.lease, n.ended,
       coalesce(s.count, 0) as sessions, coalesce(a.count, 0) as running, n.host
from headway.nodes n
left join (
    select s.owner, count(*) as count from headway.sessions s where s.owner is not null group by s.owner
) s on s.owner = n.id
left join (select a.node, count(*) as count from headway.attempts a group by a.node) a on a.node = n.id
order by n.id;

-- name: known_runs
-- Runs that are kept already, and who decides for their sessions. What is written makes the commit wait for the disk, and
-- so for the runs: the call that kept them may have been broken off before they were there.
-- Indexes: runs_pkey, sessions_pkey.
with flushed as materialized (select pg_logical_emit_message(true, 'headway', '') as at)
select r.id, r.seq, e.outcome, s.owner, s.epoch, s.memory
from flushed cross join headway.runs r left join headway.endings e on e.run = r.id left join headway.sessions s on s.key = r.session
where r.id = any ($1::text[]);

-- name: slots_wanted
-- Index: slot_wants_pkey.
select count(*) as waiting from headway.slot_wants w where w.lane = $1 and w.node <> $2;

-- name: waiting_tasks
-- How many tasks are unfinished in all, and of the agent that has most. Index: queue_tasks.
select coalesce(sum(n.count), 0)::bigint as total, coalesce(max(n.count), 0)::bigint as most
from (select count(*) as count from headway.queue q where q.task group by q.agent) n;

-- name: count_letters
-- Indexes: outbox_due and outbox_dead, each of which has just these.
select (select count(*) from headway.outbox o where not o.dead) as waiting,
       (select count(*) from headway.outbox o where o.dead) as dead;

-- name: hosts
-- On which machines workers of these orphaned runs may be. Index: queue_run.
select q.run, q.host from headway.queue q where q.run = any ($1::text[]) and q.host is not null;
