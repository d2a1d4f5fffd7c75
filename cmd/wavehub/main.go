// Command wavehub is the hub and its command line.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/wavehub/wavehub/internal/cli"
)

// version is set at release: -ldflags "-X main.version=1.2.3".
var version = "dev"

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return cli.Main(ctx, build(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// build adds to the version what the toolchain recorded of the sources.
func build() cli.BuildInfo {
	b := cli.BuildInfo{Version: version, Commit: "unknown", Date: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		}
	}
	return b
}
