package terminal

import (
	"errors"
	"time"

	"golang.org/x/sys/windows"
)

// moveTries bounds the retries while a virus scanner or a reader has the file.
const moveTries = 20

func moveOver(from, to string) error {
	src, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return err
	}
	dst, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		err = windows.MoveFileEx(src, dst, windows.MOVEFILE_REPLACE_EXISTING|windows.MOVEFILE_WRITE_THROUGH)
		busy := errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
		if !busy || try == moveTries {
			return err
		}
		time.Sleep(time.Duration(try) * 5 * time.Millisecond)
	}
}

// syncDir does nothing: the write-through move made the name durable.
func syncDir(string) error { return nil }
