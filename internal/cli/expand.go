package cli

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/hub"
)

// idFlags are the flags whose values are ids, alone or separated by commas.
var idFlags = []string{"run", "task", "deps", "retry-of", "id", "ack", "resume", "parent", "task-id", "dispatch-id"}

// expand replaces abbreviated ids in flags and arguments by the ids they stand
// for. Caller-chosen tokens are never touched. A Dispatch knows its ids in full.
func (a *app) expand(ctx context.Context, s *session, cmd *cobra.Command, args []string) ([]string, error) {
	if err := plainText(cmd, args); err != nil {
		return nil, err
	}
	if s.dispatch != nil {
		return args, nil
	}
	for _, name := range idFlags {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			if err := expandFlag(ctx, s, f); err != nil {
				return nil, err
			}
		}
	}
	if to := cmd.Flags().Lookup("to"); to != nil && to.Changed {
		if err := expandBox(ctx, s, to); err != nil {
			return nil, err
		}
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
	first, _, _ := strings.Cut(args, " ")
	return first == "RUN" || first == "TASK" || first == "DISPATCH"
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
	if !ok {
		return nil
	}
	full, err := s.fullID(ctx, text)
	if err != nil {
		return err
	}
	return f.Value.Set(kind + ":" + full)
}

// fullID is the one id that text abbreviates; what is no abbreviation, or one of
// nothing, stays as it is for the hub to judge.
func (s *session) fullID(ctx context.Context, text string) (string, error) {
	if _, ok := hub.Abbreviation(text); !ok {
		return text, nil
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
