package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/wavehub/wavehub/internal/config"
	"github.com/wavehub/wavehub/internal/group"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/metrics"
	"github.com/wavehub/wavehub/internal/signal"
	"github.com/wavehub/wavehub/internal/sqlite"
	"github.com/wavehub/wavehub/internal/store"
)

// Build is what is known of the program at build time.
type Build struct{ Version string }

// freeSpaceMin is kept free for reports, acks and stops: new work is refused
// below it.
const freeSpaceMin = 64 << 20

// stopTime is how long the background work may take to end.
const stopTime = 5 * time.Second

// Serve runs the hub of cfg's data directory until ctx ends or its store fails.
// ready is called once, when it listens. Workers outlive it. Errors of the
// configuration, the directory and the address carry a code and the fix.
func Serve(ctx context.Context, cfg config.Config, b Build, ready func(url, hubID string)) error {
	log := newLog(cfg)
	h, err := prepare(cfg)
	if err != nil {
		return err
	}
	defer paceGC()()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	bus := &signal.Bus{}
	meter := metrics.New()
	st, err := openStore(ctx, h, bus, meter, cancel, log)
	if err != nil {
		return err
	}
	if h.first {
		log.Info("first start: this hub's key, token and database have been made",
			"data_dir", h.dir, "database", h.database(), "token", cfg.TokenFile(), "certificate", cfg.CertFile(), "configuration", cfg.ConfigFile())
	}
	err = serveStore(ctx, parts{cfg: cfg, build: b, home: h, store: st, bus: bus, meter: meter, log: log}, ready)
	return errors.Join(err, fatal(ctx), st.Close())
}

// fatal is why the hub stopped by itself, nil if it was told to.
func fatal(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

func newLog(cfg config.Config) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		level = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

// openStore opens the database; one that fails stops the hub, so that the next
// start reads what the disk really holds.
func openStore(ctx context.Context, h home, bus *signal.Bus, meter *metrics.Metrics, stop context.CancelCauseFunc, log *slog.Logger) (*sqlite.Store, error) {
	st, err := sqlite.Open(ctx, sqlite.Config{
		Path: h.database(), FreeSpaceMin: freeSpaceMin, Log: log, Committed: meter.WriterGroup,
		Publish: func(signals []hub.Signal) {
			for _, s := range signals {
				bus.Publish(string(s.Topic), s.Key)
			}
		},
		OnFatal: func(err error) {
			log.Error("the store has failed; stopping", "error", err)
			stop(&hub.Error{Code: hub.CodeInternal, Message: "the store has failed", Err: err})
		},
	})
	return st, withFix(err)
}

// withFix adds what to do about a data directory that cannot be used.
func withFix(err error) error {
	e, ok := errors.AsType[*hub.Error](err)
	if !ok || e.Hint != "" {
		return err
	}
	switch e.Code {
	case hub.CodeDataDirLocked:
		e.Hint = "a hub runs there already: stop it, or set WAVEHUB_HOME to another folder"
	case hub.CodeDataDirInvalid:
		e.Hint = "set WAVEHUB_DATA_DIR to another folder, or put a backup in place"
	}
	return err
}

func serveStore(ctx context.Context, p parts, ready func(url, hubID string)) error {
	ln, err := listen(p.cfg)
	if err != nil {
		return err
	}
	defer ln.Close()
	loops, jobs := group.New(context.WithoutCancel(ctx)), group.New(context.WithoutCancel(ctx))
	p.ln, p.jobs = ln, jobs
	x, err := assemble(ctx, p)
	if err == nil {
		defer x.fed.links.Close()
		err = x.run(ctx, loops, ready)
	}
	return errors.Join(err, stopGroup(jobs), stopGroup(loops))
}

// run recovers, starts the loops and serves until ctx ends.
func (x *hubParts) run(ctx context.Context, loops *group.Group, ready func(url, hubID string)) error {
	if err := x.recover(ctx); err != nil {
		return err
	}
	x.start(loops)
	return x.serve(ctx, x.ln, func() { ready(x.url, x.home.ring.Now().HubID) })
}

func stopGroup(g *group.Group) error {
	if g.Stop(stopTime) {
		return nil
	}
	return errors.New("the hub stopped while something of it was still at work")
}

// recover brings the store and the world together before anything is served.
func (x *hubParts) recover(ctx context.Context) error {
	err := x.store.Update(ctx, store.Settle, func(tx store.Tx) error {
		return errors.Join(
			tx.PutCredential(store.Credential{Sum: keystore.TokenSum(x.home.operatorToken()), Kind: store.CredOperator}),
			tx.PutCredential(store.Credential{Sum: keystore.TokenSum(x.home.readerToken()), Kind: store.CredReader}))
	})
	if err != nil {
		return err
	}
	if err := x.waves.Recover(ctx); err != nil {
		return err
	}
	x.spools.sweep(ctx) // before an exit is published
	return x.work.Recover(ctx)
}

// start runs the loops: peers to pull from, relays, fences to carry out, held
// reports to look into, spools to drain.
func (x *hubParts) start(loops *group.Group) {
	for name, loop := range map[string]func(context.Context) error{
		"peers":  func(ctx context.Context) error { return x.fed.follow(ctx, x.bus) },
		"relays": x.fed.home.Run, "parked streams": x.fed.parker.Run, "wake-ups": x.fed.watch,
		"fences": x.work.Fences, "verifications": x.work.Verifications, "presences": x.work.Presences,
		"waves": x.waves.Run,
		"sweep": x.sweep, "spools": x.spools.run, "rotations": x.rotations,
	} {
		loops.Go(func(ctx context.Context) {
			if err := loop(ctx); err != nil && ctx.Err() == nil {
				x.log.Error("a loop of the hub ended", "loop", name, "error", err)
			}
		})
	}
}
