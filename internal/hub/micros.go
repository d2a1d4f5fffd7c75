package hub

import (
	"encoding/json"
	"fmt"
	"time"
)

// Micros is a point in time: microseconds since the Unix epoch, 0 for none.
// In JSON it is RFC 3339 in UTC with microseconds, or null for none. Times are
// for people; nothing is ordered by them.
type Micros int64

const microsLayout = "2006-01-02T15:04:05.000000Z"

// MicrosOf converts t.
func MicrosOf(t time.Time) Micros { return Micros(t.UnixMicro()) }

// Time converts m.
func (m Micros) Time() time.Time { return time.UnixMicro(int64(m)).UTC() }

// Add is the point in time d later.
func (m Micros) Add(d time.Duration) Micros { return m + Micros(d.Microseconds()) }

// Sub is how long after n m is.
func (m Micros) Sub(n Micros) time.Duration { return time.Duration(m-n) * time.Microsecond }

// MarshalJSON writes the text form, null for 0.
func (m Micros) MarshalJSON() ([]byte, error) {
	if m == 0 {
		return []byte("null"), nil
	}
	return []byte(`"` + m.Time().Format(microsLayout) + `"`), nil
}

// UnmarshalJSON reads any RFC 3339 time, or null.
func (m *Micros) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		*m = 0
		return nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return fmt.Errorf("time %q: %w", s, err)
	}
	*m = MicrosOf(t)
	return nil
}
