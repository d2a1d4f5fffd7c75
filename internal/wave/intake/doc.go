// Package intake reads files of tasks: wavehub's own, and those of tools that plan
// work. It does no I/O.
//
// A file that cannot be read as a whole has a finding file_invalid and no tasks;
// all else that is wrong is found in one pass, each thing with its line. Of another
// tool's file everything that has no place in a wave is a warning not_imported with
// its line: nothing is dropped without a word. A finding of a task names it by its
// token, or by its number such as #3 where the token cannot be read; a task without
// a readable token is not among the tasks.
//
// What is wrong within readable values (tokens, scopes, unknown dependencies,
// placements) is the planner's to find.
//
// The text is not copied: tasks share its memory. The names in the lists of a file,
// the dependencies that follow from its order, its findings and its warnings are
// bounded, so that reading needs a small multiple of the text, whatever it holds.
package intake
