-- How far the sweep of old answers has come, a rid of receipts.
ALTER TABLE meta ADD COLUMN receipts_swept INTEGER NOT NULL DEFAULT 0;

-- Unfinished are those whose outcome is not known, running or not.
DROP INDEX receipts_running;
CREATE INDEX receipts_unfinished ON receipts (principal) WHERE state IN ('running', 'unknown');

-- What a worker's late reports took of their quota.
ALTER TABLE attachments ADD COLUMN late_bytes INTEGER NOT NULL DEFAULT 0;

CREATE INDEX questions_run ON questions (run);
CREATE INDEX questions_state ON questions (state);

-- What keeps the link to a peer down that only a person can change, a code of
-- the catalogue; '' for nothing.
ALTER TABLE peers ADD COLUMN condition TEXT NOT NULL DEFAULT '';

-- The terminal of the Run's generation took another Run: nobody consumes.
ALTER TABLE runs ADD COLUMN released INTEGER NOT NULL DEFAULT 0;
