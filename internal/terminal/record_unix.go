//go:build unix

package terminal

import (
	"errors"
	"os"
)

func moveOver(from, to string) error { return os.Rename(from, to) }

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
