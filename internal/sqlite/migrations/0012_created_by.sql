-- Who asked for a terminal or worktree: the name of a principal, as in receipts.
-- Empty for what no request of its own made.
ALTER TABLE terminals ADD COLUMN created_by TEXT NOT NULL DEFAULT '';
ALTER TABLE worktrees ADD COLUMN created_by TEXT NOT NULL DEFAULT '';

-- What a home has here, newest first.
CREATE INDEX attachments_home ON attachments (home) WHERE home <> '';
