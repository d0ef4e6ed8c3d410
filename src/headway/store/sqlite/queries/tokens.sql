-- name: add_token
-- Index: the primary key of tokens, and its unique name.
INSERT OR IGNORE INTO tokens (id, name, created_at, body) VALUES (?, ?, ?, ?);

-- name: same_token
-- Index: the primary key of tokens.
SELECT 1 FROM tokens WHERE id = ? AND body = ?;

-- name: tokens
-- A scan: there are few.
SELECT body FROM tokens ORDER BY created_at, id;

-- name: revoke_token
-- Index: the primary key of tokens.
DELETE FROM tokens WHERE id = ?;
