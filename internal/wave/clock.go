package wave

import (
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// Instant is one look at the host's clocks.
type Instant struct {
	Mono time.Duration // awake time of this process
	Wall hub.Micros
	Boot string // identity of the boot, "" unknown
	// SinceBoot includes sleep.
	SinceBoot time.Duration
}
