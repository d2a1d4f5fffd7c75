package work

import (
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	// scopeTries is how often git is asked before nothing can be said.
	scopeTries = 3
	// maxBeside bounds the other workers of a worktree that are looked at.
	maxBeside = 1000
)

// takeBaseline records what the worktree is before the worker gets it. Every
// attempt at a Task in one folder is compared with the first one's. A worktree
// that cannot be looked at is no reason not to start: its changes are then
// unavailable.
func (s *Service) takeBaseline(ctx context.Context, a hub.Attachment) error {
	if len(a.Checks.WriteScope) == 0 {
		return nil
	}
	_, known, err := s.baseline(ctx, a)
	if err != nil || known {
		return err
	}
	base, err := s.Git.Snapshot(ctx, a.Dir)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		base.Reason, base.Dirty = clip(err.Error(), hub.MaxReasonBytes), nil
	}
	return s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		kept := base
		if _, known, err := tx.Baseline(a.Home, a.Task, a.Dir); err != nil || known {
			return err
		}
		if base.Root != "" {
			if kept.Beside, err = tx.OpenBeside(base.Root, maxBeside); err != nil {
				return err
			}
			kept.Beside = others(a, kept.Beside)
		}
		return tx.PutBaseline(a.Home, a.Task, a.Dir, kept)
	})
}

func (s *Service) baseline(ctx context.Context, a hub.Attachment) (b hub.Baseline, known bool, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) (err error) {
		b, known, err = rx.Baseline(a.Home, a.Task, a.Dir)
		return err
	})
	return b, known, err
}

// others leaves out the attempts at the Task itself.
func others(a hub.Attachment, all []hub.Beside) (rest []hub.Beside) {
	for _, b := range all {
		if b.Task != a.Task || b.Home != a.Home {
			rest = append(rest, b)
		}
	}
	return rest
}

// lookAtChanges commits what was changed outside of the scope. That comes before
// the verification, which may leave files of its own.
func (s *Service) lookAtChanges(ctx context.Context, a hub.Attachment, h hub.Hold) error {
	var found hub.Findings
	if len(a.Checks.WriteScope) > 0 {
		var err error
		if found, err = s.changes(ctx, a, h); err != nil {
			return err
		}
	}
	_, err := s.progress(ctx, h, func(_ hub.Micros, h *hub.Hold) { h.Scoped, h.Findings = true, found })
	return err
}

// changes compares the worktree with its baseline. An error is only that nothing
// could be read of the store, or that ctx ended.
func (s *Service) changes(ctx context.Context, a hub.Attachment, h hub.Hold) (hub.Findings, error) {
	base, known, err := s.baseline(ctx, a)
	if err != nil {
		return hub.Findings{}, err
	}
	switch {
	case !known:
		base.Reason = "nothing was recorded when the worker started"
	case base.Root == "" && base.Reason == "":
		base.Reason = "the worker's folder is in no git worktree"
	}
	if base.Reason != "" {
		return s.reported(ctx, a, h, base)
	}
	scope, shared, err := s.allowed(ctx, a, base)
	if err != nil {
		return hub.Findings{}, err
	}
	paths, why, err := s.changedPaths(ctx, a, base)
	if err != nil || why != "" {
		base.Reason = why
		found, rerr := s.reported(ctx, a, h, base)
		if err == nil {
			err = rerr
		}
		return found, err
	}
	found := hub.Findings{ScopeCheck: hub.ScopeClean, ScopeSource: hub.VerifiedByHub, ScopeShared: shared}
	if found.Outside(scope, paths); found.ViolationCount > 0 {
		found.ScopeCheck = hub.ScopeViolated
	}
	return found, nil
}

// changedPaths asks git what was changed; why says that it cannot be found out.
// Whoever took the repository away or put another in its place changed .git.
func (s *Service) changedPaths(ctx context.Context, a hub.Attachment, base hub.Baseline) (paths []string, why string, err error) {
	for range scopeTries {
		var replaced bool
		paths, replaced, err = s.Git.Changes(ctx, a.Dir, base)
		switch {
		case ctx.Err() != nil:
			return nil, "", ctx.Err()
		case err == nil && replaced:
			return []string{".git"}, "", nil
		case err == nil:
			return paths, "", nil
		}
		s.Log.Warn("looking at a worker's changes", "dispatch_id", a.Dispatch, "error", err)
	}
	return nil, clip(err.Error(), hub.MaxReasonBytes), nil
}

// allowed is what may be changed in the worktree: by the Task, and by the others
// that had a worker there since its first attempt began. One without a scope may
// change everything.
func (s *Service) allowed(ctx context.Context, a hub.Attachment, base hub.Baseline) (scope hub.Scope, shared bool, err error) {
	var later []hub.Beside
	err = s.Store.View(ctx, func(rx store.Rx) (err error) {
		later, err = rx.LaterBeside(a.Home, a.Task, a.Dir, base.Root, maxBeside)
		return err
	})
	scope = hub.NewScope(s.FoldCase, folderIn(base.Root, a.Dir), a.Checks.WriteScope)
	for _, b := range others(a, append(base.Beside[:len(base.Beside):len(base.Beside)], later...)) {
		shared = true
		if len(b.Scope) == 0 {
			scope = scope.With(".", []string{"."})
			continue
		}
		scope = scope.With(folderIn(base.Root, b.Dir), b.Scope)
	}
	return scope, shared, err
}

// folderIn is where dir lies in root, with slashes; "." for root itself, and for
// what is not in it.
func folderIn(root, dir string) string {
	rel, err := filepath.Rel(root, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return "."
	}
	return filepath.ToSlash(rel)
}

// reported compares what the worker says that it changed, for want of a worktree
// to look at. It is labelled as that, and is never a failure.
func (s *Service) reported(ctx context.Context, a hub.Attachment, h hub.Hold, base hub.Baseline) (hub.Findings, error) {
	found := hub.Findings{ScopeCheck: hub.ScopeUnavailable, ScopeReason: base.Reason}
	var r hub.Report
	err := s.Store.View(ctx, func(rx store.Rx) error {
		m, err := rx.Message(h.Reports[0])
		if err != nil {
			return err
		}
		return json.Unmarshal(m.Payload, &r)
	})
	if err != nil || len(r.Files) == 0 {
		return found, err
	}
	files := make([]string, len(r.Files))
	for i, name := range r.Files {
		files[i] = ownPath(a.Dir, name)
	}
	found.ScopeSource = hub.VerifiedByWorker
	found.Outside(hub.NewScope(s.FoldCase, ".", a.Checks.WriteScope), files)
	return found, nil
}

// ownPath is a path as a worker names it, relative to its folder; one that leads
// elsewhere stays as it was named.
func ownPath(dir, name string) string {
	if filepath.IsAbs(name) {
		if rel, err := filepath.Rel(dir, name); err == nil && filepath.IsLocal(rel) {
			name = rel
		}
	}
	if path, err := hub.CleanPath("files_modified", name); err == nil {
		return path
	}
	return name
}
