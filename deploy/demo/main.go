// Command demo shows wavehub's main job on real input: two paired hubs, one
// Run, a wave of six dependent tasks of real work on this repository, a question,
// and a hub that is killed in the middle. It drives the wavehub program as a person
// would and proves the result with witness files outside the databases.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	bin := flag.String("bin", "bin/wavehub", "the wavehub program")
	repo := flag.String("repo", ".", "the repository to work on")
	keep := flag.Bool("keep", false, "keep the hubs' folders for a look")
	limit := flag.Duration("limit", 3*time.Minute, "give up after this long")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, *limit)
	err := run(ctx, *bin, *repo, *keep)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, bin, repo string, keep bool) (err error) {
	bin, err = filepath.Abs(bin)
	if err != nil {
		return err
	}
	if repo, err = filepath.Abs(repo); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "wavehub-demo-")
	if err != nil {
		return err
	}
	d := &demo{bin: bin, repo: repo, dir: dir, suffix: filepath.Base(dir)[len("wavehub-demo-"):]}
	defer func() { err = errors.Join(err, d.cleanUp(keep)) }()
	return d.play(ctx)
}

// demo is one performance. Its folder holds both hubs and the witness files.
type demo struct {
	bin, repo, dir string
	suffix         string // makes worktree names unique
	mac, windows   *hub
	run            string
	tasks          []*task
	delivered      []delivery
}

func (d *demo) play(ctx context.Context) error {
	began := time.Now()
	for _, step := range []struct {
		says string
		do   func(context.Context) error
	}{
		{"starting two hubs, mac and windows", d.startHubs},
		{"pairing them by a code", d.pair},
		{"adding this repository on both", d.addRepo},
		{"handing six dependent tasks to the mac hub, as a wave", d.createWave},
		{"watching it run on both hubs", d.coordinate},
	} {
		fmt.Println("•", step.says)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.says, err)
		}
	}
	return d.report(os.Stdout, time.Since(began))
}
