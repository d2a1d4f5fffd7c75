-- How far a worktree has come: creating, ready or removing; what people call it;
-- its setup, as JSON; the request that made it if no worker's start did.
ALTER TABLE worktrees ADD COLUMN state TEXT NOT NULL DEFAULT 'ready';
ALTER TABLE worktrees ADD COLUMN display_name TEXT NOT NULL DEFAULT '';
ALTER TABLE worktrees ADD COLUMN comment TEXT NOT NULL DEFAULT '';
ALTER TABLE worktrees ADD COLUMN setup TEXT NOT NULL DEFAULT '{"report":{"effective":"none","source":"default","state":"not_applicable"}}';
ALTER TABLE worktrees ADD COLUMN request TEXT NOT NULL DEFAULT '';

-- It is being made or about to be removed, or its setup may run.
ALTER TABLE worktrees ADD COLUMN open INTEGER NOT NULL DEFAULT 0;
CREATE INDEX worktrees_open ON worktrees (open) WHERE open = 1;
CREATE INDEX worktrees_parent ON worktrees (parent);
