-- Every table is a rowid table, so that rows are appended; rid is the cursor of
-- lists and never leaves the process. Times are microseconds, flags 0 or 1,
-- struct-valued fields JSON text.

CREATE TABLE meta (
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    store_id    TEXT NOT NULL,
    store_epoch INTEGER NOT NULL CHECK (store_epoch >= 1)
) STRICT;

CREATE TABLE receipts (
    rid        INTEGER PRIMARY KEY,
    space      TEXT NOT NULL,
    key        TEXT NOT NULL,
    principal  TEXT NOT NULL,
    generation INTEGER NOT NULL,
    op         TEXT NOT NULL,
    sum        TEXT NOT NULL,
    state      TEXT NOT NULL,
    stage      TEXT NOT NULL,
    status     INTEGER NOT NULL,
    body       BLOB,
    object     TEXT NOT NULL,
    run        TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (space, key)
) STRICT;
CREATE INDEX receipts_running ON receipts (principal) WHERE state = 'running';

CREATE TABLE credentials (
    rid        INTEGER PRIMARY KEY,
    sum        TEXT NOT NULL UNIQUE,
    kind       TEXT NOT NULL,
    subject    TEXT NOT NULL,
    home       TEXT NOT NULL,
    generation INTEGER NOT NULL
) STRICT;

CREATE TABLE runs (
    rid        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    objective  TEXT NOT NULL,
    generation INTEGER NOT NULL,
    parent     TEXT NOT NULL,
    depth      INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- One row per context; a consumer without a context has one per Run.
CREATE TABLE bindings (
    rid        INTEGER PRIMARY KEY,
    run        TEXT NOT NULL,
    generation INTEGER NOT NULL,
    context    TEXT NOT NULL,
    at         INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX bindings_context ON bindings (context) WHERE context <> '';
CREATE UNIQUE INDEX bindings_token ON bindings (run) WHERE context = '';
CREATE INDEX bindings_run ON bindings (run, generation);

CREATE TABLE audits (
    rid        INTEGER PRIMARY KEY,
    run        TEXT NOT NULL,
    at         INTEGER NOT NULL,
    action     TEXT NOT NULL,
    principal  TEXT NOT NULL,
    context    TEXT NOT NULL,
    generation INTEGER NOT NULL
) STRICT;
CREATE INDEX audits_run ON audits (run);

CREATE TABLE tasks (
    rid          INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    run          TEXT NOT NULL,
    title        TEXT NOT NULL,
    spec         TEXT NOT NULL,
    state        TEXT NOT NULL,
    verify_cmd   TEXT NOT NULL,
    verify       TEXT NOT NULL,
    write_scope  TEXT NOT NULL, -- JSON
    scope        TEXT NOT NULL,
    timeout_secs INTEGER NOT NULL,
    handoff_path TEXT NOT NULL,
    hat          TEXT NOT NULL,
    origin       TEXT NOT NULL,
    latest       TEXT NOT NULL,
    result       TEXT NOT NULL,
    version      INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    dependencies TEXT NOT NULL -- JSON, in the order given; task_deps is its index
) STRICT;
CREATE INDEX tasks_run ON tasks (run);
CREATE INDEX tasks_run_state ON tasks (run, state);

CREATE TABLE task_deps (
    rid        INTEGER PRIMARY KEY,
    task       TEXT NOT NULL REFERENCES tasks (id),
    dependency TEXT NOT NULL,
    UNIQUE (task, dependency)
) STRICT;
CREATE INDEX task_deps_dependency ON task_deps (dependency);

CREATE TABLE dispatches (
    rid           INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE,
    task          TEXT NOT NULL,
    run           TEXT NOT NULL,
    state         TEXT NOT NULL,
    reason        TEXT NOT NULL,
    retry_of      TEXT NOT NULL,
    server_peer   TEXT NOT NULL,
    server_name   TEXT NOT NULL,
    outcome       TEXT NOT NULL,
    evidence      TEXT NOT NULL,
    exit_code     INTEGER,
    created_at    INTEGER NOT NULL,
    settled_at    INTEGER NOT NULL,
    report_sum    TEXT NOT NULL,
    request       TEXT NOT NULL,
    pin_lineage   TEXT NOT NULL,
    pin_store     TEXT NOT NULL,
    pin_epoch     INTEGER NOT NULL,
    quiet         INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    live          INTEGER NOT NULL, -- the state is not final
    start_receipt TEXT NOT NULL,    -- JSON
    peer_request  BLOB
) STRICT;
CREATE INDEX dispatches_run ON dispatches (run);
CREATE INDEX dispatches_task ON dispatches (task);
CREATE INDEX dispatches_peer ON dispatches (server_peer) WHERE server_peer <> '';
CREATE INDEX dispatches_live ON dispatches (live) WHERE live = 1;

CREATE TABLE mailboxes (
    rid         INTEGER PRIMARY KEY,
    box         TEXT NOT NULL UNIQUE,
    seq         INTEGER NOT NULL,
    live        INTEGER NOT NULL,
    done        INTEGER NOT NULL,
    acked_seq   INTEGER NOT NULL,
    outstanding TEXT NOT NULL
) STRICT;

-- mailbox and seq are NULL for a message that is in no mailbox of this hub.
CREATE TABLE messages (
    rid        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    mailbox    INTEGER REFERENCES mailboxes (rid),
    seq        INTEGER,
    run        TEXT NOT NULL,
    sender     TEXT NOT NULL,
    recipient  TEXT NOT NULL,
    type       TEXT NOT NULL,
    subject    TEXT NOT NULL,
    body       TEXT NOT NULL,
    payload    BLOB,
    thread     TEXT NOT NULL,
    reply_to   TEXT NOT NULL,
    live       INTEGER NOT NULL, -- a check may deliver it
    created_at INTEGER NOT NULL,
    verdict    TEXT NOT NULL,
    reason     TEXT NOT NULL,
    UNIQUE (mailbox, seq)
) STRICT;
CREATE INDEX messages_live ON messages (mailbox, live, seq);
CREATE INDEX messages_stale ON messages (sender) WHERE live = 0;

CREATE TABLE deliveries (
    rid        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    box        TEXT NOT NULL,
    generation INTEGER NOT NULL,
    first_seq  INTEGER NOT NULL,
    last_seq   INTEGER NOT NULL,
    count      INTEGER NOT NULL,
    state      TEXT NOT NULL,
    at         INTEGER NOT NULL
) STRICT;

CREATE TABLE questions (
    rid       INTEGER PRIMARY KEY,
    message   TEXT NOT NULL UNIQUE,
    run       TEXT NOT NULL,
    dispatch  TEXT NOT NULL,
    sum       TEXT NOT NULL,
    state     TEXT NOT NULL,
    answer    TEXT NOT NULL,
    answer_id TEXT NOT NULL
) STRICT;
CREATE INDEX questions_pending ON questions (dispatch) WHERE state = 'pending';

CREATE TABLE attachments (
    rid            INTEGER PRIMARY KEY,
    home           TEXT NOT NULL,
    dispatch       TEXT NOT NULL,
    task           TEXT NOT NULL,
    run            TEXT NOT NULL,
    request        TEXT NOT NULL,
    spec           TEXT NOT NULL, -- JSON
    receipt        TEXT NOT NULL, -- JSON
    capability     TEXT NOT NULL,
    terminal       TEXT NOT NULL,
    worktree       TEXT NOT NULL,
    dir            TEXT NOT NULL,
    process        TEXT NOT NULL, -- JSON, null for none
    completion     TEXT NOT NULL,
    exit_done      INTEGER NOT NULL,
    fence          TEXT NOT NULL, -- JSON, null for none
    fenced         INTEGER NOT NULL,
    tombstone      INTEGER NOT NULL,
    last_report_at INTEGER NOT NULL,
    report_sum     TEXT NOT NULL,
    late           INTEGER NOT NULL,
    open           INTEGER NOT NULL, -- its process or its fence still needs care
    UNIQUE (home, dispatch)
) STRICT;
CREATE INDEX attachments_open ON attachments (open) WHERE open = 1;

CREATE TABLE relay_feeds (
    rid       INTEGER PRIMARY KEY,
    peer      TEXT NOT NULL,
    direction TEXT NOT NULL,
    UNIQUE (peer, direction)
) STRICT;

-- last_bytes and acked_bytes count payload bytes from the queue's beginning.
CREATE TABLE relay_queues (
    rid         INTEGER PRIMARY KEY,
    feed        INTEGER NOT NULL REFERENCES relay_feeds (rid),
    dispatch    TEXT NOT NULL,
    last_seq    INTEGER NOT NULL,
    last_bytes  INTEGER NOT NULL,
    acked_seq   INTEGER NOT NULL,
    acked_bytes INTEGER NOT NULL,
    parked      TEXT NOT NULL,
    UNIQUE (dispatch, feed)
) STRICT;

-- The log of everything queued; pos is the feed position. Rows never change.
CREATE INDEX relay_queues_open ON relay_queues (feed) WHERE acked_seq < last_seq;
CREATE TABLE relay_items (
    pos       INTEGER PRIMARY KEY,
    feed      INTEGER NOT NULL,
    queue     INTEGER NOT NULL REFERENCES relay_queues (rid),
    seq       INTEGER NOT NULL,
    end_bytes INTEGER NOT NULL, -- the queue's last_bytes with this item
    id        TEXT NOT NULL,
    kind      TEXT NOT NULL,
    payload   BLOB,
    UNIQUE (queue, seq)
) STRICT;
CREATE INDEX relay_items_feed ON relay_items (feed);

CREATE TABLE relay_cursors (
    rid         INTEGER PRIMARY KEY,
    dispatch    TEXT NOT NULL,
    lineage     TEXT NOT NULL,
    store_id    TEXT NOT NULL,
    store_epoch INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    UNIQUE (dispatch, lineage, store_id, store_epoch)
) STRICT;

CREATE TABLE feed_states (
    rid         INTEGER PRIMARY KEY,
    peer        TEXT NOT NULL,
    direction   TEXT NOT NULL,
    store_id    TEXT NOT NULL,
    store_epoch INTEGER NOT NULL,
    position    INTEGER NOT NULL,
    UNIQUE (peer, direction)
) STRICT;

CREATE TABLE peers (
    rid           INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE,
    name          TEXT NOT NULL,
    lineage       TEXT NOT NULL,
    fingerprint   TEXT NOT NULL,
    addresses     TEXT NOT NULL, -- JSON
    role          TEXT NOT NULL,
    grants        TEXT NOT NULL, -- JSON
    state         TEXT NOT NULL,
    store_id      TEXT NOT NULL,
    store_epoch   INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    confirm_until INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX peers_name ON peers (name) WHERE state <> 'removed';
CREATE UNIQUE INDEX peers_fingerprint ON peers (fingerprint);

CREATE TABLE invites (
    rid        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    slot       TEXT NOT NULL,
    key        BLOB,
    role       TEXT NOT NULL,
    grants     TEXT NOT NULL, -- JSON
    expires_at INTEGER NOT NULL,
    wrong      INTEGER NOT NULL,
    used       INTEGER NOT NULL,
    used_by    TEXT NOT NULL,
    joined     TEXT NOT NULL
) STRICT;
CREATE INDEX invites_slot ON invites (slot);
CREATE INDEX invites_open ON invites (used) WHERE used = 0;

-- name_fold is the name with case folded away.
CREATE TABLE repos (
    rid        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    name       TEXT NOT NULL,
    name_fold  TEXT NOT NULL UNIQUE,
    path       TEXT NOT NULL,
    kind       TEXT NOT NULL,
    setup      TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX repos_path ON repos (path);

CREATE TABLE worktrees (
    rid         INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    repo        TEXT NOT NULL,
    name        TEXT NOT NULL,
    name_fold   TEXT NOT NULL,
    path        TEXT NOT NULL,
    branch      TEXT NOT NULL,
    base_commit TEXT NOT NULL,
    parent      TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    UNIQUE (name_fold, repo)
) STRICT;
CREATE INDEX worktrees_repo ON worktrees (repo);
CREATE INDEX worktrees_path ON worktrees (path);

-- The last six characters of an id abbreviate it.
CREATE INDEX runs_end ON runs (substr(id, -6));
CREATE INDEX tasks_end ON tasks (substr(id, -6));
CREATE INDEX dispatches_end ON dispatches (substr(id, -6));
