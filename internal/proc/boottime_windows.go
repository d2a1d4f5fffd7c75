package proc

import (
	"time"

	"golang.org/x/sys/windows"
)

// SinceBoot is how long ago the machine was booted, its sleep included.
func SinceBoot() (time.Duration, error) { return windows.DurationSinceBoot(), nil }
