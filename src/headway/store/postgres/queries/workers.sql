-- Workers and machines as they were seen, and trees of runs.

-- name: beat
-- Only what is newer, or the death of which its node tells; never of a process that is dead. Rows are locked in the order
-- of ids.
-- Indexes: workers_pkey, beats_pkey; those of dead workers for one that dies.
with told as (
    select n.* from unnest(
        $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::bigint[], $8::boolean[], $9::text[], $10::text[],
        $11::text[]
    ) as n(id, agent, host, node, process, started_at, dead, state, body, beat)
    order by n.id collate "C"
), kept as (
    insert into headway.workers as w (id, agent, host, node, process, started_at, at, dead_at, state, body)
    select n.id, n.agent, n.host, n.node, n.process, n.started_at, $1::bigint, case when n.dead then $1 end, n.state, n.body
    from told n
    on conflict (id) do update set
        agent = excluded.agent, host = excluded.host, node = excluded.node, process = excluded.process,
        started_at = excluded.started_at, at = greatest(excluded.at, w.at),
        dead_at = case when excluded.dead_at is not null then greatest(excluded.at, w.at) end,
        state = excluded.state, body = excluded.body
    where case
        when w.process <> excluded.process then excluded.at > w.at
        else w.dead_at is null and (excluded.at > w.at or excluded.dead_at is not null and excluded.node = w.node)
    end
    returning w.id, w.at
)
insert into headway.beats as b (worker, at, body)
select k.id, k.at, n.beat from kept k join told n on n.id = k.id
on conflict (worker, at) do update set body = excluded.body;

-- name: worker_page
-- The latest first. Indexes: workers_living; workers_dead, workers_dead_of_agent or workers_dead_of_host.
select w.started_at, w.id, w.body from headway.workers w where {wanted} order by w.started_at desc, w.id desc limit $1;

-- name: worker
-- Index: workers_pkey.
select w.body from headway.workers w where w.id = $1;

-- name: beats
-- Index: beats_pkey.
select b.at, b.body from headway.beats b where b.worker = $1 order by b.at desc limit $2;

-- name: keep_snapshot
-- Indexes: snapshots_pkey, snapshots_at.
insert into headway.snapshots (host, at, node, body) values ($1, $2, $3, $4) on conflict do nothing;

-- name: snapshot_page
-- The latest first. Indexes: snapshots_at; of one machine, snapshots_pkey.
select s.at, s.node, s.body from headway.snapshots s where {wanted} order by s.at desc, s.node desc limit $1;

-- name: machines
-- From each machine to the next, and to its latest one: no row is read beside those. Index: snapshots_pkey.
with recursive machines as (
    (select s.host from headway.snapshots s order by s.host limit 1)
    union all
    select (select s.host from headway.snapshots s where s.host > m.host order by s.host limit 1)
    from machines m where m.host is not null
)
select l.body
from machines m
cross join lateral (
    select s.body from headway.snapshots s where s.host = m.host order by s.at desc, s.node desc limit 1
) l
order by m.host;

-- name: prune_workers
-- At most so many of each, past the retention of beats and of snapshots; what another node is at is skipped.
-- Workers that nobody looks at any more go too: their machine is gone.
-- Indexes: beats_at, snapshots_at, workers_ended; workers_living, of which there are few.
with old_beats as (
    delete from headway.beats b where b.ctid = any (array(
        select o.ctid from headway.beats o where o.at <= $1 order by o.at limit $3 for update skip locked
    )) returning 1
), old_snapshots as (
    delete from headway.snapshots s where s.ctid = any (array(
        select o.ctid from headway.snapshots o where o.at <= $2 order by o.at limit $3 for update skip locked
    )) returning 1
), dead_workers as (
    delete from headway.workers w where w.ctid = any (array(
        select o.ctid from headway.workers o where o.dead_at <= $1 order by o.dead_at limit $3 for update skip locked
    )) returning 1
), lost_workers as (
    delete from headway.workers w where w.ctid = any (array(
        select o.ctid from headway.workers o where o.dead_at is null and o.at <= $1 limit $3 for update skip locked
    )) returning 1
)
select greatest(
    (select count(*) from old_beats), (select count(*) from old_snapshots),
    (select count(*) from dead_workers), (select count(*) from lost_workers)
) as gone;

-- name: tree
-- Which of the runs that `view` tells: one and those below it, the oldest first. Indexes: runs_pkey, kin_pkey.
where r.id in (
    select $1::text
    union all
    (select k.run from headway.kin k where k.ancestor = $1 order by k.number limit $2)
)
order by r.number limit $2
