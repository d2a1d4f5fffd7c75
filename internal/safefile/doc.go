// Package safefile writes files that survive a crash whole, and opens private
// files and folders only when nobody else can have put something there.
//
// All functions are safe for concurrent use; none takes a lock. A file written
// by WriteAtomic holds, after a crash at any instant, either its former or its
// new content. Privacy means: regular file or real folder (no link), owned by
// the user who runs the process, and not open to other users (mode bits on
// Unix, the access list on Windows).
package safefile
