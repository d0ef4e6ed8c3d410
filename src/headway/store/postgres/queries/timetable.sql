-- Jobs, their log, texts and routes. What must be whole over several rows is a call (`migrations/0003_jobs.sql`).

-- name: add_job
-- Tells all nodes if a channel is given. Indexes: jobs_pkey, jobs_name.
with added as (
    insert into headway.jobs (
        id, agent, name, heartbeat, needs, body, enabled, version, next_at, wake_at, claimed_until, since, paused, due_at
    )
    values ($3, $4, $5, $6, $7, $8, $9, 1, $10, $11, $12, $13, $14, $15)
    on conflict do nothing returning id
)
select case when $1::text is not null then pg_notify($1, $2) end from added;

-- name: change_job
-- Tells all nodes if a channel is given. Index: jobs_pkey.
with changed as (
    update headway.jobs j
    set agent = $4, name = $5, heartbeat = $6, needs = $7, body = $8, enabled = $9, version = j.version + 1,
        next_at = $10, wake_at = $11, claimed_until = $12, since = $13, paused = $14, due_at = $15
    where j.id = $3 and j.version = $16 returning j.id
)
select case when $1::text is not null then pg_notify($1, $2) end from changed;

-- name: remove_job
-- Tells all nodes if a channel is given. Index: jobs_pkey.
with removed as (delete from headway.jobs j where j.id = $3 returning j.id),
forgotten as (delete from headway.tallies t using removed r where t.job = r.id)
select case when $1::text is not null then pg_notify($1, $2) end from removed;

-- name: jobs
-- Jobs by agent and name: the columns as `due_jobs_v1` answers them, and the latest line of each whose run has ended,
-- with its outcome unless that is long.
-- Indexes: jobs_pkey or jobs_name; those of `recent_v1`; firings_made and endings_pkey for the line.
select j.due_at, j.version, j.next_at, j.wake_at, j.claimed_until, j.since, j.enabled, j.paused, j.body, r.pasts,
       (select t.body from headway.tallies t where t.job = j.id) as tally, l.number, l.line_due_at, l.kind, l.at, l.run, l.reason, l.count, l.state, l.attempt, l.started_at,
       l.finished_at, l.outcome, l.long, j.agent, j.name
from (select * from headway.jobs j where {wanted}) j
cross join lateral headway.recent_v1(j.id, $1) r
left join lateral (
    select f.number, f.due_at as line_due_at, f.kind, f.at, f.run, f.reason, f.count, e.state, e.attempt,
           e.started_at, e.finished_at, octet_length(e.outcome) > 65536 as long,
           case when octet_length(e.outcome) <= 65536 then e.outcome end as outcome
    from headway.firings f join headway.endings e on e.run = f.run
    where f.job = j.id and f.run is not null order by f.number desc limit 1
) l on true
order by j.agent, j.name;

-- name: settled_jobs
-- Without their latest line. Indexes: jobs_settled, and those of `recent_v1`.
select j.due_at, j.version, j.next_at, j.wake_at, j.claimed_until, j.since, j.enabled, j.paused, j.body, r.pasts,
       (select t.body from headway.tallies t where t.job = j.id) as tally
from (select j.* from headway.jobs j where j.enabled and j.due_at is null order by j.id limit $2) j
cross join lateral headway.recent_v1(j.id, $1) r
order by j.id;

-- name: tallies
-- What was counted so far of some jobs, and since when. Indexes: jobs_pkey, tallies_pkey.
select j.id, j.since, t.body from headway.jobs j left join headway.tallies t on t.job = j.id
where j.id = any ($1::text[]);

-- name: keep_tallies
-- Only where nobody has counted meanwhile; answers those. Index: tallies_pkey.
insert into headway.tallies as t (job, body)
select n.job, n.body from unnest($1::text[], $2::text[]) as n(job, body) order by n.job collate "C"
on conflict (job) do update set body = excluded.body
where t.body in (select n.was from unnest($1::text[], $3::text[]) as n(job, was) where n.job = t.job)
returning t.job;

-- name: job_log
-- Lines from a number downwards, of one job or of all, with what became of their runs, but no long outcomes.
-- Indexes: firings_job or firings_pkey; endings_pkey; queue_run and attempts_pkey for runs that have not ended.
select f.job, f.number, f.due_at as line_due_at, f.kind, f.at, f.run, f.reason, f.count,
       coalesce(e.state, case when a.run is not null then 'running' else q.state end) as state,
       coalesce(e.attempt, a.attempt, q.attempt) as attempt, coalesce(e.started_at, a.started_at) as started_at,
       e.finished_at, octet_length(e.outcome) > 65536 as long,
       case when octet_length(e.outcome) <= 65536 then e.outcome end as outcome
from (
    select * from headway.firings f where f.number <= $1 and {wanted} order by f.number desc limit $2
) f
left join headway.endings e on e.run = f.run
left join headway.queue q on q.run = case when e.run is null then f.run end
left join headway.attempts a on a.session = q.session and a.run = q.run
order by f.number desc;

-- name: prune_log
-- Never the line of a run that has not ended. Indexes: firings_at, queue_run.
with gone as (
    delete from headway.firings f where f.number in (
        select o.number from headway.firings o
        where o.at <= $1 and not exists (select from headway.queue q where q.run = o.run)
        limit $2 for update skip locked
    ) returning 1
)
select count(*) as gone from gone;

-- name: keep_text
-- Index: texts_pkey.
insert into headway.texts as t (name, text) values ($1, $2) on conflict (name) do update set text = excluded.text;

-- name: forget_text
-- Index: texts_pkey.
delete from headway.texts t where t.name = $1;

-- name: text
-- Index: texts_pkey.
select t.text from headway.texts t where t.name = $1;

-- name: note_routes
-- Rows are locked in the order of agents. Index: routes_pkey.
insert into headway.routes as r (agent, route, at)
select n.agent, n.route, $3 from unnest($1::text[], $2::text[]) as n(agent, route) order by n.agent collate "C"
on conflict (agent) do update set route = excluded.route, at = excluded.at where r.at <= excluded.at;

-- name: last_route
-- Index: routes_pkey.
select r.route from headway.routes r where r.agent = $1;

-- name: letter
-- The columns of a delivery; what follows says which. Index: outbox_dead for those that were given up.
select o.id, o.body, o.tries, o.first_at, o.error, case when o.dead then null else o.due_at end as due_at
from headway.outbox o

-- name: retry_letter
-- As if it were new. Index: outbox_pkey.
update headway.outbox o set dead = false, due_at = $2, first_at = $2, tries = 0, error = ''
where o.id = $1 and o.dead returning o.id;
