-- The lineage of a peer whose key was rotated, as its proofs; NULL: its first key.
ALTER TABLE peers ADD COLUMN proofs BLOB;

-- The fingerprint of the key of this hub that the peer has pinned; '': the first.
ALTER TABLE peers ADD COLUMN knows TEXT NOT NULL DEFAULT '';

-- What the peer offered in its last hello, JSON.
ALTER TABLE peers ADD COLUMN contracts TEXT NOT NULL DEFAULT 'null';
ALTER TABLE peers ADD COLUMN features TEXT NOT NULL DEFAULT 'null';

-- The fingerprint of the key of this hub that the code is bound to; '': the first.
ALTER TABLE invites ADD COLUMN bound_to TEXT NOT NULL DEFAULT '';

-- The contract and the features that a remote start needs.
ALTER TABLE dispatches ADD COLUMN pin_contract TEXT NOT NULL DEFAULT '';
ALTER TABLE dispatches ADD COLUMN pin_features TEXT NOT NULL DEFAULT '';
