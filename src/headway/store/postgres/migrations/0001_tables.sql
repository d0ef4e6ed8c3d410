-- The tables. Written for the schema `headway`; another schema is put in its place when the file is read.
-- Later files only add, so that nodes of two versions can work side by side.
--
-- Keys are compared as bytes (collate "C"): quicker, and the same order as Python's, in which rows are locked.

create table headway.meta (
    name text primary key,
    value text not null
);

-- One sequence for all sessions: rows of idle sessions are deleted, and an epoch must not come twice.
-- It begins with one value taken, so that last_value always is the latest that was given out.
create sequence headway.epochs;
select nextval('headway.epochs');

create table headway.nodes (
    id bigint generated always as identity primary key,
    name text not null,
    started_at bigint not null,
    counter bigint not null default 0,
    lease bigint not null,
    ended text not null default '',
    ended_at bigint
) with (fillfactor = 50);

-- A session that somebody owns, or that has unfinished work, or a memory. While nobody owns it, the claim goes by
-- lane, agent, rank and ready_at of the work that is ready first, and by urgent_at: from then on it is claimed even
-- where there is no room for it (a deadline passes, or an order waits). due_at is ready_at where that was still to come.
-- lane, due_at and urgent_at are null while it is owned: so owned rows stand in no index but the key's, and numbering a
-- run changes none at all.
create table headway.sessions (
    key text collate "C" primary key,
    owner bigint,
    epoch bigint not null,
    last_seq bigint not null,
    rank bigint,
    ready_at bigint,
    due_at bigint,
    urgent_at bigint,
    lane text collate "C",
    agent text collate "C",
    memory text
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0);
create index sessions_ready on headway.sessions (lane, agent, rank, ready_at) where lane is not null;
create index sessions_due on headway.sessions (agent, due_at) where due_at is not null;
create index sessions_urgent on headway.sessions (urgent_at) where urgent_at is not null;

-- What was asked. Rows are only added, and deleted when they are forgotten: an end is a row of its own, so a finish
-- rewrites nothing, whatever the length of the text.
create table headway.runs (
    number bigint generated always as identity,
    seq bigint not null,
    task boolean not null,
    id text collate "C" primary key,
    session text collate "C" not null,
    agent text collate "C" not null,
    keys text[],
    body text not null
) with (autovacuum_vacuum_cost_delay = 0);
create unique index runs_number on headway.runs (number);
create index runs_session on headway.runs (session, number);
create index runs_agent on headway.runs (agent, number);

-- How runs ended. The BRIN index is for the pruner: rows lie in the order of finished_at.
create table headway.endings (
    started_at bigint,
    finished_at bigint not null,
    attempt integer not null,
    unhandled boolean not null,
    task boolean not null,
    run text collate "C" primary key,
    state text not null,
    into_run text collate "C",
    outcome text not null
) with (autovacuum_vacuum_cost_delay = 0);
create index endings_finished on headway.endings using brin (finished_at) with (pages_per_range = 16);
create index endings_odd on headway.endings (state, run) where state <> 'done';

-- Unfinished runs: made by an admission or a merge, deleted by the finish.
create table headway.queue (
    seq bigint not null,
    rank bigint not null,
    ready_at bigint not null,
    deadline_at bigint,
    asked_by bigint,
    started_at bigint,
    attempt integer not null default 0,
    task boolean not null,
    orphaned boolean not null default false,
    merged boolean not null default false,
    holds boolean not null default false,
    session text collate "C" not null,
    run text collate "C" not null,
    lane text collate "C" not null,
    agent text collate "C" not null,
    state text not null default 'queued',
    cut text,
    standing text,
    root text collate "C",
    ancestors text[]
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0);
create index queue_session on headway.queue (session, seq);
create unique index queue_run on headway.queue (run);
create index queue_tasks on headway.queue (agent) where task;
create index queue_root on headway.queue (root) where root is not null;

-- Live attempts. The key is an assertion: owners pick the slots, and no two live attempts have the same (N-11).
create table headway.attempts (
    epoch bigint not null,
    node bigint not null,
    started_at bigint not null,
    attempt integer not null,
    slot integer not null,
    task boolean not null,
    session text collate "C" not null,
    run text collate "C" not null,
    agent text collate "C" not null,
    primary key (session, slot)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0);

-- Attempts that ended without ending their run: each repeated attempt is on record.
create table headway.past_attempts (
    run text collate "C" not null,
    session text collate "C" not null,
    attempt integer not null,
    node bigint not null,
    epoch bigint not null,
    started_at bigint not null,
    ended_at bigint not null,
    ending text not null
);
create index past_attempts_run on headway.past_attempts (run);

create table headway.orders (
    id text collate "C" primary key,
    session text collate "C" not null,
    seq bigint not null,
    command text not null,
    asked_by bigint not null,
    asked_at bigint not null,
    answer text
);
create index orders_waiting on headway.orders (session, seq) where answer is null;

-- Dedupe and idempotency keys. A key whose run nobody dealt with is free again: that is read from the run,
-- so a finish never touches keys, and keys are always locked before sessions.
create table headway.keys (
    key text collate "C" primary key,
    run text collate "C" not null,
    expires_at bigint not null
);
create index keys_expiry on headway.keys (expires_at);

create table headway.outbox (
    id text collate "C" primary key,
    channel text collate "C" not null,
    due_at bigint not null,
    first_at bigint not null,
    tries integer not null default 0,
    dead boolean not null default false,
    error text not null default '',
    body text not null
);
create index outbox_due on headway.outbox (channel, due_at) where not dead;

-- How many of a lane's slots over all nodes each node has (L-8), and who waits for one: `since`
-- only says who came first.
create table headway.slots (
    lane text collate "C" not null,
    node bigint not null,
    taken integer not null,
    primary key (lane, node)
);
create table headway.slot_wants (
    lane text collate "C" not null,
    node bigint not null,
    since bigint not null default nextval('headway.epochs'),
    primary key (lane, node)
);

create table headway.events (
    number bigint generated always as identity primary key,
    kind text not null,
    at bigint not null,
    node bigint,
    fields text not null
);
