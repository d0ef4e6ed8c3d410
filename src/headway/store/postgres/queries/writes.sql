-- Statements that change one row, or rows that need no session's lock.

-- name: enlist
insert into headway.nodes (name, started_at, lease, host, grace) values ($1, $2, $3, $4, $5) returning id;

-- name: keep
insert into headway.events (kind, at, node, fields) values ($1, $2, $3, $4);

-- name: take_deliveries
-- Two nodes never take the same one: rows that another is taking are skipped. Index: outbox_due.
with taken as (
    update headway.outbox o set due_at = $4
    where o.id in (
        select d.id from headway.outbox d
        where d.channel = any ($1::text[]) and d.due_at <= $3 and not d.dead
        order by d.first_at, d.id limit $2 for update skip locked
    )
    returning o.id, o.body, o.tries, o.first_at
)
select t.body, t.tries, t.first_at from taken t order by t.first_at, t.id;

-- name: delivered
-- Index: outbox_pkey.
delete from headway.outbox o where o.id = $1;

-- name: deliver_again
-- Index: outbox_pkey.
update headway.outbox o set due_at = $2, tries = $4, error = $3 where o.id = $1;

-- name: give_up_letters
-- What nobody has taken: no node has the channel. Index: outbox_due.
update headway.outbox o set dead = true, error = $1 where not o.dead and o.due_at <= $2;

-- name: dead_letter
-- Index: outbox_pkey.
update headway.outbox o set dead = true, tries = $3, error = $2 where o.id = $1;

-- name: tell
select pg_notify(n.channel, n.payload) from unnest($1::text[], $2::text[]) as n(channel, payload);
