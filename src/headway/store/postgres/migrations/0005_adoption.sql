-- Work that outlives its node (W-2): on which machine a node runs, which attempts go on without it, and how long their
-- sessions are left to other nodes of that machine. Nodes of an older program go on with their calls: they know nothing
-- of this, and take such sessions over like any other.
-- The tables are changed in the order in which calls lock them: so whoever is at work meanwhile waits, and none is in
-- the way of the other.

alter table headway.nodes add column host text not null default '', add column grace bigint not null default 0;

-- Until then only nodes of that machine may claim the session. Whoever owns it next takes both away.
alter table headway.sessions add column reserved_for text collate "C", add column reserved_until bigint;
create index sessions_reserved on headway.sessions (reserved_until) where reserved_until is not null;

-- The machine on which a worker of an orphaned run may still be.
alter table headway.queue add column host text;

alter table headway.attempts add column outlives boolean not null default false;


-- As `record_all_v1`, for a batch with starts whose work goes on outside the node's process (`p_l_ids`).
-- Indexes: as there; queue_run, attempts_pkey.
create function headway.record_all_v2(
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
    p_d_once text[], p_d_until bigint[],
    p_l_ids text[]
) returns table (kind text, key text, node bigint)
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan set jit = off
as $$
#variable_conflict use_column
begin
    return query
        select * from headway.record_all_v1(
            p_node, p_now, p_sessions, p_epochs, p_f_ids, p_f_states, p_f_outcomes, p_f_attempts, p_f_started,
            p_f_at, p_f_unhandled, p_f_into, p_s_slots, p_s_ids, p_s_attempts, p_s_epochs, p_s_at, p_careful,
            p_x_in, p_x_seen, p_m_ids, p_m_in, p_m_seqs, p_m_agents, p_m_lanes, p_m_tasks, p_m_ranks, p_m_ready,
            p_m_deadlines, p_m_roots, p_m_ancestors, p_m_bodies, p_e_ids, p_e_states, p_e_attempts, p_e_until,
            p_e_standings, p_e_holds, p_e_endings, p_c_ids, p_c_roots, p_c_cuts, p_b_ids, p_b_bodies, p_t_ids,
            p_r_in, p_r_memories, p_o_ids, p_o_answers, p_d_ids, p_d_channels, p_d_at, p_d_bodies, p_d_runs,
            p_d_once, p_d_until);
    update headway.attempts a set outlives = true
    from unnest(p_l_ids) as n(id) join headway.queue q on q.run = n.id
    where a.session = q.session and a.run = q.run and a.node = p_node and a.epoch = any (p_s_epochs)
        and not a.outlives;
end $$;


-- As `end_node_v1`. If the node is dead, sessions in which work outlives it are left to its machine for its grace.
create function headway.end_node_v2(p_node bigint, p_counter bigint, p_now bigint, p_ended text)
returns table (ended boolean, freed bigint, work bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_keys text[];
    v_work bigint := 0;
    v_host text := '';
    v_grace bigint;
    v_runs text[] := '{}';
    v_kept text[] := '{}';
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
        if p_ended = 'dead' then
            select n.host, n.grace into v_host, v_grace from headway.nodes n where n.id = p_node;
        end if;
        if v_host <> '' then
            select coalesce(array_agg(a.run), '{}'), coalesce(array_agg(distinct a.session), '{}') into v_runs, v_kept
            from headway.attempts a where a.outlives and a.node = p_node and a.session = any (v_keys);
            -- So are those that it had taken over from another node of its machine, and not gone on with.
            v_kept := v_kept || array(
                select q.session from headway.queue q
                where q.session = any (v_keys) and q.orphaned and q.host = v_host
            );
        end if;
        perform headway.orphan_v1(v_keys, p_now);
        v_work := headway.free_v1(v_keys, p_now);
        if cardinality(v_kept) > 0 then
            update headway.queue q set host = v_host from unnest(v_runs) as n(run) where q.run = n.run;
            update headway.sessions s set reserved_for = v_host, reserved_until = p_now + v_grace
            from unnest(v_kept) as n(key) where s.key = n.key;
        end if;
    end if;
    delete from headway.slots s where s.node = p_node;
    delete from headway.slot_wants w where w.node = p_node;
    return query select true, coalesce(cardinality(v_keys), 0)::bigint, v_work;
end $$;


-- As `claim_v1`, but for sessions that are left to their machine: nodes of that take them, with room or without, if
-- they run all agents whose workers may be in them; others only when that is over, and are told when that will be.
-- Indexes: as there; sessions_reserved, queue_session.
create function headway.claim_v2(
    p_node bigint, p_now bigint, p_until bigint, p_lanes text[], p_rooms integer[], p_agents text[],
    p_most_urgent integer, p_most integer, p_not text[], p_host text
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
    v_again boolean := false;
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
        where s.urgent_at <= p_now and (s.reserved_until is null or s.reserved_until <= p_now)
            and s.key <> all (p_not)
        order by s.urgent_at limit p_most_urgent for no key update skip locked
    ) t;
    if v_some is not null then
        update headway.sessions s
        set owner = p_node, epoch = nextval('headway.epochs'), lane = null, due_at = null, urgent_at = null,
            reserved_for = null, reserved_until = null
        from unnest(v_some) as n(key) where s.key = n.key;
        v_taken := v_some;
        v_again := cardinality(v_some) >= p_most_urgent;
    end if;

    if p_host <> '' then
        select array_agg(t.key) into v_some from (
            select s.key from headway.sessions s
            where s.reserved_until is not null and s.reserved_for = p_host and s.owner is null
                and s.key <> all (p_not)
                and not exists (
                    select from headway.queue q
                    where q.session = s.key and q.orphaned and q.host = p_host and q.agent <> all (p_agents)
                )
            order by s.reserved_until limit p_most_urgent for no key update skip locked
        ) t;
        if v_some is not null then
            update headway.sessions s
            set owner = p_node, epoch = nextval('headway.epochs'), lane = null, due_at = null, urgent_at = null,
                reserved_for = null, reserved_until = null
            from unnest(v_some) as n(key) where s.key = n.key;
            v_taken := v_taken || v_some;
            v_again := v_again or cardinality(v_some) >= p_most_urgent;
        end if;
    end if;

    for i in 1 .. coalesce(cardinality(p_lanes), 0) loop
        v_room := p_rooms[i];
        -- Agents with something ready here; as long as there is room, those that gave their share are asked again.
        v_ready := array(
            select n.agent from unnest(p_agents) with ordinality as n(agent, ord) cross join lateral (
                select from headway.sessions s
                where s.lane = p_lanes[i] and s.agent = n.agent and s.ready_at <= p_until
                    and (s.reserved_until is null or s.reserved_until <= p_now) and s.key <> all (p_not) limit 1
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
                    and (s.reserved_until is null or s.reserved_until <= p_now) and s.key <> all (p_not)
                    order by s.rank limit v_share for no key update skip locked
                ) c
            ), turns as (
                select f.*, row_number() over (partition by f.agent order by f.rank) as turn from found f
            ), chosen as (
                select t.key, t.agent from turns t order by t.turn, t.ord limit v_room
            ), taken as (
                update headway.sessions s
                set owner = p_node, epoch = nextval('headway.epochs'), lane = null, due_at = null, urgent_at = null,
                    reserved_for = null, reserved_until = null
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
                    and (s.reserved_until is null or s.reserved_until <= p_now) and s.key <> all (p_not) limit 1
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
                    and (s.reserved_until is null or s.reserved_until <= p_now) and s.key <> all (p_not)
                limit 1 for no key update
            ) t;
            if v_some is not null then
                update headway.sessions s
                set owner = p_node, epoch = nextval('headway.epochs'), lane = null, due_at = null, urgent_at = null,
                    reserved_for = null, reserved_until = null
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
                   -- There may be more that needs no room: ask again at once.
                   case when v_again then p_now + 1 end,
                   (select min(x.due_at) from unnest(p_agents) as n(agent) cross join lateral (
                       select s.due_at from headway.sessions s
                       where s.agent = n.agent and s.due_at > p_until
                       order by s.due_at limit 1
                   ) x),
                   (select min(s.urgent_at) from headway.sessions s
                    where s.urgent_at > p_now),
                   (select min(s.reserved_until) from headway.sessions s
                    where s.reserved_until > p_now and s.owner is null
                        and (s.urgent_at is not null or s.agent = any (p_agents)))
               ),
               null::bigint, null::text, null::integer, null::text, v_more, null::bigint, null::text;
end $$;


-- As `take_v1`, but for sessions that are left to their machine.
create function headway.take_v2(
    p_node bigint, p_now bigint, p_until bigint, p_lanes text[], p_agents text[], p_most integer, p_not text[],
    p_numbers bigint[]
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
        set owner = p_node, epoch = nextval('headway.epochs'), lane = null, due_at = null, urgent_at = null,
            reserved_for = null, reserved_until = null
        where s.key = v_run.session and s.owner is null and s.lane = any (p_lanes) and s.agent = any (p_agents)
            and s.ready_at <= p_until and (s.reserved_until is null or s.reserved_until <= p_now)
            and s.key <> all (p_not)
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
