package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/sqlite"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Options{Open: func(t *testing.T, publish func([]hub.Signal)) store.Store {
		s, err := sqlite.Open(context.Background(), sqlite.Config{
			Path:    filepath.Join(t.TempDir(), "hub.db"),
			Publish: publish,
			OnFatal: func(err error) { t.Errorf("fatal: %v", err) },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Errorf("closing: %v", err)
			}
		})
		return s
	}})
}
