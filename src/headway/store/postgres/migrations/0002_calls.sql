-- The calls: each is one round trip and one transaction. In a volatile function under READ COMMITTED every statement
-- takes a new snapshot, so "lock first, then read" holds inside a call (N-8, N-9).
--
-- Names carry a version: a changed call is a new function, and nodes of the older program go on calling theirs.
-- The planner sees tables that are empty one moment and large the next; these statements look a batch up in an index,
-- so other ways are ruled out, and the plan is made once.
--
-- Locks are always taken in this order: keys, the lock of task admission, the node's, sessions by key, the rest.


-- Whether a node lives; it does not end before this transaction does. What a dead node took would never be freed.
create function headway.lives_v1(p_node bigint) returns boolean
language plpgsql
as $$
begin
    perform pg_advisory_xact_lock_shared(hashtextextended('headway.node', p_node));
    return exists (select from headway.nodes n where n.id = p_node and n.ended = '');
end $$;


-- Numbers new runs in their sessions and keeps them. Sessions come sorted and without repetition; `p_of` says for each
-- run which of them it is in, `p_nth` the how manieth of the batch it is there.
-- Indexes: sessions_pkey; queue_session and orders_waiting only for sessions that nobody owns.
create function headway.admit_v1(
    p_node bigint, p_now bigint,
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
    v_before bigint;
    v_after bigint;
    v_owners bigint[];
    v_epochs bigint[];
    v_last bigint[];
    v_memories text[];
    v_fresh boolean[];
    v_epoch bigint;
begin
    if true = any (p_claims) and not headway.lives_v1(p_node) then
        p_claims := array_fill(false, array[cardinality(p_claims)]);
    end if;
    select e.last_value into v_before from headway.epochs e;
    with locked as (
        insert into headway.sessions as s
            (key, owner, epoch, last_seq, lane, agent, rank, ready_at, due_at, urgent_at)
        select a.key, case when a.claim then p_node end, nextval('headway.epochs'), a.count,
               case when not a.claim then a.lane end, a.agent, a.rank, a.ready_at,
               case when not a.claim and a.ready_at > p_now then a.ready_at end,
               case when not a.claim then a.urgent_at end
        from unnest(p_sessions, p_counts, p_claims, p_s_lanes, p_s_agents, p_s_ranks, p_s_ready, p_s_urgent)
            as a(key, count, claim, lane, agent, rank, ready_at, urgent_at)
        on conflict (key) do update set last_seq = s.last_seq + excluded.last_seq
        returning s.key, s.owner, s.epoch, s.last_seq, s.memory, s.xmax = 0 as fresh
    )
    select array_agg(l.owner order by l.key), array_agg(l.epoch order by l.key),
           array_agg(l.last_seq order by l.key), array_agg(l.memory order by l.key),
           array_agg(l.fresh order by l.key)
    into v_owners, v_epochs, v_last, v_memories, v_fresh
    from locked l;

    -- An epoch taken before a wait for the row may be lower than one that was given to the session meanwhile.
    -- If nobody else took any, that cannot be; else new rows get theirs now that they are locked.
    select e.last_value into v_after from headway.epochs e;
    if v_after - v_before <> cardinality(p_sessions) then
        for i in 1 .. cardinality(p_sessions) loop
            if v_fresh[i] and v_owners[i] is not null then
                update headway.sessions s set epoch = nextval('headway.epochs')
                where s.key = p_sessions[i] returning s.epoch into v_epoch;
                v_epochs[i] := v_epoch;
            end if;
        end loop;
    end if;

    if false = any (v_fresh) and array_position(v_owners, null) is not null then
        for i in 1 .. cardinality(p_sessions) loop
            continue when v_fresh[i] or v_owners[i] is not null;
            if p_claims[i]
                and not exists (select from headway.queue q where q.session = p_sessions[i])
                and not exists (
                    select from headway.orders o where o.session = p_sessions[i] and o.answer is null
                )
            then
                update headway.sessions s
                set owner = p_node, epoch = nextval('headway.epochs'), lane = null, due_at = null, urgent_at = null
                where s.key = p_sessions[i]
                returning s.epoch into v_epoch;
                v_owners[i] := p_node;
                v_epochs[i] := v_epoch;
                v_fresh[i] := true;
            elsif exists (
                select from headway.sessions s
                where s.key = p_sessions[i] and (s.lane is null or p_s_ready[i] < s.ready_at)
            ) then
                update headway.sessions s
                set lane = p_s_lanes[i], agent = p_s_agents[i], rank = p_s_ranks[i], ready_at = p_s_ready[i],
                    due_at = case when p_s_ready[i] > p_now then p_s_ready[i] end,
                    urgent_at = least(s.urgent_at, p_s_urgent[i])
                where s.key = p_sessions[i];
            elsif p_s_urgent[i] is not null then
                update headway.sessions s set urgent_at = least(s.urgent_at, p_s_urgent[i])
                where s.key = p_sessions[i];
            end if;
        end loop;
    end if;

    insert into headway.runs (id, session, seq, agent, task, body, keys)
    select n.id, n.session, v_last[n.of] - p_counts[n.of] + n.nth, n.agent, n.task, n.body,
           case when n.key is not null then array_remove(array[n.key, n.other], null) end
    from unnest(p_ids, p_in, p_of, p_nth, p_agents, p_tasks, p_bodies, p_keys, p_more_keys)
        as n(id, session, of, nth, agent, task, body, key, other);

    insert into headway.queue (
        session, seq, run, agent, lane, task, rank, ready_at, deadline_at, asked_by, root, ancestors
    )
    select n.session, v_last[n.of] - p_counts[n.of] + n.nth, n.id, n.agent, n.lane, n.task, n.rank,
           n.ready_at, n.deadline_at, p_node, n.root, string_to_array(n.ancestors, e'\x1f')
    from unnest(p_ids, p_in, p_of, p_nth, p_agents, p_lanes, p_tasks, p_ranks, p_ready, p_deadlines,
                p_roots, p_ancestors)
        as n(id, session, of, nth, agent, lane, task, rank, ready_at, deadline_at, root, ancestors);

    return query
        select 'session'::text, u.ord::integer, u.owner, u.epoch, u.last_seq, u.memory, u.fresh
        from unnest(v_owners, v_epochs, v_last, v_memories, v_fresh)
            with ordinality as u(owner, epoch, last_seq, memory, fresh, ord);
end $$;


-- Whether a key still leads to its run. It is free when nobody dealt with the run, or with the one that took it over
-- (S-8); and for a caller who wants to try again, when the run did not succeed. A run that was left behind (it `failed`
-- although nobody dealt with it) may have acted: that frees its message id, not its idempotency key (D-6).
-- Index: endings_pkey.
create function headway.leads_v1(p_run text, p_retry boolean, p_idempotency boolean) returns boolean
language plpgsql stable
as $$
declare
    v_run text := p_run;
    v_known record;
begin
    loop
        select e.state, e.unhandled, e.into_run into v_known from headway.endings e where e.run = v_run;
        if not found then
            return true;
        end if;
        if v_known.unhandled and not (p_idempotency and v_known.state = 'failed') then
            return false;
        end if;
        if p_retry and v_run = p_run and v_known.state in ('failed', 'cancelled', 'rejected') then
            return false;
        end if;
        if v_known.into_run is null then
            return true;
        end if;
        v_run := v_known.into_run;
    end loop;
end $$;


-- Admission with all that may speak against it: keys that lead to an earlier run, limits for tasks, stopped ancestors.
-- What stands is handed to `admit_v1`. Answers `earlier` and `turned` for the runs that do not stand.
-- Indexes: keys_pkey, runs_pkey, queue_tasks, attempts_pkey, sessions_pkey, queue_session.
create function headway.admit_checked_v1(
    p_node bigint, p_now bigint,
    p_sessions text[], p_counts integer[], p_claims boolean[],
    p_s_lanes text[], p_s_agents text[], p_s_ranks bigint[], p_s_ready bigint[], p_s_urgent bigint[],
    p_ids text[], p_in text[], p_of integer[], p_nth integer[], p_agents text[], p_lanes text[], p_tasks boolean[],
    p_ranks bigint[], p_ready bigint[], p_deadlines bigint[], p_bodies text[],
    p_roots text[], p_ancestors text[], p_keys text[], p_more_keys text[],
    p_run_claims boolean[], p_retries boolean[],
    p_k_of integer[], p_k_runs text[], p_k_keys text[], p_k_expires bigint[], p_k_idempotency boolean[],
    p_max bigint, p_max_per_agent bigint, p_full text, p_stopped text
) returns table (kind text, ord integer, owner bigint, epoch bigint, last_seq bigint, said text, fresh boolean)
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
    v_earlier text[] := array_fill(null::text, array[cardinality(p_ids)]);
    v_turned text[] := array_fill(null::text, array[cardinality(p_ids)]);
    v_out boolean := false;
    v_replaced text[] := '{}';
    v_key record;
    v_run record;
    v_agents text[];
    v_waiting bigint[];
    v_total bigint;
    v_at integer;
    v_touched text[];
begin
    if cardinality(p_k_of) > 0 then
        -- Once each key's row is locked, by inserting it or by touching it, it is read anew.
        insert into headway.keys as k (key, run, expires_at)
        select n.key, n.run, n.expires_at
        from unnest(p_k_runs, p_k_keys, p_k_expires) as n(run, key, expires_at) order by n.key collate "C"
        on conflict (key) do update set expires_at = k.expires_at;
        for v_key in
            select n.of, n.key, n.idempotency, k.run, k.expires_at
            from unnest(p_k_of, p_k_runs, p_k_keys, p_k_idempotency) with ordinality
                as n(of, run, key, idempotency, ord)
            join headway.keys k on k.key = n.key
            where k.run <> n.run order by n.ord
        loop
            if v_key.expires_at > p_now
                and headway.leads_v1(v_key.run, p_retries[v_key.of], v_key.idempotency)
            then
                v_earlier[v_key.of] := coalesce(v_earlier[v_key.of], v_key.run);
                v_out := true;
            else
                v_replaced := v_replaced || v_key.key;
            end if;
        end loop;
        if cardinality(v_replaced) > 0 then
            update headway.keys k set run = n.run, expires_at = n.expires_at
            from unnest(p_k_of, p_k_runs, p_k_keys, p_k_expires) as n(of, run, key, expires_at)
            where k.key = n.key and n.key = any (v_replaced) and v_earlier[n.of] is null;
        end if;
        if v_out then
            delete from headway.keys k using unnest(p_k_of, p_k_runs, p_k_keys) as n(of, run, key)
            where k.key = n.key and k.run = n.run and v_earlier[n.of] is not null;
        end if;
    end if;

    if p_max is not null or p_max_per_agent is not null then
        perform pg_advisory_xact_lock(hashtextextended('headway.tasks', 0));
        v_total := 0;
        if p_max is not null then
            select count(*) into v_total from headway.queue q where q.task;
            select v_total - count(*) into v_total from headway.attempts a where a.task;
        end if;
        v_agents := array(select distinct n.agent from unnest(p_agents, p_tasks) as n(agent, task) where n.task);
        v_waiting := array_fill(0::bigint, array[cardinality(v_agents)]);
        if p_max_per_agent is not null then
            for i in 1 .. cardinality(v_agents) loop
                v_waiting[i] :=
                    (select count(*) from headway.queue q where q.task and q.agent = v_agents[i])
                    - (select count(*) from headway.attempts a where a.task and a.agent = v_agents[i]);
            end loop;
        end if;
        for v_run in
            select n.agent, n.ord from unnest(p_agents, p_tasks) with ordinality as n(agent, task, ord)
            where n.task order by n.ord
        loop
            continue when v_earlier[v_run.ord] is not null;
            v_at := array_position(v_agents, v_run.agent);
            if v_total >= p_max or v_waiting[v_at] >= p_max_per_agent then
                v_turned[v_run.ord] := p_full;
                v_out := true;
            else
                v_total := v_total + 1;
                v_waiting[v_at] := v_waiting[v_at] + 1;
            end if;
        end loop;
    end if;

    if array_position(p_roots, null) is null or cardinality(array_remove(p_roots, null)) > 0 then
        v_touched := p_in || array_remove(p_roots, null);
        insert into headway.sessions as s (key, owner, epoch, last_seq)
        select n.key, null, 0, 0
        from (select distinct u.key collate "C" as key from unnest(v_touched) u(key)) n order by n.key
        on conflict (key) do update set last_seq = s.last_seq;
        for v_run in
            select n.ancestors, n.ord from unnest(p_roots, p_ancestors) with ordinality as n(root, ancestors, ord)
            where n.root is not null
        loop
            continue when v_earlier[v_run.ord] is not null or v_turned[v_run.ord] is not null;
            if exists (
                -- Who asked must still run. Those above may have ended, but not been stopped.
                select from unnest(string_to_array(v_run.ancestors, e'\x1f')) with ordinality as n(id, ord)
                left join headway.queue q on q.run = n.id
                left join headway.endings e on e.run = n.id
                where q.cut is not null or q.run is null and (
                    n.ord = cardinality(string_to_array(v_run.ancestors, e'\x1f'))
                    -- State and reason come first in the text. What follows may hold a NUL, which json does not take.
                    or e.outcome ~ '^\{"state": ?"[a-z]+", ?"reason": ?"(stopped|superseded|deadline_running|timed_out)"'
                )
            ) then
                v_turned[v_run.ord] := p_stopped;
                v_out := true;
            end if;
        end loop;
    end if;

    if not v_out then
        return query select * from headway.admit_v1(
            p_node, p_now, p_sessions, p_counts, p_claims, p_s_lanes, p_s_agents, p_s_ranks, p_s_ready, p_s_urgent,
            p_ids, p_in, p_of, p_nth, p_agents, p_lanes, p_tasks, p_ranks, p_ready, p_deadlines, p_bodies,
            p_roots, p_ancestors, p_keys, p_more_keys);
    else
        return query
            select 'earlier'::text, n.ord::integer, null::bigint, null::bigint, null::bigint, n.run, false
            from unnest(v_earlier) with ordinality as n(run, ord) where n.run is not null;
        return query
            with turned as (
                select n.* from unnest(p_ids, p_in, p_agents, p_tasks, p_bodies, v_turned, p_keys, p_more_keys)
                    with ordinality as n(id, session, agent, task, body, outcome, key, other, ord)
                where n.outcome is not null
            ), asked as (
                insert into headway.runs (id, session, seq, agent, task, body, keys)
                select n.id, n.session, 0, n.agent, n.task, n.body,
                       case when n.key is not null then array_remove(array[n.key, n.other], null) end
                from turned n
            ), ended as (
                insert into headway.endings (run, state, outcome, attempt, finished_at, unhandled, task)
                select n.id, n.outcome::jsonb ->> 'state', n.outcome, 0, p_now, n.outcome = p_full, n.task
                from turned n
            )
            select 'turned'::text, n.ord::integer, null::bigint, null::bigint, null::bigint, n.outcome, false
            from unnest(v_turned) with ordinality as n(outcome, ord) where n.outcome is not null;
        return query select * from headway.admit_rest_v1(
            array(select u.ord from unnest(v_earlier, v_turned) with ordinality as u(earlier, turned, ord)
                  where u.earlier is null and u.turned is null order by u.ord),
            p_node, p_now, p_ids, p_in, p_agents, p_lanes, p_tasks, p_ranks, p_ready, p_deadlines, p_bodies,
            p_roots, p_ancestors, p_run_claims, p_keys, p_more_keys);
    end if;
    if v_touched is not null then
        delete from headway.sessions s using unnest(v_touched) as n(key)
        where s.key = n.key and s.owner is null and s.epoch = 0 and s.last_seq = 0 and s.memory is null;
    end if;
end $$;


-- Admits one run and tells with the commit whoever must know of it: the owner of its session, or else all; then with the
-- number of the run if it is ready, so that one of them can take its session without a search.
-- That commit does not wait for the disk: whoever acts on it stores that first, which puts the admission on the disk as
-- well. The caller is answered after a second commit, which does wait. `p_checks`: whether anything may speak against it.
-- Index: runs_pkey.
create procedure headway.admit_one_v1(
    p_node bigint, p_now bigint,
    p_sessions text[], p_counts integer[], p_claims boolean[],
    p_s_lanes text[], p_s_agents text[], p_s_ranks bigint[], p_s_ready bigint[], p_s_urgent bigint[],
    p_ids text[], p_in text[], p_of integer[], p_nth integer[], p_agents text[], p_lanes text[], p_tasks boolean[],
    p_ranks bigint[], p_ready bigint[], p_deadlines bigint[], p_bodies text[],
    p_roots text[], p_ancestors text[], p_keys text[], p_more_keys text[],
    p_run_claims boolean[], p_retries boolean[],
    p_k_of integer[], p_k_runs text[], p_k_keys text[], p_k_expires bigint[], p_k_idempotency boolean[],
    p_max bigint, p_max_per_agent bigint, p_full text, p_stopped text,
    p_checks boolean, p_channels text,
    inout kind text, inout ord integer, inout owner bigint, inout epoch bigint, inout last_seq bigint, inout said text,
    inout fresh boolean
)
language plpgsql
as $$
begin
    if p_checks then
        select a.* into kind, ord, owner, epoch, last_seq, said, fresh from headway.admit_checked_v1(
            p_node, p_now, p_sessions, p_counts, p_claims, p_s_lanes, p_s_agents, p_s_ranks, p_s_ready, p_s_urgent,
            p_ids, p_in, p_of, p_nth, p_agents, p_lanes, p_tasks, p_ranks, p_ready, p_deadlines, p_bodies,
            p_roots, p_ancestors, p_keys, p_more_keys, p_run_claims, p_retries,
            p_k_of, p_k_runs, p_k_keys, p_k_expires, p_k_idempotency, p_max, p_max_per_agent, p_full, p_stopped) a;
    else
        select a.* into kind, ord, owner, epoch, last_seq, said, fresh from headway.admit_v1(
            p_node, p_now, p_sessions, p_counts, p_claims, p_s_lanes, p_s_agents, p_s_ranks, p_s_ready, p_s_urgent,
            p_ids, p_in, p_of, p_nth, p_agents, p_lanes, p_tasks, p_ranks, p_ready, p_deadlines, p_bodies,
            p_roots, p_ancestors, p_keys, p_more_keys) a;
    end if;
    if kind <> 'session' or owner = p_node then
        return;
    end if;
    if owner is not null then
        perform pg_notify(p_channels || owner, p_node || ' news');
    elsif p_s_ready[1] > p_now or p_s_urgent[1] is not null then
        -- A search also says when it comes due, or must end.
        perform pg_notify(p_channels || 'all', p_node || ' work');
    else
        perform pg_notify(p_channels || 'all', p_node || ' work ' || r.number)
        from headway.runs r where r.id = p_ids[1];
    end if;
    perform set_config('synchronous_commit', 'off', true);
    commit;
    perform pg_logical_emit_message(true, 'headway', '');
end $$;


-- The runs of these places in a batch, grouped anew and handed to `admit_v1`.
create function headway.admit_rest_v1(
    p_stand bigint[], p_node bigint, p_now bigint,
    p_ids text[], p_in text[], p_agents text[], p_lanes text[], p_tasks boolean[],
    p_ranks bigint[], p_ready bigint[], p_deadlines bigint[], p_bodies text[],
    p_roots text[], p_ancestors text[], p_run_claims boolean[], p_keys text[], p_more_keys text[]
) returns table (kind text, ord integer, owner bigint, epoch bigint, last_seq bigint, said text, fresh boolean)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_s record;
    v_r record;
begin
    if cardinality(p_stand) = 0 then
        return;
    end if;
    with n as (
        select u.*, u.place as stood
        from unnest(p_ids, p_in, p_agents, p_lanes, p_ranks, p_ready, p_deadlines, p_run_claims)
            with ordinality as u(id, session, agent, lane, rank, ready_at, deadline_at, claim, place)
        where u.place = any (p_stand)
    ), s as (
        select n.session collate "C" as session, count(*)::integer as count,
               (array_agg(n.claim order by n.place))[1] as claim,
               (array_agg(n.lane order by n.ready_at, n.place))[1] as lane,
               (array_agg(n.agent order by n.ready_at, n.place))[1] as agent,
               (array_agg(n.rank order by n.ready_at, n.place))[1] as rank,
               min(n.ready_at) as ready_at, min(n.deadline_at) as urgent_at
        from n group by 1
    )
    select array_agg(s.session order by s.session) as sessions, array_agg(s.count order by s.session) as counts,
           array_agg(s.claim order by s.session) as claims, array_agg(s.lane order by s.session) as lanes,
           array_agg(s.agent order by s.session) as agents, array_agg(s.rank order by s.session) as ranks,
           array_agg(s.ready_at order by s.session) as ready, array_agg(s.urgent_at order by s.session) as urgent
    into v_s from s;
    with n as (
        select u.*, array_position(v_s.sessions, u.session) as of,
               (row_number() over (partition by u.session order by u.place))::integer as nth
        from unnest(p_ids, p_in, p_agents, p_lanes, p_tasks, p_ranks, p_ready, p_deadlines, p_bodies,
                    p_roots, p_ancestors, p_keys, p_more_keys)
            with ordinality as u(id, session, agent, lane, task, rank, ready_at, deadline_at, body, root,
                                 ancestors, key, other, place)
        where u.place = any (p_stand)
    )
    select array_agg(n.id order by n.place) as ids, array_agg(n.session order by n.place) as sessions,
           array_agg(n.of order by n.place) as of, array_agg(n.nth order by n.place) as nth,
           array_agg(n.agent order by n.place) as agents, array_agg(n.lane order by n.place) as lanes,
           array_agg(n.task order by n.place) as tasks, array_agg(n.rank order by n.place) as ranks,
           array_agg(n.ready_at order by n.place) as ready, array_agg(n.deadline_at order by n.place) as deadlines,
           array_agg(n.body order by n.place) as bodies, array_agg(n.root order by n.place) as roots,
           array_agg(n.ancestors order by n.place) as ancestors,
           array_agg(n.key order by n.place) as keys, array_agg(n.other order by n.place) as more_keys
    into v_r from n;
    return query select * from headway.admit_v1(
        p_node, p_now, v_s.sessions, v_s.counts, v_s.claims, v_s.lanes, v_s.agents, v_s.ranks, v_s.ready, v_s.urgent,
        v_r.ids, v_r.sessions, v_r.of, v_r.nth, v_r.agents, v_r.lanes, v_r.tasks, v_r.ranks, v_r.ready,
        v_r.deadlines, v_r.bodies, v_r.roots, v_r.ancestors, v_r.keys, v_r.more_keys);
end $$;


-- Gives a command its place. Answers nothing where there is nothing to command.
-- Indexes: sessions_pkey, orders_pkey, queue_session, orders_waiting.
create function headway.order_v1(
    p_node bigint, p_now bigint, p_id text, p_session text, p_command text, p_needs_work boolean
) returns table (owner bigint, epoch bigint, seq bigint, memory text, fresh boolean)
language plpgsql
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_session headway.sessions;
    v_seq bigint;
    v_work boolean;
    v_orders boolean;
    v_lives boolean := headway.lives_v1(p_node);
    v_takes boolean;
begin
    insert into headway.sessions as s (key, owner, epoch, last_seq) values (p_session, null, 0, 0)
    on conflict (key) do update set last_seq = s.last_seq
    returning s.* into v_session;
    select o.seq into v_seq from headway.orders o where o.id = p_id;
    if found then
        return query select v_session.owner, v_session.epoch, v_seq, v_session.memory, false;
        return;
    end if;
    v_work := exists (select from headway.queue q where q.session = p_session);
    v_orders := exists (select from headway.orders o where o.session = p_session and o.answer is null);
    if p_needs_work and not v_work then
        delete from headway.sessions s
        where s.key = p_session and s.owner is null and s.epoch = 0 and s.last_seq = 0 and s.memory is null;
        return;
    end if;
    v_takes := v_session.owner is null and v_lives and not v_work and not v_orders;
    update headway.sessions s
    set last_seq = s.last_seq + 1,
        owner = case when v_takes then p_node else s.owner end,
        epoch = case when v_takes then nextval('headway.epochs') else s.epoch end,
        urgent_at = case when s.owner is null and not v_takes then least(s.urgent_at, p_now) end
    where s.key = p_session returning s.* into v_session;
    insert into headway.orders (id, session, seq, command, asked_by, asked_at)
    values (p_id, p_session, v_session.last_seq, p_command, p_node, p_now);
    return query
        select v_session.owner, v_session.epoch, v_session.last_seq, v_session.memory, v_takes;
end $$;


-- Gives sessions, whose rows are locked, back: idle ones without a memory are deleted, the others stand ready by
-- their work. Answers how many have work.
-- Indexes: sessions_pkey, queue_session, orders_waiting.
create function headway.free_v1(p_sessions text[], p_now bigint) returns bigint
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
    v_gone bigint;
    v_work bigint;
begin
    delete from headway.sessions s using unnest(p_sessions) as n(key)
    where s.key = n.key and s.memory is null
        and not exists (select from headway.queue q where q.session = s.key)
        and not exists (select from headway.orders o where o.session = s.key and o.answer is null);
    get diagnostics v_gone = row_count;
    if v_gone = cardinality(p_sessions) then
        return 0;
    end if;
    with work as (
        select n.key,
               (select min(o.seq) from headway.orders o where o.session = n.key and o.answer is null) as order_seq,
               m.ready_at, m.deadline_at, h.lane, h.agent, h.rank
        from unnest(p_sessions) as n(key)
        left join lateral (
            -- What nobody decided about is ready by itself; what was decided about waits for a retry in front of it.
            select least(
                       min(case when q.orphaned then p_now when q.standing is null then q.ready_at end),
                       greatest(min(q.ready_at), max(case when q.holds then q.ready_at end))
                   ) as ready_at,
                   min(q.deadline_at) as deadline_at
            from headway.queue q where q.session = n.key
        ) m on true
        left join lateral (
            select q.lane, q.agent, q.rank from headway.queue q where q.session = n.key
            order by case when q.orphaned then 0 else q.ready_at end, q.seq limit 1
        ) h on true
    ), freed as (
        update headway.sessions s
        set owner = null, lane = w.lane, agent = w.agent, rank = w.rank, ready_at = w.ready_at,
            due_at = case when w.ready_at > p_now then w.ready_at end,
            urgent_at = case when w.order_seq is not null then p_now else w.deadline_at end
        from work w where s.key = w.key
        returning s.lane, s.urgent_at
    )
    select count(*) into v_work from freed f where f.lane is not null or f.urgent_at is not null;
    return v_work;
end $$;


-- Keeps starts, finishes and releases, if all the sessions are the node's under these epochs; else says which are
-- not, and keeps nothing. Sessions come sorted and without repetition. Columns in which all is as usual may be empty:
-- an end is `done`, handled and in no other run, an attempt is the first and in slot 0.
-- Answers `lost` and `kept` with a session, `ended` with a node that waits for an outcome, `work` if some is free.
-- Indexes: sessions_pkey, queue_run, endings_pkey, attempts_pkey.
create function headway.record_v1(
    p_node bigint, p_now bigint, p_sessions text[], p_epochs bigint[],
    p_f_ids text[], p_f_states text[], p_f_outcomes text[], p_f_attempts integer[], p_f_started bigint[],
    p_f_at bigint[], p_f_unhandled boolean[], p_f_into text[],
    p_s_slots integer[], p_s_ids text[], p_s_attempts integer[], p_s_epochs bigint[], p_s_at bigint[],
    p_careful boolean,
    p_x_in text[], p_x_seen bigint[]
) returns table (kind text, key text, node bigint)
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
    v_held bigint;
    v_marked bigint;
    v_gone bigint;
    v_free text[];
begin
    select count(*) into v_held from (
        select from unnest(p_sessions, p_epochs) as n(key, epoch)
        join headway.sessions s on s.key = n.key
        where s.owner = p_node and s.epoch = n.epoch
        order by s.key for no key update of s
    ) held;
    if v_held < cardinality(p_sessions) then
        return query
            select 'lost'::text, n.key, n.epoch from unnest(p_sessions, p_epochs) as n(key, epoch)
            where not exists (
                select from headway.sessions s where s.key = n.key and s.owner = p_node and s.epoch = n.epoch
            );
        return;
    end if;

    -- A run without a place has its outcome: whoever starts it goes by old news.
    if p_careful then
        return query
            select distinct 'lost'::text, h.session, h.epoch from unnest(p_s_ids, p_s_epochs) as n(id, epoch)
            join unnest(p_sessions, p_epochs) as h(session, epoch) on h.epoch = n.epoch
            where not exists (select from headway.queue q where q.run = n.id);
        if found then
            return;
        end if;
    end if;

    if cardinality(p_f_ids) > 0 then
        return query
            with gone as (
                delete from headway.queue q
                using unnest(p_f_ids, p_f_states, p_f_outcomes, p_f_attempts, p_f_started, p_f_at, p_f_unhandled,
                             p_f_into) as n(id, state, outcome, attempt, started_at, at, unhandled, into_run)
                where q.run = n.id
                returning q.run, q.session, q.task, q.asked_by, n.*
            ), ended as (
                insert into headway.endings (
                    run, state, outcome, attempt, started_at, finished_at, unhandled, into_run, task
                )
                select g.run, coalesce(g.state, 'done'), g.outcome, coalesce(g.attempt, 1), g.started_at, g.at,
                       coalesce(g.unhandled, false), g.into_run, g.task
                from gone g
            ), stopped as (
                delete from headway.attempts a using gone g where a.session = g.session and a.run = g.run
            )
            select 'ended'::text, null::text, g.asked_by from gone g where g.asked_by <> p_node group by g.asked_by;
    end if;

    if cardinality(p_s_ids) > 0 then
        with said as materialized (
            select q.session, coalesce(n.slot, 0) as slot, n.run, coalesce(n.attempt, 1) as attempt, n.epoch, n.at,
                   q.agent, q.task, q.cut is not null or q.orphaned as marked
            from unnest(p_s_slots, p_s_ids, p_s_attempts, p_s_epochs, p_s_at) as n(slot, run, attempt, epoch, at)
            join headway.queue q on q.run = n.run
        ), begun as (
            insert into headway.attempts (session, slot, run, attempt, node, epoch, started_at, agent, task)
            select n.session, n.slot, n.run, n.attempt, p_node, n.epoch, n.at, n.agent, n.task from said n
            -- A batch whose answer was lost comes again: what is there already is as it should be.
            where not p_careful or not exists (
                select from headway.attempts b where b.session = n.session and b.slot = n.slot
                    and b.run = n.run and b.attempt = n.attempt and b.epoch = n.epoch
            )
        )
        select count(*), count(*) filter (where n.marked) into v_held, v_marked from said n;
        if v_held < cardinality(p_s_ids) then
            -- A run has no place. As where a slot is taken, nothing is kept, and the batch comes again with care.
            raise unique_violation using constraint = 'attempts_pkey', message = 'a run that starts has no place';
        end if;
        if v_marked > 0 then
            update headway.queue q set cut = null, orphaned = false
            from unnest(p_s_ids) as n(id) where q.run = n.id and (q.cut is not null or q.orphaned);
        end if;
    end if;

    if cardinality(p_x_in) > 0 then
        -- Nearly always all of them are idle and nothing new has come.
        delete from headway.sessions s using unnest(p_x_in, p_x_seen) as n(key, seen)
        where s.key = n.key and s.last_seq = n.seen and s.memory is null
            and not exists (select from headway.queue q where q.session = s.key)
            and not exists (select from headway.orders o where o.session = s.key and o.answer is null);
        get diagnostics v_gone = row_count;
        if v_gone < cardinality(p_x_in) then
            return query
                select 'kept'::text, n.key, null::bigint from unnest(p_x_in, p_x_seen) as n(key, seen)
                join headway.sessions s on s.key = n.key where s.last_seq <> n.seen;
            select array_agg(n.key) into v_free from unnest(p_x_in, p_x_seen) as n(key, seen)
            join headway.sessions s on s.key = n.key where s.last_seq = n.seen;
            if v_free is not null and headway.free_v1(v_free, p_now) > 0 then
                return query select 'work'::text, null::text, null::bigint;
            end if;
        end if;
    end if;
end $$;


-- Puts what is to be said into the outbox; what is there already stays as it is. Of what is said once, only what is not
-- remembered under its key (H-2): these keys are of no admission, and are locked behind sessions, in their own order.
-- Indexes: outbox_pkey, keys_pkey.
create function headway.post_v1(
    p_ids text[], p_channels text[], p_at bigint[], p_bodies text[], p_runs text[], p_once text[], p_until bigint[]
) returns void
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
declare
    v_row record;
    v_kept text[] := '{}';
begin
    if cardinality(array_remove(p_once, null)) > 0 then
        for v_row in
            select n.* from unnest(p_ids, p_at, p_runs, p_once, p_until)
                with ordinality as n(id, at, run, once, until, ord)
            where n.once is not null order by n.once collate "C", n.ord
        loop
            insert into headway.keys as k (key, run, expires_at) values (v_row.once, v_row.run, v_row.until)
            on conflict (key) do update set run = excluded.run, expires_at = excluded.expires_at
            where k.expires_at <= v_row.at;
            if found then
                v_kept := v_kept || v_row.id;
            end if;
        end loop;
    end if;
    insert into headway.outbox (id, channel, due_at, first_at, body)
    select n.id, n.channel, n.at, n.at, n.body
    from unnest(p_ids, p_channels, p_at, p_bodies, p_once) as n(id, channel, at, body, once)
    where n.once is null or n.id = any (v_kept)
    order by n.id collate "C" on conflict (id) do nothing;
end $$;


-- Keeps all kinds of decisions. What `record_v1` knows is handed to it in between.
-- Answers besides: `news` with a node in whose sessions an order was put.
-- Indexes: sessions_pkey, runs_pkey, queue_run, queue_root, attempts_pkey, orders_pkey, outbox_pkey.
create function headway.record_all_v1(
    p_node bigint, p_now bigint, p_sessions text[], p_epochs bigint[],
    p_f_ids text[], p_f_states text[], p_f_outcomes text[], p_f_attempts integer[], p_f_started bigint[],
    p_f_at bigint[], p_f_unhandled boolean[], p_f_into text[],
    p_s_slots integer[], p_s_ids text[], p_s_attempts integer[], p_s_epochs bigint[], p_s_at bigint[],
    p_careful boolean,
    p_x_in text[], p_x_seen bigint[],
    p_m_ids text[], p_m_in text[], p_m_seqs bigint[], p_m_agents text[], p_m_lanes text[], p_m_tasks boolean[],
    p_m_ranks bigint[], p_m_ready bigint[], p_m_deadlines bigint[], p_m_roots text[], p_m_ancestors text[],
    p_m_bodies text[],
    p_e_ids text[], p_e_states text[], p_e_attempts integer[], p_e_until bigint[], p_e_standings text[],
    p_e_holds boolean[], p_e_endings text[],
    p_c_ids text[], p_c_roots text[], p_c_cuts text[],
    p_b_ids text[], p_b_bodies text[],
    p_t_ids text[],
    p_r_in text[], p_r_memories text[],
    p_o_ids text[], p_o_answers text[],
    p_d_ids text[], p_d_channels text[], p_d_at bigint[], p_d_bodies text[], p_d_runs text[],
    p_d_once text[], p_d_until bigint[]
) returns table (kind text, key text, node bigint)
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
    v_lost boolean := false;
    v_row record;
    v_owner bigint;
begin
    if cardinality(p_c_ids) > 0 then
        -- A cancel also locks the sessions of the roots, which new descendants lock too, and of the descendants
        -- there are, so that all are locked in order.
        perform from headway.sessions s
        where s.key in (
            select unnest(p_sessions) union select unnest(p_c_roots)
            union select q.session from headway.queue q
            where q.root = any (p_c_roots) and (q.ancestors && p_c_ids or '*' = any (p_c_ids))
        ) order by s.key for no key update;
    end if;
    for v_row in
        select * from headway.record_v1(
            p_node, p_now, p_sessions, p_epochs, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}',
            '{}', '{}', '{}', '{}', '{}', false, '{}', '{}')
    loop
        v_lost := true;
        return query select v_row.kind::text, v_row.key::text, v_row.node::bigint;
    end loop;
    if v_lost then
        return;
    end if;
    for v_row in
        select distinct h.session, h.epoch from unnest(p_s_ids, p_s_epochs) as n(id, epoch)
        join unnest(p_sessions, p_epochs) as h(session, epoch) on h.epoch = n.epoch
        where n.id <> all (p_m_ids) and not exists (select from headway.queue q where q.run = n.id)
    loop
        v_lost := true;
        return query select 'lost'::text, v_row.session::text, v_row.epoch::bigint;
    end loop;
    if v_lost then
        return;
    end if;

    if cardinality(p_m_ids) > 0 then
        with made as (
            insert into headway.runs (id, session, seq, agent, task, body)
            select n.id, n.session, n.seq, n.agent, n.task, n.body
            from unnest(p_m_ids, p_m_in, p_m_seqs, p_m_agents, p_m_tasks, p_m_bodies)
                as n(id, session, seq, agent, task, body)
            on conflict (id) do nothing returning id
        )
        insert into headway.queue (
            session, seq, run, agent, lane, task, rank, ready_at, deadline_at, asked_by, root, ancestors, merged
        )
        select n.session, n.seq, n.id, n.agent, n.lane, n.task, n.rank, n.ready_at, n.deadline_at, p_node, n.root,
               string_to_array(n.ancestors, e'\x1f'), true
        from unnest(p_m_ids, p_m_in, p_m_seqs, p_m_agents, p_m_lanes, p_m_tasks, p_m_ranks, p_m_ready,
                    p_m_deadlines, p_m_roots, p_m_ancestors)
            as n(id, session, seq, agent, lane, task, rank, ready_at, deadline_at, root, ancestors)
        join made m on m.id = n.id;
    end if;

    if cardinality(p_e_ids) > 0 then
        with said as (
            select q.session, n.* from unnest(p_e_ids, p_e_states, p_e_attempts, p_e_until, p_e_standings,
                                              p_e_holds, p_e_endings)
                as n(id, state, attempt, until, standing, holds, ending)
            join headway.queue q on q.run = n.id
        ), ended as (
            delete from headway.attempts a using said n
            where a.session = n.session and a.run = n.id
            returning a.*, n.ending
        ), kept as (
            insert into headway.past_attempts (run, session, attempt, node, epoch, started_at, ended_at, ending)
            select e.run, e.session, e.attempt, e.node, e.epoch, e.started_at, p_now, e.ending from ended e
        )
        update headway.queue q
        set state = n.state, attempt = n.attempt, ready_at = coalesce(n.until, q.ready_at),
            standing = coalesce(n.standing, q.standing), holds = n.holds, cut = null,
            orphaned = q.orphaned and not exists (select from ended e where e.run = n.id)
        from said n where q.run = n.id;
    end if;

    if cardinality(p_f_ids) + cardinality(p_s_ids) > 0 then
        return query select * from headway.record_v1(
            p_node, p_now, p_sessions, p_epochs,
            p_f_ids, p_f_states, p_f_outcomes, p_f_attempts, p_f_started, p_f_at, p_f_unhandled, p_f_into,
            p_s_slots, p_s_ids, p_s_attempts, p_s_epochs, p_s_at, p_careful, '{}', '{}');
    end if;

    if cardinality(p_t_ids) > 0 then
        update headway.queue q set standing = '{"after":' || q.seq || '}'
        from unnest(p_t_ids) as n(id) where q.run = n.id and q.standing is null;
    end if;
    if cardinality(p_r_in) > 0 then
        update headway.sessions s set memory = n.memory
        from unnest(p_r_in, p_r_memories) as n(key, memory) where s.key = n.key;
    end if;
    if cardinality(p_o_ids) > 0 then
        return query
            with answered as (
                update headway.orders o set answer = n.answer
                from unnest(p_o_ids, p_o_answers) as n(id, answer)
                where o.id = n.id and o.answer is null returning o.asked_by
            )
            select 'ended'::text, null::text, a.asked_by from answered a where a.asked_by <> p_node
            group by a.asked_by;
    end if;
    if cardinality(p_d_ids) > 0 then
        perform headway.post_v1(p_d_ids, p_d_channels, p_d_at, p_d_bodies, p_d_runs, p_d_once, p_d_until);
    end if;

    if cardinality(p_b_ids) > 0 then
        update headway.runs r set body = n.body from unnest(p_b_ids, p_b_bodies) as n(id, body) where r.id = n.id;
    end if;

    if cardinality(p_c_ids) > 0 then
        update headway.queue q set cut = n.cut
        from unnest(p_c_ids, p_c_cuts) as n(id, cut) where q.run = n.id and n.cut is not null;
        -- A new statement, so that it sees all descendants that came before the roots were locked (N-14).
        for v_row in
            select q.run, q.session, n.id as ancestor from unnest(p_c_ids, p_c_roots) as n(id, root)
            join headway.queue q on q.root = n.root and (n.id = any (q.ancestors) or n.id = '*')
            order by q.session, q.seq
        loop
            continue when exists (
                select from headway.orders o where o.id = 'cancel ' || v_row.ancestor || ' ' || v_row.run
            );
            update headway.sessions s
            set last_seq = s.last_seq + 1,
                urgent_at = case when s.owner is null then least(s.urgent_at, p_now) end
            where s.key = v_row.session returning s.owner into v_owner;
            insert into headway.orders (id, session, seq, command, asked_by, asked_at)
            select 'cancel ' || v_row.ancestor || ' ' || v_row.run, s.key, s.last_seq,
                   json_build_object('type', 'cancel', 'run_id', v_row.run)::text, p_node, p_now
            from headway.sessions s where s.key = v_row.session;
            return query select case when v_owner is null then 'work' else 'news' end::text, null::text, v_owner;
        end loop;
    end if;

    if cardinality(p_x_in) > 0 then
        return query select * from headway.record_v1(
            p_node, p_now, p_sessions, p_epochs, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}',
            '{}', '{}', '{}', '{}', '{}', false, p_x_in, p_x_seen);
    end if;
end $$;


-- What is in these sessions beyond a number: places, orders and, first, the session itself with the number up to which
-- the answer is whole, and whether there is more (`orphaned`). Indexes: queue_session, orders_waiting, runs_pkey.
create function headway.holdings_v1(p_sessions text[], p_seen bigint[], p_most integer)
returns table (
    kind text, session text, number bigint, epoch bigint, said text, attempt integer, standing text,
    orphaned boolean, started_at bigint, cut text
)
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
begin
    return query
        with held as materialized (
            select s.key, s.epoch, s.last_seq, s.memory, n.seen,
                   -- The number of the last place that fits; null if all fit.
                   (select q.seq from headway.queue q where q.session = s.key and q.seq > n.seen
                    order by q.seq offset p_most - 1 limit 1) as cut
            from unnest(p_sessions, p_seen) as n(key, seen)
            join headway.sessions s on s.key = n.key
        ), upto as (
            select h.*, least(h.cut, h.last_seq) as last from held h
        )
        select 'session'::text, u.key, u.last, u.epoch, u.memory, null::integer, null::text,
               u.last < u.last_seq, null::bigint, null::text
        from upto u
        union all
        (select 'place'::text, u.key, q.seq, null::bigint, r.body, q.attempt, q.standing, q.orphaned, q.started_at,
                q.cut
         from upto u
         -- Who has seen nothing is told of merged runs too, all at once: their numbers are no cursor.
         join headway.queue q on q.session = u.key and q.seq > u.seen
             and case when q.merged then u.seen <= 0 else q.seq <= u.last end
         join headway.runs r on r.id = q.run
         order by u.key, q.seq)
        union all
        (select 'order'::text, u.key, o.seq, null::bigint, o.command, null::integer, o.id, null::boolean,
                null::bigint, null::text
         from upto u
         join headway.orders o on o.session = u.key and o.answer is null and o.seq > u.seen and o.seq <= u.last
         order by u.key, o.seq);
end $$;


-- Takes sessions that nobody owns: in each lane at most as many as there is room, one of each agent in turn, the
-- lowest rank of an agent first; and, whatever the room, those with a passed deadline or an order.
-- For each (lane, agent) the rows come in rank order from sessions_ready, so what waits behind does not matter;
-- sessions_urgent and sessions_due for the rest.
-- Answers as `holdings_v1`, and one row `next`: when to look again, and whether more is ready.
create function headway.claim_v1(
    p_node bigint, p_now bigint, p_until bigint, p_lanes text[], p_rooms integer[], p_agents text[],
    p_most_urgent integer, p_most integer, p_not text[]
) returns table (
    kind text, session text, number bigint, epoch bigint, said text, attempt integer, standing text,
    orphaned boolean, started_at bigint, cut text
)
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
    v_taken text[] := '{}';
    v_some text[];
    v_room integer;
    v_share integer;
    v_ready text[];
    v_more boolean := false;
begin
    if not headway.lives_v1(p_node) then
        return query select 'next'::text, null::text, null::bigint, null::bigint, null::text, null::integer,
                            null::text, false, null::bigint, null::text;
        return;
    end if;
    -- A claim need not wait for the disk: nothing is done before a start is stored, and the commit of that start puts
    -- the claim on the disk as well. A claim that a crash of the server forgets was never acted upon.
    perform set_config('synchronous_commit', 'off', true);
    select array_agg(t.key) into v_some from (
        select s.key from headway.sessions s
        where s.urgent_at <= p_now and s.key <> all (p_not)
        order by s.urgent_at limit p_most_urgent for no key update skip locked
    ) t;
    if v_some is not null then
        update headway.sessions s
        set owner = p_node, epoch = nextval('headway.epochs'), lane = null, due_at = null, urgent_at = null
        from unnest(v_some) as n(key) where s.key = n.key;
        v_taken := v_some;
    end if;

    for i in 1 .. coalesce(cardinality(p_lanes), 0) loop
        v_room := p_rooms[i];
        -- Agents with something ready here; as long as there is room, those that gave their share are asked again.
        v_ready := array(
            select n.agent from unnest(p_agents) with ordinality as n(agent, ord) cross join lateral (
                select from headway.sessions s
                where s.lane = p_lanes[i] and s.agent = n.agent and s.ready_at <= p_until
                    and s.key <> all (p_not) limit 1
            ) x order by n.ord
        );
        while v_room > 0 and cardinality(v_ready) > 0 loop
            v_share := (v_room + cardinality(v_ready) - 1) / cardinality(v_ready);
            with found as (
                select n.agent, n.ord, c.key, c.rank
                from unnest(v_ready) with ordinality as n(agent, ord)
                cross join lateral (
                    select s.key, s.rank from headway.sessions s
                    where s.lane = p_lanes[i] and s.agent = n.agent and s.ready_at <= p_until
                    and s.key <> all (p_not)
                    order by s.rank limit v_share for no key update skip locked
                ) c
            ), turns as (
                select f.*, row_number() over (partition by f.agent order by f.rank) as turn from found f
            ), chosen as (
                select t.key, t.agent from turns t order by t.turn, t.ord limit v_room
            ), taken as (
                update headway.sessions s
                set owner = p_node, epoch = nextval('headway.epochs'), lane = null, due_at = null, urgent_at = null
                from chosen c where s.key = c.key
                returning s.key, c.agent
            )
            select array_agg(t.key),
                   array(select a.agent from taken a group by a.agent having count(*) >= v_share)
            into v_some, v_ready from taken t;
            exit when v_some is null;
            v_taken := v_taken || v_some;
            v_room := v_room - cardinality(v_some);
        end loop;
        v_more := v_more or exists (
            select from unnest(p_agents) as n(agent) cross join lateral (
                select from headway.sessions s
                where s.lane = p_lanes[i] and s.agent = n.agent and s.ready_at <= p_until
                    and s.key <> all (p_not) limit 1
            ) x
        );
    end loop;

    if v_more and cardinality(v_taken) = 0 then
        -- All that is ready is being looked at by others. Having nothing locked, it is safe to wait for one of them:
        -- if that was an admission, nobody else may come for the session.
        for i in 1 .. cardinality(p_lanes) loop
            select array_agg(t.key) into v_some from (
                select s.key from headway.sessions s
                where s.lane = p_lanes[i] and s.agent = any (p_agents) and s.ready_at <= p_until
                    and s.key <> all (p_not)
                limit 1 for no key update
            ) t;
            if v_some is not null then
                update headway.sessions s
                set owner = p_node, epoch = nextval('headway.epochs'), lane = null, due_at = null, urgent_at = null
                where s.key = v_some[1];
                v_taken := v_some;
                exit;
            end if;
        end loop;
    end if;

    if cardinality(v_taken) > 0 then
        return query select * from headway.holdings_v1(
            v_taken, array_fill(-1::bigint, array[cardinality(v_taken)]), p_most);
    end if;
    return query
        select 'next'::text, null::text,
               least(
                   (select min(x.due_at) from unnest(p_agents) as n(agent) cross join lateral (
                       select s.due_at from headway.sessions s
                       where s.agent = n.agent and s.due_at > p_until
                       order by s.due_at limit 1
                   ) x),
                   (select min(s.urgent_at) from headway.sessions s
                    where s.urgent_at > p_now)
               ),
               null::bigint, null::text, null::integer, null::text, v_more, null::bigint, null::text;
end $$;


-- Takes the sessions of these runs, by their numbers, where they are nobody's and what they have first is for a lane and
-- an agent given: for a node that knows of nothing else that is ready. Answers as `holdings_v1`.
-- Indexes: runs_number, sessions_pkey, queue_session, orders_waiting, runs_pkey.
create function headway.take_v1(
    p_node bigint, p_until bigint, p_lanes text[], p_agents text[], p_most integer, p_not text[], p_numbers bigint[]
) returns table (
    kind text, session text, number bigint, epoch bigint, said text, attempt integer, standing text,
    orphaned boolean, started_at bigint, cut text
)
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_run record;
    v_session headway.sessions;
begin
    if not headway.lives_v1(p_node) then
        return;
    end if;
    perform set_config('synchronous_commit', 'off', true);
    for v_run in
        select r.id, r.session, r.seq, r.body from headway.runs r
        where r.number = any (p_numbers) order by r.session
    loop
        update headway.sessions s
        set owner = p_node, epoch = nextval('headway.epochs'), lane = null, due_at = null, urgent_at = null
        where s.key = v_run.session and s.owner is null and s.lane = any (p_lanes) and s.agent = any (p_agents)
            and s.ready_at <= p_until and s.key <> all (p_not)
        returning s.* into v_session;
        continue when not found;
        if v_session.last_seq = 1 and v_run.seq = 1 then
            -- Nothing else has come: what there is to tell is known, but for what became of the run.
            return query
                select 'session'::text, v_session.key, 1::bigint, v_session.epoch, v_session.memory, null::integer,
                       null::text, false, null::bigint, null::text;
            return query
                select 'place'::text, q.session, q.seq, null::bigint, v_run.body, q.attempt, q.standing, q.orphaned,
                       q.started_at, q.cut
                from headway.queue q where q.run = v_run.id;
        else
            return query select * from headway.holdings_v1(
                array[v_session.key], array[-1::bigint], p_most);
        end if;
    end loop;
end $$;


-- Of these sessions, those still the node's in which more has come than was seen, with what came. If the answer is to
-- be complete, also all other sessions of the node, whole: that reads all sessions, and is only asked for after an
-- answer was lost. Index: sessions_pkey.
create function headway.news_v1(
    p_node bigint, p_sessions text[], p_seen bigint[], p_most integer, p_complete boolean
)
returns table (
    kind text, session text, number bigint, epoch bigint, said text, attempt integer, standing text,
    orphaned boolean, started_at bigint, cut text
)
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
declare
    v_keys text[];
    v_seen bigint[];
begin
    select array_agg(n.key), array_agg(n.seen) into v_keys, v_seen
    from unnest(p_sessions, p_seen) as n(key, seen)
    join headway.sessions s on s.key = n.key
    where s.owner = p_node and s.last_seq > n.seen;
    if p_complete then
        select v_keys || array_agg(n.key), v_seen || array_agg(-1::bigint) into v_keys, v_seen
        from (
            select s.key from headway.sessions s where s.owner = p_node
            except select u.key from unnest(p_sessions) as u(key)
        ) n;
    end if;
    if v_keys is not null then
        return query select h.* from headway.holdings_v1(v_keys, v_seen, p_most) h;
    end if;
end $$;


-- Says that a node lives. Answers its own row (alive or not), then its peers.
create function headway.renew_v1(p_node bigint)
returns table (id bigint, counter bigint, lease bigint, alive boolean, at bigint)
language plpgsql
as $$
#variable_conflict use_column
begin
    update headway.nodes n set counter = n.counter + 1 where n.id = p_node and n.ended = '';
    return query
        select n.id, n.counter, n.lease, n.ended = '', (extract(epoch from clock_timestamp()) * 1000000)::bigint
        from headway.nodes n where n.id = p_node or n.ended = '' order by n.id <> p_node, n.id;
end $$;


-- The live attempts of these sessions are left behind: on record as such, and their runs say so (D-7).
-- Indexes: attempts_pkey, queue_run.
create function headway.orphan_v1(p_sessions text[], p_now bigint) returns void
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
begin
    with lost as (
        delete from headway.attempts a using unnest(p_sessions) as n(key) where a.session = n.key returning a.*
    ), kept as (
        insert into headway.past_attempts (run, session, attempt, node, epoch, started_at, ended_at, ending)
        select l.run, l.session, l.attempt, l.node, l.epoch, l.started_at, p_now, 'orphaned' from lost l
    )
    update headway.queue q
    set orphaned = true, attempt = l.attempt, started_at = l.started_at, state = 'queued'
    from lost l where q.run = l.run;
end $$;


-- Ends a node and frees what it held, if its counter still is the given one (null: whatever it is). The node's row is
-- locked first, so of a renewal and a takeover only one can win (N-4). Answers whether it ended, and whether work is
-- free. Reads all sessions: a node's end is rare, and an index on the owner would cost every admission.
create function headway.end_node_v1(p_node bigint, p_counter bigint, p_now bigint, p_ended text)
returns table (ended boolean, freed bigint, work bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_keys text[];
    v_work bigint := 0;
begin
    -- Waits for what the node is just taking, so that it is freed too.
    perform pg_advisory_xact_lock(hashtextextended('headway.node', p_node));
    perform from headway.nodes n
    where n.id = p_node and n.ended = '' and (p_counter is null or n.counter = p_counter) for update;
    if not found then
        return query select false, 0::bigint, 0::bigint;
        return;
    end if;
    update headway.nodes n set ended = p_ended, ended_at = p_now where n.id = p_node;
    select array_agg(s.key) into v_keys from (
        select s.key from headway.sessions s where s.owner = p_node order by s.key for no key update
    ) s;
    if v_keys is not null then
        perform headway.orphan_v1(v_keys, p_now);
        v_work := headway.free_v1(v_keys, p_now);
    end if;
    delete from headway.slots s where s.node = p_node;
    delete from headway.slot_wants w where w.node = p_node;
    return query select true, coalesce(cardinality(v_keys), 0)::bigint, v_work;
end $$;


-- Holds so many of a lane's slots over all nodes: exact, as all who ask for this lane do so one after the other (L-8).
-- Nobody gets more while another node has wanted one for longer. Answers how many are held, whether more are free for
-- others than before, and whom to tell: those who wait if so, else those who have some if one is wanted.
create function headway.hold_slots_v1(p_node bigint, p_lane text, p_limit integer, p_count integer)
returns table (held integer, tell bigint[])
language plpgsql
as $$
declare
    v_mine integer;
    v_others bigint;
    v_since bigint;
    v_held integer;
begin
    if not headway.lives_v1(p_node) then
        return query select 0, '{}'::bigint[];
        return;
    end if;
    perform pg_advisory_xact_lock(hashtextextended('headway.slots.' || p_lane, 0));
    select coalesce(sum(s.taken) filter (where s.node = p_node), 0),
           coalesce(sum(s.taken) filter (where s.node <> p_node), 0)
    into v_mine, v_others from headway.slots s where s.lane = p_lane;
    select w.since into v_since from headway.slot_wants w where w.lane = p_lane and w.node = p_node;
    v_held := least(p_count, greatest(v_mine, p_limit - v_others));
    if v_held > v_mine and exists (
        select from headway.slot_wants w
        where w.lane = p_lane and w.node <> p_node and (v_since is null or w.since < v_since)
    ) then
        v_held := v_mine;
    end if;
    if v_held > 0 then
        insert into headway.slots as s (lane, node, taken) values (p_lane, p_node, v_held)
        on conflict (lane, node) do update set taken = excluded.taken;
    else
        delete from headway.slots s where s.lane = p_lane and s.node = p_node;
    end if;
    if v_held = p_count then
        delete from headway.slot_wants w where w.lane = p_lane and w.node = p_node;
    else
        -- Who gets some goes to the end of those who wait.
        insert into headway.slot_wants as w (lane, node) values (p_lane, p_node)
        on conflict (lane, node) do update
        set since = case when v_held > v_mine then excluded.since else w.since end;
    end if;
    return query select v_held, case
        when v_held < v_mine then array(
            select w.node from headway.slot_wants w where w.lane = p_lane and w.node <> p_node
        )
        when v_held < p_count then array(
            select s.node from headway.slots s where s.lane = p_lane and s.node <> p_node
        )
        else '{}'::bigint[]
    end;
end $$;


-- Forgets ended runs past their retention, unless a key leads to them; and what hangs on them. Answers how many.
-- Indexes: endings_finished, endings_pkey, runs_pkey, past_attempts_run, keys_pkey, keys_expiry.
create function headway.prune_v1(p_now bigint, p_runs_before bigint, p_tasks_before bigint, p_most integer)
returns integer
language plpgsql
as $$
declare
    v_ids text[];
begin
    delete from headway.keys k where k.key in (
        select o.key from headway.keys o where o.expires_at <= p_now
        order by o.expires_at limit p_most for update skip locked
    );
    v_ids := array(
        select e.run from headway.endings e
        where e.finished_at <= greatest(p_runs_before, p_tasks_before)
            and e.finished_at <= case when e.task then p_tasks_before else p_runs_before end
            and not exists (
                select from headway.runs r, unnest(r.keys) as n(key) join headway.keys k on k.key = n.key
                where r.id = e.run and k.run = r.id and k.expires_at > p_now
            )
        limit p_most for update skip locked
    );
    delete from headway.past_attempts a where a.run = any (v_ids);
    delete from headway.runs r where r.id = any (v_ids);
    delete from headway.endings e where e.run = any (v_ids);
    delete from headway.orders o where o.answer is not null and o.asked_at <= p_runs_before;
    delete from headway.outbox o where o.dead and o.first_at <= p_runs_before;
    delete from headway.events e where e.at <= p_runs_before;
    delete from headway.nodes n where n.ended <> '' and n.ended_at <= p_runs_before
        and not exists (select from headway.sessions s where s.owner = n.id);
    return cardinality(v_ids);
end $$;
