package sqlite

// On macOS fsync leaves data in the drive's cache; F_FULLFSYNC does not.
var platformPragmas = []string{"PRAGMA fullfsync = 1", "PRAGMA checkpoint_fullfsync = 1"}
