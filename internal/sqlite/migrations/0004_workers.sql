-- Identities of attached workers. Names are case-folded by their grammar.
CREATE TABLE workers (
    rid        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    name       TEXT NOT NULL,
    state      TEXT NOT NULL,
    generation INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX workers_name ON workers (name) WHERE state <> 'revoked';

CREATE TABLE sessions (
    rid          INTEGER PRIMARY KEY,
    home         TEXT NOT NULL,
    id           TEXT NOT NULL,
    worker       TEXT NOT NULL,
    orchestrator TEXT NOT NULL,
    dispatch     TEXT NOT NULL,
    status       TEXT NOT NULL,
    backend_ctx  BLOB,
    metadata     BLOB,
    updated_at   INTEGER NOT NULL,
    UNIQUE (id, home)
) STRICT;

-- What is assigned to attached workers.
ALTER TABLE attachments ADD COLUMN worker TEXT NOT NULL DEFAULT '';
ALTER TABLE attachments ADD COLUMN session TEXT NOT NULL DEFAULT '';
ALTER TABLE attachments ADD COLUMN start_mail TEXT NOT NULL DEFAULT '';
ALTER TABLE attachments ADD COLUMN taken_up INTEGER NOT NULL DEFAULT 0;
CREATE INDEX attachments_worker ON attachments (worker, dispatch) WHERE worker <> '';
CREATE INDEX attachments_worker_open ON attachments (worker) WHERE open = 1 AND worker <> '';

-- The last sequence that any Delivery ever held; of a mailbox of before it is the
-- last one of all, for it is not known better.
ALTER TABLE mailboxes ADD COLUMN handed_seq INTEGER NOT NULL DEFAULT 0;
UPDATE mailboxes SET handed_seq = seq;
