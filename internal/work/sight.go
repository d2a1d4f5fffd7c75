package work

import (
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Sight is what a caller may see of this hub: all of it, or as a peer what lies
// below the roots that it is granted. The zero value is that of this hub's own
// principals.
type Sight struct {
	peer hub.Peer
	name string // of the peer as a principal, "" for no bounds
}

type peerTx interface {
	Peer(hub.PeerID) (hub.Peer, error)
}

type sightTx interface {
	peerTx
	store.RepoReader
}

// SightOf is what the principal may see. A peer's grants are those of the
// caller's snapshot or transaction, so that a change of them counts at once; one
// that may not send commands here is out_of_scope.
func SightOf(rx peerTx, p hub.Principal) (Sight, error) {
	if p.Kind != hub.PeerKey {
		return Sight{}, nil
	}
	peer, err := rx.Peer(hub.PeerID(p.Credential))
	if err == nil {
		err = MayProxy(peer)
	}
	return Sight{peer: peer, name: p.Name()}, err
}

// MayProxy refuses a peer that may not send commands here through its own hub.
func MayProxy(p hub.Peer) error {
	switch {
	case !p.State.Trusted():
		return hub.Errorf(hub.CodePeerRevoked, "%s is %s", p.Name, p.State)
	case !slices.Contains(p.Grants.Verbs, hub.GrantProxy):
		return ungranted(hub.GrantProxy, "send commands")
	}
	return asHome(p)
}

// bounded reports whether some things are not seen.
func (s Sight) bounded() bool { return s.name != "" }

// sees reports whether a path is in sight. It is compared as it is written: where
// a link leads is compared again.
func (s Sight) sees(path string) bool { return !s.bounded() || grantsPath(s.peer.Grants, path) }

// mine reports whether an attempt of that home is the caller's.
func (s Sight) mine(home hub.PeerID) bool { return !s.bounded() || home == s.peer.ID }

// Repo reports whether the repository is in sight.
func (s Sight) Repo(r hub.Repo) (bool, error) { return s.sees(r.Path), nil }

// Attachment reports whether an attempt is the caller's.
func (s Sight) Attachment(a hub.Attachment) (bool, error) { return s.mine(a.Home), nil }

// Worktree reports whether a worktree is in sight: it is where its repository is,
// although it lies elsewhere.
func (s Sight) Worktree(rx store.RepoReader) func(hub.Worktree) (bool, error) {
	return func(w hub.Worktree) (bool, error) {
		if s.sees(w.Path) {
			return true, nil
		}
		r, err := rx.Repo(w.Repo)
		return err == nil && s.sees(r.Path), err
	}
}

// terminal reports whether a terminal is in sight: where its folder is, or the
// worktree that this is in.
func (s Sight) terminal(rx store.RepoReader) func(hub.Terminal) (bool, error) {
	return func(t hub.Terminal) (bool, error) {
		if s.sees(t.Dir) || t.Worktree == "" {
			return s.sees(t.Dir), nil
		}
		w, err := rx.Worktree(t.Worktree)
		if hub.IsCode(err, hub.CodeWorktreeNotFoundOnServer) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		return s.Worktree(rx)(w)
	}
}

// FindRepo is FindRepo among what is in sight.
func (s Sight) FindRepo(rx store.RepoReader, name string) (hub.Repo, error) {
	r, err := FindRepo(rx, name)
	if s.bounded() && (hub.IsCode(err, hub.CodeRepoNotFound) || err == nil && !s.sees(r.Path)) {
		return hub.Repo{}, hub.Errorf(hub.CodeRepoNotFound, "%q is not registered on this hub within the roots granted to this peer", name)
	}
	return r, err
}

// FindWorktree is FindWorktree among what is in sight.
func (s Sight) FindWorktree(rx store.RepoReader, selector string) (hub.Worktree, error) {
	id, byID := strings.CutPrefix(selector, "id:")
	if !s.bounded() || byID || hub.ValidID(hub.PrefixWorktree, id) {
		w, err := FindWorktree(rx, selector)
		if err != nil {
			return w, err
		}
		return w, s.seen(rx, w, hub.Errorf(hub.CodeWorktreeNotFoundOnServer, "there is no worktree %s", w.ID))
	}
	named, err := rx.WorktreesNamed(selector)
	if err == nil {
		named, err = kept(named, s.Worktree(rx))
	}
	if err != nil {
		return hub.Worktree{}, err
	}
	return onlyOne(named, selector)
}

// seen is the error unseen for a worktree out of sight.
func (s Sight) seen(rx store.RepoReader, w hub.Worktree, unseen error) error {
	ok, err := s.Worktree(rx)(w)
	if err == nil && !ok {
		return unseen
	}
	return err
}

// inSight is seen for the principal's sight.
func inSight(rx sightTx, who hub.Principal, w hub.Worktree, unseen error) error {
	sight, err := SightOf(rx, who)
	if err != nil {
		return err
	}
	return sight.seen(rx, w, unseen)
}

// kept are the rows that keep lets through.
func kept[T any](rows []T, keep func(T) (bool, error)) ([]T, error) {
	out := []T{}
	for _, row := range rows {
		ok, err := keep(row)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, row)
		}
	}
	return out, nil
}

// maxReads bounds the looks for what is in sight, each at most one page long.
const maxReads = 64

// Visible reads a page of a list without what keep refuses. Of a list with much
// that is refused a page may be short, or empty, although there is a next one.
func Visible[T any](p store.Page, read func(store.Page) ([]T, int64, error), keep func(T) (bool, error)) ([]T, int64, error) {
	out := []T{}
	for range maxReads {
		rows, next, err := read(store.Page{Before: p.Before, Limit: p.Limit - len(out)})
		if err == nil {
			rows, err = kept(rows, keep)
		}
		if err != nil {
			return nil, 0, err
		}
		out = append(out, rows...)
		if p.Before = next; next == 0 || len(out) == p.Limit {
			break
		}
	}
	return out, p.Before, nil
}
