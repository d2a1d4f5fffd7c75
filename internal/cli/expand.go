package cli

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/hub"
)

// Flags whose values are ids, alone or separated by commas; ids behind a kind and
// a colon, in one of several forms; and ids behind "id:", beside names.
var (
	idFlags    = []string{"run", "task", "deps", "retry-of", "id", "ack", "resume", "thread-id", "task-id", "dispatch-id", "terminal"}
	boxFlags   = []string{"to", "mailbox"}
	placeFlags = []string{"worktree", "parent"}
)

// tokenFlags are those of idFlags that in verbs of waves take what callers chose.
var tokenFlags = []string{"id", "deps"}

func ofWave(cmd *cobra.Command) bool {
	for ; cmd != nil; cmd = cmd.Parent() {
		if cmd.Name() == "wave" {
			return true
		}
	}
	return false
}

// expand replaces abbreviated ids in flags and arguments by the ids they stand
// for. Caller-chosen tokens are never touched. A Dispatch knows its ids in full.
func (a *app) expand(ctx context.Context, s *session, cmd *cobra.Command, args []string) ([]string, error) {
	if err := plainText(cmd, args); err != nil {
		return nil, err
	}
	if s.dispatch != nil {
		return args, nil
	}
	if err := expandFlags(ctx, s, cmd); err != nil {
		return nil, err
	}
	if !takesID(cmd) {
		return args, nil
	}
	out := make([]string, len(args))
	for i, arg := range args {
		full, err := s.fullID(ctx, arg)
		if err != nil {
			return nil, err
		}
		out[i] = full
	}
	return out, nil
}

func expandFlags(ctx context.Context, s *session, cmd *cobra.Command) error {
	for _, kind := range []struct {
		names  []string
		expand func(context.Context, *session, *pflag.Flag) error
	}{{idFlags, expandFlag}, {boxFlags, expandBox}, {placeFlags, expandPlace}} {
		for _, name := range kind.names {
			f := cmd.Flags().Lookup(name)
			if f == nil || !f.Changed || ofWave(cmd) && slices.Contains(tokenFlags, name) {
				continue
			}
			expand := kind.expand
			if name == "parent" && cmd.Parent().Name() == "run" {
				expand = expandFlag // of a Run it is a Run
			}
			if err := expand(ctx, s, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// plainText refuses flags and arguments that are not UTF-8: they would not be
// stored as they were given.
func plainText(cmd *cobra.Command, args []string) (err error) {
	for _, arg := range args {
		if !utf8.ValidString(arg) {
			return misused(cmd, "takes UTF-8 only; give other bytes by a file")
		}
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !utf8.ValidString(f.Value.String()) {
			err = misused(cmd, "--%s takes UTF-8 only", f.Name)
		}
	})
	return err
}

// expandMail is expand for messages: inside a Dispatch their only Run is its own.
func (a *app) expandMail(ctx context.Context, s *session, cmd *cobra.Command, args []string) error {
	if _, err := a.expand(ctx, s, cmd, args); err != nil || s.dispatch == nil {
		return err
	}
	if f := cmd.Flags().Lookup("run"); f != nil && f.Changed {
		return misused(cmd, "takes no --run inside a Dispatch: it has one Run, its own")
	}
	return nil
}

// takesID reports whether a command's arguments are ids and not names or texts.
func takesID(cmd *cobra.Command) bool {
	_, args, _ := strings.Cut(cmd.Use, " ")
	first, _, _ := strings.Cut(strings.TrimPrefix(args, "("), " ")
	return slices.Contains([]string{"RUN", "TASK", "DISPATCH", "MESSAGE", "REQUEST", "TERM"}, strings.TrimSuffix(first, "..."))
}

func expandFlag(ctx context.Context, s *session, f *pflag.Flag) error {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		ids := list.GetSlice()
		for i := range ids {
			full, err := s.fullID(ctx, ids[i])
			if err != nil {
				return err
			}
			ids[i] = full
		}
		return list.Replace(ids)
	}
	full, err := s.fullID(ctx, f.Value.String())
	if err != nil {
		return err
	}
	return f.Value.Set(full)
}

// expandBox expands the id in a mailbox, run:… or dispatch:….
func expandBox(ctx context.Context, s *session, f *pflag.Flag) error {
	kind, text, ok := strings.Cut(f.Value.String(), ":")
	if !ok || kind == "worker" && !strings.HasPrefix(text, hub.PrefixWorker) {
		return nil // a worker has a name
	}
	full, err := s.fullID(ctx, text)
	if err != nil {
		return err
	}
	return f.Value.Set(kind + ":" + full)
}

// expandPlace expands an id:…; other values are names and paths.
func expandPlace(ctx context.Context, s *session, f *pflag.Flag) error {
	if !strings.HasPrefix(f.Value.String(), "id:") {
		return nil
	}
	return expandBox(ctx, s, f)
}

// fullID is the one id that text abbreviates; what is no abbreviation, or one of
// nothing, stays as it is for the hub to judge.
func (s *session) fullID(ctx context.Context, text string) (string, error) {
	if _, ok := hub.Abbreviation(text); !ok {
		return text, nil
	}
	if err := s.wholeID(text); err != nil {
		return "", err
	}
	ids, err := s.ExpandID(ctx, text)
	switch {
	case err != nil:
		return "", err
	case len(ids) == 0:
		return text, nil
	case len(ids) > 1:
		e := client.Errorf(client.CodeInvalidArgument, "%q stands for several ids, %s and %s among them", text, ids[0], ids[1])
		e.Hint = "give more of it"
		return "", e
	}
	return ids[0], nil
}
