-- Who may ask a server for what, and what a server asks the store for. Only adds.

-- The body is the whole token as JSON; names are unique among those that are there.
create table headway.tokens (
    created_at bigint not null,
    id text collate "C" primary key,
    name text collate "C" not null,
    body text not null
);
create unique index tokens_name on headway.tokens (name);

-- Lists of tasks do not look at messages, of which there may be far more.
create index runs_tasks on headway.runs (number) where task;


-- Who asked for a run, read from its body, in which it comes right after the names. The body is not read as JSON: it may
-- hold what the server's JSON functions refuse, such as an escaped NUL.
create function headway.source_v1(p_body text) returns text
language sql immutable
as $$
    select substring(p_body from '^\{"id": ?"(?:[^"\\]|\\.)*", ?"agent": ?"(?:[^"\\]|\\.)*", ?"session": ?"(?:[^"\\]|\\.)*", ?"source": ?"(\w+)"')
$$;


-- Admits all of these runs, or none (T-5). Takes and answers what `admit_checked_v1` does; but if that turns one away, all
-- that it did is undone, and the only answer is one row `turned`.
-- Locks and indexes: those of `admit_checked_v1`.
create function headway.admit_together_v1(
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
as $$
#variable_conflict use_column
declare
    v_kinds text[];
    v_ords integer[];
    v_owners bigint[];
    v_epochs bigint[];
    v_last bigint[];
    v_said text[];
    v_fresh boolean[];
begin
    begin
        select array_agg(a.kind order by a.place), array_agg(a.ord order by a.place), array_agg(a.owner order by a.place),
               array_agg(a.epoch order by a.place), array_agg(a.last_seq order by a.place),
               array_agg(a.said order by a.place), array_agg(a.fresh order by a.place)
        into v_kinds, v_ords, v_owners, v_epochs, v_last, v_said, v_fresh
        from headway.admit_checked_v1(
            p_node, p_now, p_sessions, p_counts, p_claims, p_s_lanes, p_s_agents, p_s_ranks, p_s_ready, p_s_urgent,
            p_ids, p_in, p_of, p_nth, p_agents, p_lanes, p_tasks, p_ranks, p_ready, p_deadlines, p_bodies,
            p_roots, p_ancestors, p_keys, p_more_keys, p_run_claims, p_retries,
            p_k_of, p_k_runs, p_k_keys, p_k_expires, p_k_idempotency, p_max, p_max_per_agent, p_full, p_stopped)
            with ordinality as a(kind, ord, owner, epoch, last_seq, said, fresh, place);
        if 'turned' = any (v_kinds) then
            -- What this block has written is undone with it; what stands in variables is not.
            raise exception using errcode = 'HW001', message = 'turned away';
        end if;
    exception when sqlstate 'HW001' then
        return query
            select 'turned'::text, 0, null::bigint, null::bigint, null::bigint,
                   v_said[array_position(v_kinds, 'turned')], false;
        return;
    end;
    return query
        select * from unnest(v_kinds, v_ords, v_owners, v_epochs, v_last, v_said, v_fresh);
end $$;
