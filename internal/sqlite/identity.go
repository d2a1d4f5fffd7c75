package sqlite

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/wavehub/wavehub/internal/id"
)

// ensureIdentity gives a new store its random id and its first epoch.
func ensureIdentity(c *conn) error {
	var raw [16]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return fmt.Errorf("making the store's id: %w", err)
	}
	err := c.once(`INSERT INTO meta (id, store_id, store_epoch) VALUES (1, ?, 1) ON CONFLICT (id) DO NOTHING`,
		"store_"+id.Encode(raw))
	return wrap(err, "keeping the store's id")
}

// StoreIdentity implements store.Identity.
func (q querier) StoreIdentity() (storeID string, epoch int64, err error) {
	_, ok, err := one(q, func(s scanner, _ *struct{}) error { return s.Scan(&storeID, &epoch) },
		`SELECT store_id, store_epoch FROM meta WHERE id = 1`)
	if err == nil && !ok {
		err = errors.New("the store has no identity")
	}
	return storeID, epoch, wrap(err, "reading the store's identity")
}
