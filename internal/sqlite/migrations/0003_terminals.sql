-- The supervised processes of this hub, those of its workers among them.
CREATE TABLE terminals (
    rid        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    role       TEXT NOT NULL,
    worktree   TEXT NOT NULL,
    dir        TEXT NOT NULL,
    agent      TEXT NOT NULL,
    name       TEXT NOT NULL,
    rows       INTEGER NOT NULL,
    cols       INTEGER NOT NULL,
    home       TEXT NOT NULL,
    dispatch   TEXT NOT NULL,
    process    TEXT NOT NULL, -- JSON, null for none
    created_at INTEGER NOT NULL,
    closed_at  INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL,
    exit_code  INTEGER,
    signal     TEXT NOT NULL
) STRICT;
CREATE INDEX terminals_worktree ON terminals (worktree);
CREATE INDEX terminals_open ON terminals (rid) WHERE ended_at = 0;

-- What is attached to a terminal, to be told of its end.
CREATE INDEX attachments_terminal ON attachments (terminal, open);
