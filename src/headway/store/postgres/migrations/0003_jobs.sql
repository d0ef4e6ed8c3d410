-- Jobs, the log of their firings, and what heartbeats and channels need to remember. Only adds.

-- A rule that makes runs, and where it stands in time. The body is the job as it was asked for; `enabled` here is the
-- truth, as a job is paused without rewriting it. due_at is when somebody must do something about it; null while
-- it is disabled, or nothing is to come. `needs` is what a node must have to look for it. `paused` is JSON text.
create table headway.jobs (
    version bigint not null,
    next_at bigint,
    wake_at bigint,
    claimed_until bigint,
    since bigint not null,
    due_at bigint,
    enabled boolean not null,
    heartbeat boolean not null,
    id text collate "C" primary key,
    agent text collate "C" not null,
    name text collate "C" not null,
    needs text collate "C" not null,
    paused text,
    body text not null
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0);
create unique index jobs_name on headway.jobs (agent, name);
create index jobs_due on headway.jobs (due_at, id) where due_at is not null;
create index jobs_settled on headway.jobs (id) where enabled and due_at is null;

-- The log: rows are only added, and deleted when they are forgotten. What became of a run is read from the run.
-- The unique index is the last line of defence: a firing makes one run (C-5). The BRIN index is for the pruner.
-- firings_made has all that the next firing asks of the latest ones, which lie far apart in the table.
create table headway.firings (
    number bigint generated always as identity primary key,
    due_at bigint not null,
    at bigint not null,
    count integer not null,
    job text collate "C" not null,
    run text collate "C",
    kind text not null,
    reason text
) with (autovacuum_vacuum_cost_delay = 0);
create unique index firings_once on headway.firings (job, due_at) where run is not null;
create index firings_job on headway.firings (job, number);
create index firings_made on headway.firings (job, number) include (run, due_at, at) where run is not null;
create index firings_at on headway.firings using brin (at) with (pages_per_range = 16);

-- What is counted of a job's runs as they end, as JSON; it goes with its job.
create table headway.tallies (
    job text collate "C" primary key,
    body text not null
) with (fillfactor = 50);

-- Where the latest message of an agent came from.
create table headway.routes (
    agent text collate "C" primary key,
    at bigint not null,
    route text not null
);

-- Texts by name, such as checklists; JSON, as a text may hold what no column takes.
create table headway.texts (
    name text collate "C" primary key,
    text text not null
);

create index outbox_dead on headway.outbox (first_at, id) where dead;


-- The latest runs of a job that are still known, the newest first, as JSON: the reader makes them of it at once. One row,
-- null if there are none. Written so that the planner puts it into the statement around it.
-- Indexes: firings_made, endings_pkey; queue_run and attempts_pkey only for runs that have not ended.
create function headway.recent_v1(p_job text, p_most integer) returns table (pasts text)
language sql stable
as $$
    select '[' || string_agg(
        '{"run_id":' || to_json(l.run) || ',"due_at":' || l.due_at || ',"made_at":' || l.at || ',"state":"' || l.state
        || '"}', ',' order by l.number desc) || ']'
    from (
        select f.number, f.run, f.due_at, f.at, n.state
        from headway.firings f
        left join headway.endings e on e.run = f.run
        cross join lateral (
            select coalesce(e.state, (
                select case when a.run is not null then 'running' else q.state end from headway.queue q
                left join headway.attempts a on a.session = q.session and a.run = q.run where q.run = f.run
            )) as state
        ) n
        where f.job = p_job and f.run is not null and n.state is not null
        order by f.number desc limit p_most
    ) l
$$;


-- Jobs that are due and that a node with these abilities can look after, the earliest first, one more than asked for
-- if there are more; then one row `next` with the time when the next one will be.
-- Indexes: jobs_due, tallies_pkey, and those of `recent_v1`.
create function headway.due_jobs_v1(p_now bigint, p_most integer, p_abilities text[], p_recent integer)
returns table (
    due_at bigint, version bigint, next_at bigint, wake_at bigint, claimed_until bigint, since bigint,
    enabled boolean, paused text, body text, pasts text, tally text
)
language plpgsql stable
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
begin
    -- One statement, so that what is said of a job's runs is as old as its version.
    return query
        select d.due_at, d.version, d.next_at, d.wake_at, d.claimed_until, d.since, d.enabled, d.paused, d.body, r.pasts,
               (select t.body from headway.tallies t where t.job = d.id)
        from (
            select j.* from headway.jobs j
            where j.due_at <= p_now and (j.needs = '' or j.needs = any (p_abilities))
            order by j.due_at, j.id limit p_most + 1
        ) d cross join lateral headway.recent_v1(d.id, p_recent) r
        order by d.due_at, d.id;
    return query
        select min(n.due_at), null::bigint, null::bigint, null::bigint, null::bigint, null::bigint,
               null::boolean, null::text, null::text, null::text, null::text
        from (
            select j.due_at from headway.jobs j
            where j.due_at > p_now and (j.needs = '' or j.needs = any (p_abilities))
            order by j.due_at limit 1
        ) n;
end $$;


-- Jobs go on: those whose version still is the given one; of the others nothing is kept. Jobs come sorted by id and
-- without repetition. `p_r_of`, `p_e_of` and `p_d_of` say for each run, line and notice which of the jobs it is of.
-- Answers as `admit_v1` for the runs of those that held, and besides: `stale` for each job that did not hold,
-- `earlier` for its runs, and `sooner` if all must know: some job is due earlier
-- than before, or is enabled or there no more.
-- Locks jobs by id, then what an admission locks, then keys of what is said once, then the outbox.
-- Indexes: jobs_pkey, and those of `admit_v1` and `post_v1`.
create function headway.advance_v1(
    p_node bigint, p_now bigint,
    p_jobs text[], p_versions bigint[], p_next bigint[], p_wake bigint[], p_claimed bigint[], p_since bigint[],
    p_paused text[], p_enabled boolean[], p_due bigint[], p_delete boolean[],
    p_e_of integer[], p_e_jobs text[], p_e_due bigint[], p_e_kinds text[], p_e_at bigint[], p_e_runs text[],
    p_e_reasons text[], p_e_counts integer[],
    p_d_of integer[], p_d_ids text[], p_d_channels text[], p_d_at bigint[], p_d_bodies text[], p_d_runs text[],
    p_d_once text[], p_d_until bigint[],
    p_r_of integer[], p_r_claims boolean[],
    p_sessions text[], p_counts integer[], p_claims boolean[],
    p_s_lanes text[], p_s_agents text[], p_s_ranks bigint[], p_s_ready bigint[], p_s_urgent bigint[],
    p_ids text[], p_in text[], p_of integer[], p_nth integer[], p_agents text[], p_lanes text[], p_tasks boolean[],
    p_ranks bigint[], p_ready bigint[], p_deadlines bigint[], p_bodies text[],
    p_roots text[], p_ancestors text[], p_keys text[], p_more_keys text[]
) returns table (kind text, ord integer, owner bigint, epoch bigint, last_seq bigint, said text, fresh boolean)
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
    v_held integer[];
    v_holds boolean[];
    v_ord integer;
    v_sooner boolean;
begin
    -- Those that go are counted on first too, so that all rows are locked in one order. What stands in `o` is what the row
    -- was: if it has changed since, its version has too.
    with moved as (
        update headway.jobs j
        set version = j.version + 1, next_at = n.next_at, wake_at = n.wake_at, claimed_until = n.claimed_until,
            since = n.since, paused = n.paused, enabled = n.enabled, due_at = n.due_at
        from unnest(p_jobs, p_versions, p_next, p_wake, p_claimed, p_since, p_paused, p_enabled, p_due)
            with ordinality as n(id, version, next_at, wake_at, claimed_until, since, paused, enabled, due_at, ord)
        join headway.jobs o on o.id = n.id
        where j.id = n.id and j.version = n.version
        returning n.ord::integer as ord, j.due_at, o.due_at as was_due_at, j.enabled <> o.enabled as switched
    )
    select array_agg(m.ord),
           bool_or(m.due_at < m.was_due_at or m.due_at is not null and m.was_due_at is null or m.switched
                   or p_delete[m.ord])
    into v_held, v_sooner from moved m;
    v_holds := array_fill(coalesce(cardinality(v_held), 0) = cardinality(p_jobs), array[cardinality(p_jobs)]);
    if v_held is not null and not v_holds[1] then
        foreach v_ord in array v_held loop
            v_holds[v_ord] := true;
        end loop;
    end if;

    if cardinality(p_ids) = 0 then
        null;
    elsif true = all (v_holds) then
        return query select * from headway.admit_v1(
            p_node, p_now, p_sessions, p_counts, p_claims, p_s_lanes, p_s_agents, p_s_ranks, p_s_ready, p_s_urgent,
            p_ids, p_in, p_of, p_nth, p_agents, p_lanes, p_tasks, p_ranks, p_ready, p_deadlines, p_bodies,
            p_roots, p_ancestors, p_keys, p_more_keys);
    else
        return query
            select 'earlier'::text, n.ord::integer, null::bigint, null::bigint, null::bigint, n.id, false
            from unnest(p_ids, p_r_of) with ordinality as n(id, of, ord) where not v_holds[n.of];
        return query select * from headway.admit_rest_v1(
            array(select n.ord from unnest(p_r_of) with ordinality as n(of, ord) where v_holds[n.of] order by n.ord),
            p_node, p_now, p_ids, p_in, p_agents, p_lanes, p_tasks, p_ranks, p_ready, p_deadlines, p_bodies,
            p_roots, p_ancestors, p_r_claims, p_keys, p_more_keys);
    end if;

    if cardinality(p_e_of) > 0 then
        insert into headway.firings (job, due_at, kind, at, run, reason, count)
        select n.job, n.due_at, n.kind, n.at, n.run, n.reason, n.count
        from unnest(p_e_of, p_e_jobs, p_e_due, p_e_kinds, p_e_at, p_e_runs, p_e_reasons, p_e_counts)
            with ordinality as n(of, job, due_at, kind, at, run, reason, count, ord)
        where v_holds[n.of] order by n.ord;
    end if;
    if cardinality(p_d_of) > 0 then
        perform headway.post_v1(
            array_agg(n.id order by n.ord), array_agg(n.channel order by n.ord), array_agg(n.at order by n.ord),
            array_agg(n.body order by n.ord), array_agg(n.run order by n.ord), array_agg(n.once order by n.ord),
            array_agg(n.until order by n.ord))
        from unnest(p_d_of, p_d_ids, p_d_channels, p_d_at, p_d_bodies, p_d_runs, p_d_once, p_d_until)
            with ordinality as n(of, id, channel, at, body, run, once, until, ord)
        where v_holds[n.of] having count(*) > 0;
    end if;
    if true = any (p_delete) then
        with gone as (
            delete from headway.jobs j using unnest(p_jobs, p_delete) with ordinality as n(id, goes, ord)
            where j.id = n.id and n.goes and v_holds[n.ord] returning j.id
        )
        delete from headway.tallies t using gone g where t.job = g.id;
    end if;

    if v_sooner then
        return query select 'sooner'::text, 0, null::bigint, null::bigint, null::bigint, null::text, false;
    end if;
    if false = any (v_holds) then
        return query
            select 'stale'::text, n.ord::integer, null::bigint, null::bigint, null::bigint, null::text, false
            from unnest(v_holds) with ordinality as n(holds, ord) where not n.holds;
    end if;
end $$;
