package cli

import (
	"context"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/safefile"
)

func (a *app) workerIdentityCommand() *cobra.Command {
	return group("worker-identity", "Register attached workers: programs that take Dispatches and that no hub starts",
		"wavehub worker-identity register w-1\nwavehub worker-identity list",
		a.identityRegister(), a.identityList(), a.identityChange("drain", "Refuse later Dispatches to the worker; what it has goes on", (*client.Client).DrainWorker),
		a.identityChange("revoke", "Fence the identity at once: its waits end and its token is not known any more", (*client.Client).RevokeWorker))
}

func (a *app) identityRegister() *cobra.Command {
	var file string
	cmd := mark(&cobra.Command{
		Use: "register NAME", Short: "Mint an identity with its token", Args: exactly("NAME"),
		Long:    "Prints the token, which is a secret, or writes it to a new file that only you can read.",
		Example: "wavehub worker-identity register w-1 --token-file w-1.token\nwavehub worker-identity register w-1",
	}, isMutation)
	cmd.Flags().StringVar(&file, "token-file", "", "write the token to this new file, readable by you only, and not to the terminal (--json shows it all the same)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := writable(file); err != nil {
			return usage("token-file", "--token-file: %v", err)
		}
		return verb[client.WorkerRegistered]{
			call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.WorkerRegistered, error) {
				return s.RegisterWorker(ctx, args[0], opts...)
			},
			human: func(p *printer, out *client.WorkerRegistered) { printRegistered(p, out, file) },
			exit: func(out *client.WorkerRegistered) error {
				if file == "" || out.Worker.Token == nil {
					return nil
				}
				return keepToken(file, *out.Worker.Token, out.Mutation.RequestId)
			},
		}.runE(a)(cmd, args)
	}
	return cmd
}

// writable refuses a token file that cannot be made, before there is a token.
func writable(path string) error {
	if path == "" {
		return nil
	}
	if err := safefile.CreateExclusive(path, nil, 0o600); err != nil {
		return err
	}
	return os.Remove(path)
}

// keepToken writes a token to a new file. The identity exists already: its request
// id gives the token again.
func keepToken(path, token, requestID string) error {
	if err := safefile.CreateExclusive(path, []byte(token+"\n"), 0o600); err != nil {
		e := client.Errorf(client.CodeInternal, "the identity is registered, but its token could not be written: %v", err)
		e.RequestID, e.Err = requestID, err
		return e
	}
	return nil
}

func printRegistered(p *printer, out *client.WorkerRegistered, file string) {
	w := out.Worker
	p.line("%s  %s  %s", w.WorkerId, w.Name, string(w.State))
	switch {
	case w.Token == nil:
		p.line("  its token is revoked")
	case file != "":
		p.line("  its token goes to %s", file)
	default:
		p.line("  token: %s", *w.Token)
	}
}

func (a *app) identityList() *cobra.Command {
	var page client.Page
	cmd := mark(&cobra.Command{
		Use: "list", Short: "List identities with their presence and what they have", Args: exactly(),
		Long:    "A worker is online while it waits on its mailbox, deaf when it says that it lives and does\nnot wait, else offline.",
		Example: "wavehub worker-identity list",
	}, isProxied)
	pageFlags(cmd, &page)
	cmd.RunE = verb[client.WorkerPage]{
		call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.WorkerPage, error) {
			return s.Workers(ctx, page, opts...)
		},
		human: func(p *printer, out *client.WorkerPage) {
			list(p, []string{"WORKER", "NAME", "STATE", "PRESENCE", "HEARD", "DISPATCHES"}, out.Workers, out.NextCursor, identityRow)
		},
	}.runE(a)
	return cmd
}

func identityRow(w client.WorkerShown) []string {
	heard, count := "never", strconv.Itoa(len(w.Dispatches))
	if ms := w.Presence.AgeMs; ms != nil {
		heard = (time.Duration(*ms) * time.Millisecond).Round(time.Second).String() + " ago"
	}
	if w.MoreDispatches {
		count += "+"
	}
	return []string{w.WorkerId, w.Name, string(w.State), string(w.Presence.State), heard, count}
}

func (a *app) identityChange(name, short string, call func(*client.Client, context.Context, string, ...client.Option) (*client.WorkerResult, error)) *cobra.Command {
	cmd := mark(&cobra.Command{
		Use: name + " NAME", Short: short, Args: exactly("NAME"),
		Example: "wavehub worker-identity " + name + " w-1",
	}, isMutation)
	cmd.RunE = verb[client.WorkerResult]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.WorkerResult, error) {
			return call(s.Client, ctx, args[0], opts...)
		},
		human: func(p *printer, out *client.WorkerResult) {
			p.line("%s  %s  %s", out.Worker.WorkerId, out.Worker.Name, string(out.Worker.State))
		},
	}.runE(a)
	return cmd
}
