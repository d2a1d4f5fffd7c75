package cli

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/config"
)

func (a *app) configCommand() *cobra.Command {
	return group("config", "Show and change the configuration, and show where things are", "wavehub config show",
		a.configShow(), a.configSet(), a.configPath())
}

func (a *app) configShow() *cobra.Command {
	var origin bool
	cmd := &cobra.Command{
		Use: "show", Short: "Show the effective configuration", Args: exactly(),
		Example: "wavehub config show --origin",
	}
	cmd.Flags().BoolVar(&origin, "origin", false, "show where each value comes from")
	cmd.RunE = func(*cobra.Command, []string) error {
		cfg, err := config.Load(nil)
		if err != nil {
			return err
		}
		values := cfg.Origins()
		doc := struct {
			Config []config.Origin `json:"config"`
		}{values}
		return a.emitValue(doc, func(p *printer) { printOrigins(p, values, origin) })
	}
	return cmd
}

func (a *app) configSet() *cobra.Command {
	return &cobra.Command{
		Use: "set KEY VALUE", Short: "Set one key of the user's configuration file",
		Long: "Changes one key of the file that config path config names and keeps the rest of it, comments\n" +
			"included. Lists are given with commas. A hub that runs reads it when it starts again.\n\n" +
			"The keys: " + strings.Join(config.Settable(), ", ") + ".",
		Example: "wavehub config set log_level debug\nwavehub config set advertise mac.example:7443",
		Args:    exactly("KEY", "VALUE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if os.Getenv(envDispatchFile) != "" {
				return client.Errorf(client.CodeOutOfScope, "a worker does not configure its hub")
			}
			path, err := config.Set(args[0], args[1])
			if e, ok := errors.AsType[*config.InvalidError](err); ok && e.Given {
				return misused(cmd, "%v", e)
			}
			if err != nil {
				return err
			}
			doc := struct {
				Key   string `json:"key"`
				Value string `json:"value"`
				Path  string `json:"path"`
			}{args[0], args[1], path}
			return a.emitValue(doc, func(p *printer) { p.line("%s = %s in %s", doc.Key, doc.Value, doc.Path) })
		},
	}
}

func printOrigins(p *printer, values []config.Origin, origin bool) {
	head, rows := []string{"KEY", "VALUE"}, make([][]string, len(values))
	for i, v := range values {
		rows[i] = []string{v.Key, v.Value}
		if origin {
			rows[i] = append(rows[i], v.Source)
		}
	}
	if origin {
		head = append(head, "ORIGIN")
	}
	p.table(head, rows)
}

func (a *app) configPath() *cobra.Command {
	return &cobra.Command{
		Use: "path ca|token|reader-token|config|data", Short: "Print one path: of the certificate, a token, the configuration file or the data directory",
		Example:   "wavehub config path ca",
		Args:      exactly("ca|token|reader-token|config|data"),
		ValidArgs: []string{"ca", "token", "reader-token", "config", "data"},
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := config.Load(nil)
			if err != nil {
				return err
			}
			path, ok := map[string]string{
				"ca": cfg.CertFile(), "token": cfg.TokenFile(), "reader-token": cfg.ReaderTokenFile(), "config": cfg.ConfigFile(), "data": cfg.DataDir,
			}[args[0]]
			if !ok {
				return misused(cmd, "knows no %q; it knows ca, token, reader-token, config and data", args[0])
			}
			doc := struct {
				Path string `json:"path"`
			}{path}
			return a.emitValue(doc, func(p *printer) { p.text(path) })
		},
	}
}
