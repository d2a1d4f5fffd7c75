package sqlite

import (
	"sync/atomic"
	"time"
)

const (
	checkpointAfter = time.Second
	checkpointBytes = 4 << 20 // of log, estimated
)

// checkpointer moves the log into the database beside the writer, on its own
// connection: a second after a commit, or sooner when the log has grown.
// It waits for commits and does nothing on an idle store.
type checkpointer struct {
	conn  *conn
	drv   seam
	hook  func(string)
	fatal func(error)
	after time.Duration // from a commit to its round

	log   atomic.Int64  // bytes since the last round, estimated
	dirty chan struct{} // capacity 1: something was committed
	large chan struct{} // capacity 1: the log has grown
	stop  chan struct{}
	ended chan struct{}
}

func newCheckpointer(c *conn, drv seam, hook func(string), fatal func(error)) *checkpointer {
	return &checkpointer{
		conn: c, drv: drv, hook: hook, fatal: fatal, after: checkpointAfter,
		dirty: make(chan struct{}, 1), large: make(chan struct{}, 1),
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
}

// committed notes a commit of so many bound bytes. It never blocks. Pages are
// written whole and again for each index: the estimate doubles the bytes and
// adds a few pages per commit.
func (k *checkpointer) committed(bytes int) {
	if k.log.Add(int64(2*bytes)+16<<10) >= checkpointBytes {
		leave(k.large)
	}
	leave(k.dirty)
}

func leave(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

func (k *checkpointer) end() {
	close(k.stop)
	<-k.ended
}

func (k *checkpointer) run() {
	defer close(k.ended)
	for {
		select {
		case <-k.stop:
			return
		case <-k.dirty:
		}
		for done := false; !done; {
			if !k.pause() {
				return
			}
			done = k.round()
		}
	}
}

// pause waits for the next round; false says that the store closes.
func (k *checkpointer) pause() bool {
	t := time.NewTimer(k.after)
	defer t.Stop()
	select {
	case <-k.stop:
		return false
	case <-t.C:
	case <-k.large:
	}
	return true
}

// round reports whether the log has been moved completely, so that the next
// commit is what to wait for. A full disk or a reader in the way is tried
// again; an error of the disk fails the store.
func (k *checkpointer) round() bool {
	k.log.Store(0)
	done, err := k.conn.checkpoint("PASSIVE")
	k.hook("checkpoint")
	switch k.drv.classify(err) {
	case faultNone:
		return done
	case faultFull, faultBusy:
		return false
	case faultOther, faultIO, faultCorrupt, faultInterrupt, faultMemory, faultUnique:
	}
	k.fatal(err)
	return true
}
