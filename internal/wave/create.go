package wave

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

const maxOwnerBytes = 256

// Create judges the tasks and stores everything or nothing: a small wave in one
// transaction, a large one in parts that nobody sees before the last one. Beside
// the plan it may refuse run_not_found, wave_exists and, of one to replace,
// wave_running and wave_final.
func (s *Service) Create(ctx context.Context, r receipt.Request, in CreateInput) (Created, error) {
	if err := in.check(); err != nil {
		return Created{}, err
	}
	known, err := s.creatable(ctx, r, in)
	if err != nil {
		return Created{}, err
	}
	var d draft
	if !known {
		if d, err = s.draft(ctx, r.Principal, in); err != nil {
			return Created{}, err
		}
	}
	out, err := s.store(ctx, r, in, d)
	if err != nil {
		return out, err
	}
	return s.recalled(ctx, out)
}

func (in CreateInput) check() error {
	if in.ID != "" && !hub.ValidToken(string(in.ID)) {
		return hub.Invalid("wave_id", "must be 1 to %d printable characters without space, . * > / and --, and no - at either end", hub.MaxWaveToken)
	}
	if err := hub.CheckText("goal", in.Goal, hub.MaxWaveGoalBytes); err != nil {
		return err
	}
	if err := hub.CheckText("owner", in.Owner, maxOwnerBytes); err != nil {
		return err
	}
	if err := hub.CheckText("metadata", string(in.Metadata), hub.MaxWaveMetadata); err != nil {
		return err
	}
	switch {
	case in.Metadata != nil && !isObject(in.Metadata):
		return hub.Invalid("metadata", "must be a JSON object")
	case in.CheckpointDir != "" && !filepath.IsAbs(in.CheckpointDir):
		return hub.Invalid("checkpoint_dir", "must be an absolute path on the hub's host")
	}
	return nil
}

func isObject(raw json.RawMessage) bool {
	return json.Valid(raw) && bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{"))
}

// creatable reports whether r is on record, and refuses early what would be refused
// in the end. It is one look: a wave that r itself has made is on record with it.
func (s *Service) creatable(ctx context.Context, r receipt.Request, in CreateInput) (known bool, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		if _, known, err = receipt.Find(rx, r); err != nil || known {
			return err
		}
		_, _, err = inPlaceOf(rx, r.Principal, in)
		return err
	})
	return known, err
}

// createRx is what a new wave is judged by.
type createRx interface {
	run.CallerTx
	Run(hub.RunID) (hub.Run, error)
	Wave(hub.WaveID) (hub.Wave, error)
}

// inPlaceOf is the pending wave that the new one replaces, if there is one.
func inPlaceOf(rx createRx, p hub.Principal, in CreateInput) (old hub.Wave, there bool, err error) {
	if _, err := rx.Run(in.Run); err != nil {
		return old, false, err
	}
	if err := run.Operates(rx, p, in.Run); err != nil || in.ID == "" {
		return old, false, err
	}
	old, err = rx.Wave(in.ID)
	switch {
	case hub.IsCode(err, hub.CodeWaveNotFound):
		return old, false, nil
	case err != nil:
		return old, false, err
	case !in.Replace || old.Run != in.Run:
		return old, true, exists(old, in)
	}
	return old, true, pendingOnly(old)
}

func exists(old hub.Wave, in CreateInput) error {
	e := hub.Errorf(hub.CodeWaveExists, "there is a wave %s (%s)", old.ID, old.Status)
	switch {
	case old.Run != in.Run:
		e.Message = "there is a wave " + string(old.ID) + " of " + string(old.Run)
	case old.Status == hub.WavePending:
		e.Hint = "replace it with --replace, or use another id"
	}
	return e.WithNext("wavehub", "wave", "status", string(old.ID))
}

// pendingOnly refuses what may be done before a wave is spawned only.
func pendingOnly(w hub.Wave) error {
	switch {
	case w.Status == hub.WavePending:
		return nil
	case w.Status.Final():
		return waveFinal(w)
	}
	e := hub.Errorf(hub.CodeWaveRunning, "the wave %s is running; its tasks, their order and their places stay as they are", w.ID)
	return e.WithNext("wavehub", "wave", "status", string(w.ID))
}

// store stages all parts but the last, and commits that one with the wave and the
// receipt. It stages nothing for what is on record.
func (s *Service) store(ctx context.Context, r receipt.Request, in CreateInput, d draft) (Created, error) {
	ps, err := parts(d.tasks, d.work, d.orders)
	if err != nil {
		return Created{}, err
	}
	last := len(ps) - 1
	if err := s.stageAll(ctx, d.wave.UID, ps[:last]); err != nil {
		return Created{}, err
	}
	out, err := receipt.Do(ctx, s.Store, store.New, r, func(tx store.Tx) (Created, error) {
		return s.enter(tx, r.Principal, in, d, ps[last])
	})
	if err != nil || out.Mutation.Replayed {
		s.drop(ctx, d.wave.UID, last > 0, err)
	}
	return out, err
}

// enter makes the wave there with all of its parts, and running if that is asked
// for.
func (s *Service) enter(tx store.Tx, p hub.Principal, in CreateInput, d draft, last part) (Created, error) {
	if d.wave.ID == "" {
		return Created{}, hub.Errorf(hub.CodeInternal, "the record of a wave that was created is gone")
	}
	old, there, err := inPlaceOf(tx, p, in)
	if err != nil {
		return Created{}, err
	}
	if err := last.stage(tx, d.wave.UID); err != nil {
		return Created{}, err
	}
	w := d.wave
	w.CreatedAt = tx.Now()
	if there {
		err = tx.ReplaceWave(old.UID, w)
	} else {
		err = tx.PutWave(w)
	}
	if err == nil && in.Spawn {
		err = s.spawnStored(tx, w.ID)
	}
	return Created{Wave: w.ID, Run: w.Run}, err
}

func (s *Service) spawnStored(tx store.Tx, id hub.WaveID) error {
	w, err := tx.Wave(id)
	if err != nil {
		return err
	}
	if w, err = s.spawn(tx, w, nil); err != nil {
		return err
	}
	return tx.SaveWave(w)
}
