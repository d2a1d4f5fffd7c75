-- The limit of one run of verify_cmd, in seconds; 0 takes the owner's default.
ALTER TABLE tasks ADD COLUMN verify_timeout_secs INTEGER NOT NULL DEFAULT 0;

-- What the owner found out about a success. JSON, null for nothing.
ALTER TABLE dispatches ADD COLUMN findings TEXT NOT NULL DEFAULT 'null';

-- What the owner is to find out. JSON.
ALTER TABLE attachments ADD COLUMN checks TEXT NOT NULL DEFAULT '{}';
CREATE INDEX attachments_dir ON attachments (dir);
CREATE INDEX attachments_task ON attachments (task);

-- Reports that their owner has taken and looks into. The row goes with them.
CREATE TABLE holds (
    rid      INTEGER PRIMARY KEY,
    home     TEXT NOT NULL,
    dispatch TEXT NOT NULL,
    hold     TEXT NOT NULL, -- JSON
    UNIQUE (home, dispatch)
) STRICT;

-- What a worktree was when the first attempt of a Task got it.
CREATE TABLE baselines (
    rid      INTEGER PRIMARY KEY,
    home     TEXT NOT NULL,
    task     TEXT NOT NULL,
    dir      TEXT NOT NULL,
    baseline TEXT NOT NULL, -- JSON
    UNIQUE (home, task, dir)
) STRICT;
