-- How far the sweep of old answers has come, a rid of receipts.
ALTER TABLE meta ADD COLUMN receipts_swept INTEGER NOT NULL DEFAULT 0;
