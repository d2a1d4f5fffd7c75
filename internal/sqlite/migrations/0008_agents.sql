-- What the owner knows of an attachment's agent, JSON.
ALTER TABLE attachments ADD COLUMN agent TEXT NOT NULL DEFAULT '{"session":{}}';

-- The end of a worker's output, for when its files are gone. JSON.
CREATE TABLE outputs (
    rid      INTEGER PRIMARY KEY,
    home     TEXT NOT NULL,
    dispatch TEXT NOT NULL,
    output   TEXT NOT NULL,
    UNIQUE (home, dispatch)
) STRICT;

-- One row per agent whose provider has refused to work.
CREATE TABLE agent_pools (
    rid   INTEGER PRIMARY KEY,
    agent TEXT NOT NULL UNIQUE,
    class TEXT NOT NULL,
    until INTEGER NOT NULL,
    times INTEGER NOT NULL
) STRICT;
