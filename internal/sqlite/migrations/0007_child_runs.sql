-- The JSON result of the report that settled the Task; NULL for none.
ALTER TABLE tasks ADD COLUMN result_data BLOB;

-- How deep the Dispatch's Run is, the Run that its worker coordinates, and the
-- peer whose grants bound it although this hub is its home; '' for none.
ALTER TABLE attachments ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attachments ADD COLUMN child TEXT NOT NULL DEFAULT '';
ALTER TABLE attachments ADD COLUMN sponsor TEXT NOT NULL DEFAULT '';
