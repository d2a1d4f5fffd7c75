package daemon

import "os"

// openRegular opens a file for reading; the caller looks at what it is.
func openRegular(path string) (*os.File, error) { return os.Open(path) }
