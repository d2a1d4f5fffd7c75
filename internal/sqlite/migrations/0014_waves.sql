CREATE TABLE waves (
    rid            INTEGER PRIMARY KEY,
    id             TEXT NOT NULL UNIQUE,
    uid            TEXT NOT NULL UNIQUE,
    run            TEXT NOT NULL,
    goal           TEXT NOT NULL,
    owner          TEXT NOT NULL,
    status         TEXT NOT NULL,
    ending         TEXT,
    policy         TEXT NOT NULL,
    metadata       BLOB,
    total          INTEGER NOT NULL,
    warnings       TEXT,
    iteration      INTEGER NOT NULL,
    raise_reason   TEXT NOT NULL,
    exhausted      INTEGER NOT NULL,
    checkpoint_dir TEXT NOT NULL,
    filed          INTEGER NOT NULL, -- the version that the checkpoint folder shows
    elapsed_ms     INTEGER NOT NULL,
    downtime_ms    INTEGER NOT NULL,
    clock          TEXT NOT NULL,
    created_at     INTEGER NOT NULL,
    started_at     INTEGER NOT NULL,
    completed_at   INTEGER NOT NULL,
    version        INTEGER NOT NULL
) STRICT;
CREATE INDEX waves_run ON waves (run);
CREATE INDEX waves_status ON waves (status);
CREATE INDEX waves_unfiled ON waves (rid) WHERE checkpoint_dir <> '' AND filed < version;

-- Rows whose uid is no wave's belong to one that is being stored in parts; what
-- was left of such a wave is dropped when the hub starts.
CREATE TABLE wave_tasks (
    rid          INTEGER PRIMARY KEY,
    uid          TEXT NOT NULL,
    pos          INTEGER NOT NULL,
    token        TEXT NOT NULL,
    task         TEXT NOT NULL UNIQUE,
    level        INTEGER NOT NULL,
    sub          INTEGER NOT NULL,
    entry        TEXT NOT NULL,
    iteration    INTEGER NOT NULL DEFAULT 0,
    ended_as     TEXT NOT NULL DEFAULT '',
    ended_reason TEXT NOT NULL DEFAULT '',
    base         TEXT NOT NULL DEFAULT '',
    noted        TEXT NOT NULL DEFAULT '',
    ready_ms     INTEGER NOT NULL DEFAULT 0,
    idle         TEXT NOT NULL DEFAULT '',
    started_at   INTEGER NOT NULL DEFAULT 0,
    completed_at INTEGER NOT NULL DEFAULT 0,
    UNIQUE (uid, pos),
    UNIQUE (uid, token)
) STRICT;

CREATE TABLE wave_orders (
    rid    INTEGER PRIMARY KEY,
    uid    TEXT NOT NULL,
    first  INTEGER NOT NULL,
    second INTEGER NOT NULL,
    path   TEXT NOT NULL,
    UNIQUE (uid, first, second)
) STRICT;
CREATE INDEX wave_orders_uid ON wave_orders (uid);

-- Tasks of a wave that is being stored in parts, until its last part moves them
-- to tasks.
CREATE TABLE staged_tasks (
    rid          INTEGER PRIMARY KEY,
    uid          TEXT NOT NULL,
    id           TEXT NOT NULL,
    run          TEXT NOT NULL,
    title        TEXT NOT NULL,
    spec         TEXT NOT NULL,
    state        TEXT NOT NULL,
    verify_cmd   TEXT NOT NULL,
    verify       TEXT NOT NULL,
    write_scope  TEXT,
    scope        TEXT NOT NULL,
    timeout_secs INTEGER NOT NULL,
    verify_timeout_secs INTEGER NOT NULL,
    handoff_path TEXT NOT NULL,
    hat          TEXT NOT NULL,
    origin       TEXT NOT NULL,
    latest       TEXT NOT NULL,
    result       TEXT NOT NULL,
    result_data  BLOB,
    version      INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    dependencies TEXT
) STRICT;
CREATE INDEX staged_tasks_uid ON staged_tasks (uid);
CREATE TABLE staged_deps (
    rid        INTEGER PRIMARY KEY,
    uid        TEXT NOT NULL,
    task       TEXT NOT NULL,
    dependency TEXT NOT NULL
) STRICT;
CREATE INDEX staged_deps_uid ON staged_deps (uid);

-- The log of events. The newest one is always kept: no sequence is used again.
CREATE TABLE events (
    seq   INTEGER PRIMARY KEY,
    at    INTEGER NOT NULL,
    run   TEXT NOT NULL,
    wave  TEXT NOT NULL,
    token TEXT NOT NULL,
    task  TEXT NOT NULL,
    pos   INTEGER NOT NULL,
    total INTEGER NOT NULL,
    type  TEXT NOT NULL,
    data  TEXT NOT NULL
) STRICT;
CREATE INDEX events_wave ON events (wave, seq) WHERE wave <> '';
CREATE INDEX events_run ON events (run, seq);
CREATE INDEX events_at ON events (at);
-- The highest sequence that was ever dropped.
ALTER TABLE meta ADD COLUMN events_swept INTEGER NOT NULL DEFAULT 0;

-- What a Dispatch used, as its settlement said: a JSON object, or nothing.
ALTER TABLE dispatches ADD COLUMN usage BLOB;
