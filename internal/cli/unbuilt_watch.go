package cli

import (
	"context"

	"github.com/spf13/cobra"
)

// waveWatch is built by the piece events.
func (a *app) waveWatch() *cobra.Command {
	return &cobra.Command{Use: "watch WAVE", Short: "Watch a wave until it has ended", Example: "wavehub wave watch w1", Args: exactly("WAVE"), RunE: needsVerb}
}

// followWave is built by the piece events.
func (a *app) followWave(context.Context, *session, string) error { return nil }
