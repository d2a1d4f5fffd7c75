package proc

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// contextText is the opaque text of a terminal context: equal fields give
// equal text, and nothing else can be read from it.
func contextText(boot, device string, leader Identity) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%d", boot, device, leader.PID, leader.StartedAt))
	return "tty:" + hex.EncodeToString(sum[:16])
}
