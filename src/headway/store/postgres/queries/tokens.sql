-- Statements about tokens: few rows, seldom changed.

-- name: add_token
-- Indexes: tokens_pkey, tokens_name.
insert into headway.tokens (id, name, created_at, body) values ($1, $2, $3, $4) on conflict do nothing returning id;

-- name: same_token
-- Index: tokens_pkey.
select t.id from headway.tokens t where t.id = $1 and t.body = $2;

-- name: tokens
-- Reads all of them: there are few.
select t.body from headway.tokens t order by t.created_at, t.id;

-- name: revoke_token
-- Index: tokens_pkey.
delete from headway.tokens t where t.id = $1 returning t.id;
