package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

const (
	hookTime = 3 * time.Second // an agent may wait for its hooks
	maxHook  = 1 << 20         // bytes of what a hook gets
)

// hookCommand is what launchers configure as the hooks of an agent's CLI. It
// never disturbs the agent: it prints nothing on standard output, its exit code
// is 0, and the hub's absence costs a word that the next hook says again.
func (a *app) hookCommand() *cobra.Command {
	return &cobra.Command{
		Use: "hook AGENT EVENT [DATA]", Short: "Tell the hub what a hook of an agent's CLI says (started by agents)", Hidden: true,
		Args: cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), hookTime)
			defer cancel()
			if err := a.hook(ctx, args); err != nil {
				_, _ = fmt.Fprintln(a.stderr, "wavehub hook:", err)
			}
			return nil
		},
	}
}

// hook passes one event on. Outside of a Dispatch, or before there is one, nobody
// asked for it.
func (a *app) hook(ctx context.Context, args []string) error {
	path, ok := os.LookupEnv(envDispatchFile)
	if !ok {
		return nil
	}
	s, err := a.connectDispatch(path, hookTime)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.Close()
	in := client.AgentEvent{Event: args[1]}
	if len(args) == 3 {
		in.Data = args[2]
	} else if in.Data, err = hookInput(a.stdin); err != nil {
		return err
	}
	_, err = s.AgentEvent(ctx, s.dispatch.DispatchID, in)
	return err
}

// hookInput is what the agent wrote to the hook; more than the hub takes is cut
// off by refusing it.
func hookInput(stdin io.Reader) (string, error) {
	raw, err := io.ReadAll(io.LimitReader(stdin, maxHook+1))
	if err == nil && len(raw) > maxHook {
		err = fmt.Errorf("the event has more than %d bytes", maxHook)
	}
	return string(raw), err
}
