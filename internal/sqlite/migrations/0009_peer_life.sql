-- A key can be paired again with another store: what was paired before stays as
-- a removed peer, to which its Dispatches are pinned.
DROP INDEX peers_fingerprint;
CREATE UNIQUE INDEX peers_fingerprint ON peers (fingerprint) WHERE state <> 'removed';
CREATE INDEX peers_removed ON peers (fingerprint);
CREATE INDEX peers_lineage ON peers (lineage);
