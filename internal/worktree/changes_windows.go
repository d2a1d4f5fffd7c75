package worktree

import "os"

const openFlags = os.O_RDONLY
