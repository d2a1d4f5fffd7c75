// Package worktree runs git, and nothing else in wavehub does: it inspects
// repositories, makes worktrees of them under a folder that the hub owns, and
// tells what was changed in one.
//
// A repository is foreign data. Nothing that it carries is executed: hooks,
// file system monitors, content filters, editors, pagers, remotes and lazy
// fetches are switched off for every call, and the user's and the machine's git
// configuration are not read. Content that a filter of the configuration would
// have produced (large-file pointers, decryption) is therefore checked out as
// it is stored. Text from users reaches git only after a narrow grammar has
// accepted it, as a full object id or behind --end-of-options.
//
// Needs git 2.33 or later. On a machine without git a folder outside of
// repositories can be inspected, and nothing else.
package worktree
