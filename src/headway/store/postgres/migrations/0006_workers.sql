-- Workers and machines as they were seen (D-8), and which runs each run has below it. Only adds.

-- A worker as it was last found, as JSON, which process that was, and when; dead_at is when of one that is dead. So a beat
-- changes no column that is in an index.
create table headway.workers (
    started_at bigint not null,
    at bigint not null,
    dead_at bigint,
    node bigint not null,
    id text collate "C" primary key,
    agent text collate "C" not null,
    host text collate "C" not null,
    process text not null,
    state text not null,
    body text not null
) with (fillfactor = 60);

-- Those that live are few: who wants them of one agent reads all of these.
create index workers_living on headway.workers (started_at, id) where dead_at is null;
create index workers_dead on headway.workers (started_at, id) where dead_at is not null;
create index workers_dead_of_agent on headway.workers (agent, started_at, id) where dead_at is not null;
create index workers_dead_of_host on headway.workers (host, started_at, id) where dead_at is not null;
create index workers_ended on headway.workers (dead_at) where dead_at is not null;

create table headway.beats (
    at bigint not null,
    worker text collate "C" not null,
    body text not null,
    primary key (worker, at)
);
create index beats_at on headway.beats (at);

create table headway.snapshots (
    at bigint not null,
    node bigint not null,
    host text collate "C" not null,
    body text not null,
    primary key (host, at, node)
);
create index snapshots_at on headway.snapshots (at, node);

-- Sub-runs, once for each run above them, as long as they are kept; the queue has only those that are unfinished.
-- Written by triggers, so that runs of older nodes are in it too. `number` only says which came first.
create table headway.kin (
    number bigint generated always as identity,
    ancestor text collate "C" not null,
    run text collate "C" not null,
    primary key (ancestor, number)
);
create index kin_run on headway.kin (run);

create function headway.kin_added_v1() returns trigger
language plpgsql
as $$
begin
    insert into headway.kin (ancestor, run) select n.id, new.run from unnest(new.ancestors) as n(id);
    return null;
end $$;

create function headway.kin_gone_v1() returns trigger
language plpgsql
as $$
begin
    delete from headway.kin k using gone g where k.run = g.id;
    return null;
end $$;

create trigger runs_gone after delete on headway.runs
referencing old table as gone for each statement execute function headway.kin_gone_v1();

-- Most runs have nobody above them: for those no function is called.
create trigger queue_added after insert on headway.queue
for each row when (new.ancestors is not null) execute function headway.kin_added_v1();

-- What had ended before is in no tree.
insert into headway.kin (ancestor, run)
select n.id, q.run from headway.queue q cross join unnest(q.ancestors) as n(id)
where q.ancestors is not null order by q.seq;
