//go:build unix

// Command soak lives with one hub for a while as its agents do: coordinators
// and a crowd of real workers talk through it, end in every way there is, and
// crash, while the hub is killed at random. What happened is noted outside the
// hub, in this program's memory and in a file that the workers' shells write;
// at the end it is compared with what came and with what the hub says. Nothing
// may be lost, doubled, reordered or left open.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// size is how large a soak is.
type size struct {
	bin                   string
	duration              time.Duration
	coordinators, workers int
	seed                  uint64
	kills                 time.Duration // mean time between two; 0: none
	keep                  bool
}

func main() {
	var cfg size
	flag.StringVar(&cfg.bin, "bin", "bin/wavehub", "the wavehub program")
	flag.DurationVar(&cfg.duration, "duration", 10*time.Minute, "how long new workers are started")
	flag.IntVar(&cfg.coordinators, "coordinators", 8, "coordinators, each with a Run of its own")
	flag.IntVar(&cfg.workers, "workers", 200, "workers that live at once, of all coordinators")
	flag.Uint64Var(&cfg.seed, "seed", rand.Uint64(), "seed of what is drawn; default: a random one")
	flag.DurationVar(&cfg.kills, "kills", 8*time.Second, "mean time between two SIGKILLs of the hub; 0: none")
	flag.BoolVar(&cfg.keep, "keep", false, "keep the hub's folder; it is kept anyway if something is wrong")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	_, err := run(ctx, cfg, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// allowance is how long the beginning and the drain may take beyond the soak.
const allowance = 5 * time.Minute

// run soaks and returns what it saw.
func run(ctx context.Context, cfg size, out io.Writer) (b *book, err error) {
	if cfg.coordinators < 1 || cfg.workers < cfg.coordinators || cfg.duration <= 0 || cfg.kills < 0 {
		return nil, errors.New("a soak needs a duration, a coordinator, and a worker for each coordinator")
	}
	if cfg.bin, err = filepath.Abs(cfg.bin); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "wavehub-soak-")
	if err != nil {
		return nil, err
	}
	s := newSoak(cfg, dir, out)
	defer func() { err = errors.Join(err, s.cleanUp(cfg.keep || err != nil)) }()
	ctx, cancel := context.WithTimeout(ctx, cfg.duration+allowance)
	defer cancel()
	return s.book, s.play(ctx)
}
