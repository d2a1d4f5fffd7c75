package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/config"
	"github.com/wavehub/wavehub/internal/daemon"
)

func (a *app) restoreCommand() *cobra.Command {
	var adopt bool
	cmd := &cobra.Command{
		Use: "restore --adopt", Short: "Take up a data directory that was put back from a copy", Args: exactly(),
		Long: "Run it once, while the hub is stopped, after the files of its data directory were put back by\n" +
			"hand. It raises the store's epoch: what was not acknowledged by other hubs is sent again, and\n" +
			"they are told what they know and this store has lost. Until then, they take nothing more of\n" +
			"the Dispatches concerned.",
		Example: "wavehub restore --adopt",
	}
	cmd.Flags().BoolVar(&adopt, "adopt", false, "raise the epoch of the store that is in place")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case os.Getenv(envDispatchFile) != "":
			return client.Errorf(client.CodeOutOfScope, "a worker does not restore its hub")
		case !adopt:
			return misused(cmd, "needs --adopt")
		}
		cfg, err := config.Load(nil)
		if err != nil {
			return err
		}
		out, err := daemon.Adopt(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		return a.emitValue(out, func(p *printer) {
			p.line("%s is in epoch %d; %d items are sent again", out.StoreID, out.Epoch, out.Items)
			p.line("  next: wavehub serve")
		})
	}
	return cmd
}
