-- The position of the log at which the present epoch began.
ALTER TABLE meta ADD COLUMN epoch_begin INTEGER NOT NULL DEFAULT 0;

-- The highest epoch of this store that a peer has seen: of a store that was put
-- back it may be ahead of the store's own.
ALTER TABLE meta ADD COLUMN epoch_seen INTEGER NOT NULL DEFAULT 0;

-- items and bytes are what waits in queues that are not parked; acked_items
-- how many are acknowledged in this epoch, acked_pos the newest of them, swept_pos
-- the newest one that is gone.
ALTER TABLE relay_feeds ADD COLUMN items INTEGER NOT NULL DEFAULT 0;
ALTER TABLE relay_feeds ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE relay_feeds ADD COLUMN acked_items INTEGER NOT NULL DEFAULT 0;
ALTER TABLE relay_feeds ADD COLUMN acked_pos INTEGER NOT NULL DEFAULT 0;
ALTER TABLE relay_feeds ADD COLUMN swept_pos INTEGER NOT NULL DEFAULT 0;

-- Sequences up to swept_seq are gone; ended_at is when the queue was first seen
-- to be of a settled Dispatch, 0 before.
ALTER TABLE relay_queues ADD COLUMN swept_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE relay_queues ADD COLUMN swept_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE relay_queues ADD COLUMN ended_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX relay_queues_parked ON relay_queues (feed) WHERE parked <> '';

UPDATE relay_feeds SET
    items = (SELECT COALESCE(SUM(last_seq - acked_seq), 0) FROM relay_queues WHERE feed = relay_feeds.rid AND parked = ''),
    bytes = (SELECT COALESCE(SUM(last_bytes - acked_bytes), 0) FROM relay_queues WHERE feed = relay_feeds.rid AND parked = ''),
    acked_items = (SELECT COALESCE(SUM(acked_seq), 0) FROM relay_queues WHERE feed = relay_feeds.rid),
    acked_pos = (SELECT COALESCE(MAX(i.pos), 0) FROM relay_queues q CROSS JOIN relay_items i
        WHERE q.feed = relay_feeds.rid AND i.queue = q.rid AND i.seq = q.acked_seq);

-- Nothing was kept of what was imported up to known; pos is the place of the
-- last item in its source's log.
ALTER TABLE relay_cursors ADD COLUMN known INTEGER NOT NULL DEFAULT 0;
ALTER TABLE relay_cursors ADD COLUMN pos INTEGER NOT NULL DEFAULT 0;
ALTER TABLE relay_cursors ADD COLUMN parked TEXT NOT NULL DEFAULT '';
-- Of what was imported before, the place is at most where its source's log was.
UPDATE relay_cursors SET known = seq,
    pos = (SELECT COALESCE(MAX(f.position), 0) FROM peers p CROSS JOIN feed_states f
        WHERE p.lineage = relay_cursors.lineage AND f.peer = p.id AND f.store_id = relay_cursors.store_id AND f.store_epoch = relay_cursors.store_epoch);
CREATE INDEX relay_cursors_parked ON relay_cursors (lineage, store_id, store_epoch) WHERE parked <> '';

-- items counts what was imported of the epoch; seen is the highest epoch of the
-- store that was met, also while the source is one that was put back to before it.
ALTER TABLE feed_states ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;
UPDATE feed_states SET seen = store_epoch;
ALTER TABLE feed_states ADD COLUMN items INTEGER NOT NULL DEFAULT 0;
UPDATE feed_states SET items = (SELECT COALESCE(SUM(c.seq), 0) FROM peers p CROSS JOIN relay_cursors c
    WHERE p.id = feed_states.peer AND c.lineage = p.lineage AND c.store_id = feed_states.store_id AND c.store_epoch = feed_states.store_epoch);

-- What was imported as a sequence and left no message.
CREATE TABLE relay_marks (
    rid      INTEGER PRIMARY KEY,
    cursor   INTEGER NOT NULL REFERENCES relay_cursors (rid),
    seq      INTEGER NOT NULL,
    dispatch TEXT NOT NULL,
    item     TEXT NOT NULL,
    sum      BLOB NOT NULL,
    UNIQUE (cursor, seq)
) STRICT;
CREATE INDEX relay_marks_item ON relay_marks (dispatch, item);
