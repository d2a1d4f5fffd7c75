package dispatch

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// What may wait for a peer whose link is up, in all of its queues that are not
// parked: some batches more than a session has in flight. A sender that is over
// it comes back after paceMS.
const (
	backlogItems = 4096
	backlogBytes = 8 << 20
	paceMS       = 250
)

// pace refuses what was just queued while more waits for its peer than the link
// carries away: accepting slows down before delivery does. A peer that is away
// fills the quotas of its queues instead. Reports, answers and ends are never
// slowed.
func (s *Service) pace(tx store.RelayReader, out Sent) error {
	if out.via.Peer == "" || s.LinkUp == nil || !s.LinkUp(out.via.Peer, out.via.Direction) {
		return nil
	}
	items, bytes, err := tx.Backlog(out.via.Peer, out.via.Direction)
	if err != nil || items <= backlogItems && bytes <= backlogBytes {
		return err
	}
	e := hub.Errorf(hub.CodeRateLimited, "%d messages (%d bytes) are on their way to the other hub", items-1, bytes)
	e.Hint = "send again after the time given; a final report is always accepted"
	e.AfterMS = paceMS
	return e
}
