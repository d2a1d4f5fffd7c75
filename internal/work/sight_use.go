package work

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// plausible refuses, before anything is looked at, places that a peer cannot
// mean: the folder that it calls from is on another hub.
func (s Sight) plausible(currentDir string, selectors ...string) error {
	if !s.bounded() {
		return nil
	}
	for _, sel := range selectors {
		if sel == hub.WorktreeCurrent {
			return hub.Invalid("worktree", "current means the caller's folder, which is on another hub")
		}
		if path, ok := strings.CutPrefix(sel, "path:"); ok && !s.sees(path) {
			return errNotGranted
		}
	}
	if currentDir != "" {
		return hub.Invalid("current_dir", "the caller's folder is on another hub; name a worktree, a repository or a folder there")
	}
	return nil
}

// admits refuses a place out of the principal's sight.
func admits(rx sightTx, who hub.Principal, p place) error {
	sight, err := SightOf(rx, who)
	if err != nil {
		return err
	}
	path := p.dir
	if p.repo.ID != "" {
		path = p.repo.Path
	}
	if !sight.sees(path) {
		return errNotGranted
	}
	return nil
}

// seatFor is seat within the principal's sight.
func (s *Service) seatFor(ctx context.Context, who hub.Principal, in TerminalCreate) (place, error) {
	dir := ""
	if in.Dir != "" {
		dir = "path:" + in.Dir
	}
	err := s.Store.View(ctx, func(rx store.Rx) error {
		sight, err := SightOf(rx, who)
		if err != nil {
			return err
		}
		return sight.plausible(in.CurrentDir, in.Worktree, dir)
	})
	if err != nil {
		return place{}, err
	}
	p, err := s.seat(ctx, in)
	if err != nil {
		return p, err
	}
	return p, s.Store.View(ctx, func(rx store.Rx) error { return admits(rx, who, p) })
}

// siteFor resolves a new worktree within the principal's sight. The repository is
// judged before git looks into it.
func (s *Service) siteFor(ctx context.Context, who hub.Principal, in WorktreeInput, p *place) error {
	err := s.Store.View(ctx, func(rx store.Rx) error {
		sight, err := SightOf(rx, who)
		if err != nil {
			return err
		}
		if err := sight.plausible(in.CurrentDir, in.Parent); err != nil || in.Repo == "" {
			return err
		}
		return sight.grantsRepo(rx, in.Repo)
	})
	if err == nil {
		err = s.resolveNew(ctx, p)
	}
	if err != nil {
		return err
	}
	return s.Store.View(ctx, func(rx store.Rx) error { return admitsTree(rx, who, *p) })
}

// grantsRepo refuses a repository out of sight: by its path, whether it is
// registered or not.
func (s Sight) grantsRepo(rx store.RepoReader, name string) error {
	if filepath.IsAbs(name) && !s.sees(name) {
		return errNotGranted
	}
	r, err := FindRepo(rx, name)
	if err == nil && !s.sees(r.Path) {
		return errNotGranted
	}
	return err
}

// admitsTree refuses a new worktree out of the principal's sight, and one with a
// parent that is.
func admitsTree(rx sightTx, who hub.Principal, p place) error {
	if err := admits(rx, who, p); err != nil || p.worktree.Parent == "" {
		return err
	}
	parent, err := rx.Worktree(p.worktree.Parent)
	if err != nil {
		return err
	}
	return inSight(rx, who, parent, errNotGranted)
}

// made reports whether the terminal is one that the caller has made, and that was
// given to nobody else since: what is done in it then is somebody else's.
func (s Sight) made(t hub.Terminal) bool {
	return !s.bounded() || t.CreatedBy == s.name && (t.Dispatch == "" || t.Home == s.peer.ID)
}

// without leaves away whose attempt works in the terminal, unless it is the
// caller's.
func (s Sight) without(t hub.Terminal) hub.Terminal {
	if !s.mine(t.Home) {
		t.Dispatch = ""
	}
	return t
}

type terminalSight interface {
	sightTx
	Terminal(hub.TerminalID) (hub.Terminal, error)
}

// findTerminal reads a terminal that is in sight.
func (s Sight) findTerminal(rx terminalSight, id hub.TerminalID) (hub.Terminal, error) {
	t, err := rx.Terminal(id)
	if err != nil {
		return t, err
	}
	ok, err := s.terminal(rx)(t)
	if err == nil && !ok {
		err = hub.Errorf(hub.CodeTerminalNotFound, "there is no terminal %s", id)
	}
	return t, err
}

// hold reads a terminal that the principal may read and type to: as a peer one
// that it has made, within what it is granted now.
func hold(rx terminalSight, who hub.Principal, id hub.TerminalID) (hub.Terminal, error) {
	sight, err := SightOf(rx, who)
	if err != nil {
		return hub.Terminal{}, err
	}
	t, err := sight.findTerminal(rx, id)
	if err == nil && !sight.made(t) {
		err = hub.Errorf(hub.CodeOutOfScope, "%s is no terminal that this peer has made for itself", id)
	}
	return t, err
}

// MayHold refuses a caller a terminal that it may not read.
func (s *Service) MayHold(ctx context.Context, who hub.Principal, id hub.TerminalID) error {
	if who.Kind != hub.PeerKey {
		return nil
	}
	return s.Store.View(ctx, func(rx store.Rx) error {
		_, err := hold(rx, who, id)
		return err
	})
}

// handed is decide for a terminal that the principal may type to.
func (s *Service) handed(ctx context.Context, who hub.Principal, id hub.TerminalID) error {
	if err := s.MayHold(ctx, who, id); err != nil {
		return err
	}
	return s.decide(id)(ctx)
}
