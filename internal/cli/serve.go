package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/internal/config"
	"github.com/wavehub/wavehub/internal/daemon"
	"github.com/wavehub/wavehub/internal/terminal"
)

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the hub in the foreground until it is interrupted", Args: exactly(),
		Long: "The first start creates identity, token and database. When the hub is ready, one line is\n" +
			"printed on stdout: wavehub ready URL HUB_ID. Workers outlive the hub and are found again.",
		Example: "wavehub serve\nwavehub serve --name mac --listen 127.0.0.1:0",
	}
	flags := cmd.Flags()
	flags.String("name", "", "how the hub calls itself to peers")
	flags.String("listen", "", "host:port (port 0: any free one, which is remembered)")
	flags.StringSlice("advertise", nil, "addresses (host:port) that peers are told to use, with commas")
	flags.Bool("api-remote", false, "serve the operator API to other hosts too")
	flags.String("log-level", "", "debug, info, warn or error")
	flags.Duration("wave-liveness", 0, "waves that do not say it end workers that are silent for longer (0: never; default 1m30s)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		given, err := serveFlags(cmd)
		if err != nil {
			return err
		}
		cfg, err := config.Load(given)
		if err != nil {
			return err
		}
		return a.serve(cmd.Context(), cfg)
	}
	return cmd
}

// serveFlags are the values of the flags that were given, by configuration key.
func serveFlags(cmd *cobra.Command) (map[string]any, error) {
	given := map[string]any{}
	flags := cmd.Flags()
	for name, key := range map[string]string{"name": config.KeyName, "listen": config.KeyListen, "log-level": config.KeyLogLevel} {
		value, err := flags.GetString(name)
		if err != nil {
			return nil, err
		}
		if flags.Changed(name) {
			given[key] = value
		}
	}
	advertise, err := flags.GetStringSlice("advertise")
	if err != nil {
		return nil, err
	}
	if flags.Changed("advertise") {
		given[config.KeyAdvertise] = advertise
	}
	remote, err := flags.GetBool("api-remote")
	if err != nil {
		return nil, err
	}
	if flags.Changed("api-remote") {
		given[config.KeyAPIRemote] = remote
	}
	return given, waveLiveness(cmd, given)
}

func waveLiveness(cmd *cobra.Command, given map[string]any) error {
	liveness, err := cmd.Flags().GetDuration("wave-liveness")
	if err != nil || !cmd.Flags().Changed("wave-liveness") {
		return err
	}
	if liveness < 0 || liveness%time.Second != 0 {
		return ofFlag(cmd, "wave-liveness", "--wave-liveness takes whole seconds, such as 90s, or 0")
	}
	given[config.KeyWaveLiveness] = int(liveness / time.Second)
	return nil
}

// serve runs the hub. A ready line that cannot be printed ends it: whoever
// waits for the line would wait for ever.
func (a *app) serve(ctx context.Context, cfg config.Config) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	err := daemon.Serve(ctx, cfg, daemon.Build{Version: a.build.Version}, func(url, hubID string) {
		if _, err := fmt.Fprintf(a.stdout, "wavehub ready %s %s\n", url, hubID); err != nil {
			stop(fmt.Errorf("printing the ready line: %w", err))
		}
	})
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return errors.Join(cause, err)
	}
	if errors.Is(err, context.Canceled) {
		return nil // a clean end: the hub was told to stop
	}
	return err
}

func (a *app) superviseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "supervise DIR", Short: "Supervise one terminal (started by the hub)", Hidden: true,
		Args: exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return terminal.Supervise(cmd.Context(), args[0])
		},
	}
}
