-- Whether this hub keeps streams parked at the peer, and whether the peer keeps
-- some here.
ALTER TABLE peers ADD COLUMN reverse INTEGER NOT NULL DEFAULT 0;
ALTER TABLE peers ADD COLUMN parks INTEGER NOT NULL DEFAULT 0;
