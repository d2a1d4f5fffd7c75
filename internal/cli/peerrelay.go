package cli

import (
	"fmt"

	"github.com/wavehub/wavehub/client"
)

// printRelay shows what waits for a peer and what does not flow.
func printRelay(p *printer, r client.PeerRelay) {
	p.line("  relay: %d items (%d bytes) on their way", r.QueuedItems, r.QueuedBytes)
	for _, q := range r.Parked {
		where := "there"
		if q.Sending {
			where = fmt.Sprintf("here, with %d items", q.Waiting)
		}
		p.line("  parked %s: %s: %s", where, q.DispatchId, q.Reason)
	}
	if more := r.ParkedCount - len(r.Parked); more > 0 {
		p.line("  parked: %d more", more)
	}
}
