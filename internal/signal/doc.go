// Package signal fans hints out inside one process: something about a subject
// may have changed, read the store. A hint carries no data, may be coalesced
// with others and is never waited for, so publishing cannot block a commit.
package signal
