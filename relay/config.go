package relay

import (
	"context"
	"errors"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/relay/wire"
)

// Config configures sessions. Zero durations and sizes mean the defaults.
type Config struct {
	Source   Source
	Importer Importer
	Feed     Feed
	Nonce    string   // of this process
	Presence Presence // nil: this hub neither says nor hears of workers
	// Check judges the peer's hello before any item is sent or taken: another
	// store than the pinned one is refused. nil accepts.
	Check func(ctx context.Context, peer hub.PeerID, theirs wire.Hello) error
	// Silent is told at each Look that a home of this hub does not answer; it must
	// not block. nil: nobody is.
	Silent func(peer hub.PeerID)

	Ping  time.Duration // 15 s; a link is dead 2½ of the peer's intervals after its last frame
	Hello time.Duration // 10 s for the hello exchange
	Grace time.Duration // 500 ms for the goodbye of a session that ends
	Again time.Duration // 1 s until a gap is asked for again
	Proof time.Duration // 5 s for a sign of life after a sleep
	Look  time.Duration // 3 s between looks for bytes of the peer

	Window     int64 // 2 MiB of items in flight; at least one frame
	Batch      int   // 256 KiB per write
	BatchItems int   // 512
}

const (
	maxInterval  = 2 * time.Minute // a peer cannot keep a dead link for longer
	maxReissues  = 30              // of one gap, then the session ends
	mergedFrames = 16              // that one import or ack commit takes together
)

func (c *Config) fill() error {
	if c.Source == nil || c.Importer == nil || c.Feed == nil || c.Nonce == "" {
		return errors.New("relay: Source, Importer, Feed and Nonce are needed")
	}
	orDuration(&c.Ping, 15*time.Second)
	orDuration(&c.Hello, 10*time.Second)
	orDuration(&c.Grace, 500*time.Millisecond)
	orDuration(&c.Again, time.Second)
	orDuration(&c.Proof, 5*time.Second)
	orDuration(&c.Look, 3*time.Second)
	if c.Silent == nil {
		c.Silent = func(hub.PeerID) {}
	}
	if c.Window == 0 {
		c.Window = 2 << 20
	}
	if c.Batch == 0 {
		c.Batch = 256 << 10
	}
	if c.BatchItems == 0 {
		c.BatchItems = 512
	}
	if c.Window < wire.MaxFrame || c.Batch < 0 || c.BatchItems < 0 || c.BatchItems > wire.MaxItems {
		return errors.New("relay: Window, Batch or BatchItems is out of range")
	}
	return nil
}

func orDuration(d *time.Duration, def time.Duration) {
	if *d <= 0 {
		*d = def
	}
}
