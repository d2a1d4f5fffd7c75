package work

import (
	"errors"
	"path/filepath"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

// errOwnHubOnly refuses a peer to a worker: its grants are of its own hub.
var errOwnHubOnly = hub.Errorf(hub.CodeServerRequired, "a worker that coordinates places its workers on its own hub only; leave --on away")

// advised leaves commands out that a worker cannot run: it lists no repositories.
func advised(p hub.Principal, err error) error {
	e, ok := errors.AsType[*hub.Error](err)
	if !ok || len(e.Next) == 0 || p.Kind != hub.DispatchCap {
		return err
	}
	copied := *e
	copied.Next, copied.Hint = nil, "a worker that coordinates has its own repository: call from its folder without --repo, or with the name that it was started with"
	return &copied
}

type operatesTx interface {
	run.CallerTx
	Dispatch(hub.DispatchID) (hub.Dispatch, error)
}

// operates refuses a worker a Dispatch that is not of the child Run that it
// coordinates.
func operates(tx operatesTx, p hub.Principal, id hub.DispatchID) error {
	if p.Kind != hub.DispatchCap {
		return nil
	}
	d, err := tx.Dispatch(id)
	if err != nil {
		return err
	}
	return run.Operates(tx, p, d.Run)
}

type chargeTx interface {
	run.CallerTx
	store.RepoReader
}

// charge refuses a place outside of what the caller may use, and returns the peer
// on whose account its worker runs. An operator may use all of this hub. A worker
// that coordinates has its own folder and repository; one of a peer's, and those
// below it, have that peer's present grants.
func (s *Service) charge(tx chargeTx, p hub.Principal, at place) (sponsor hub.PeerID, err error) {
	if p.Kind != hub.DispatchCap {
		return "", nil
	}
	a, err := run.AttachmentOf(tx, p)
	if err != nil {
		return "", err
	}
	if a.Home == "" {
		err = withinOwn(tx, a, at)
	}
	if sponsor = sponsorOf(a); sponsor == "" || err != nil {
		return sponsor, err
	}
	peer, err := tx.Peer(sponsor)
	if err != nil {
		return sponsor, err
	}
	return sponsor, granted(tx, peer, at)
}

func sponsorOf(a hub.Attachment) hub.PeerID {
	if a.Home != "" {
		return a.Home
	}
	return a.Sponsor
}

func granted(tx store.AttachmentReader, peer hub.Peer, at place) error {
	if peer.State != hub.PeerActive {
		return hub.Errorf(hub.CodePeerRevoked, "%s is %s", peer.Name, peer.State)
	}
	if err := withinGrant(at, peer.Grants); err != nil {
		return err
	}
	return roomGranted(tx, peer)
}

// withinOwn refuses a place outside of the worker's folder and of the repository
// that it is in.
func withinOwn(tx store.RepoReader, a hub.Attachment, at place) error {
	path := at.dir
	if at.repo.ID != "" {
		path = at.repo.Path
	}
	if within(a.Dir, path) || within(a.Dir, at.dir) && !at.spec.New() {
		return nil
	}
	repo, ok, err := repoOf(tx, a)
	if err != nil || ok && within(repo.Path, path) {
		return err
	}
	e := hub.Errorf(hub.CodeRepoNotGranted, "a worker that coordinates starts workers in its own repository only")
	e.Hint = "use --worktree current, or new-child in the folder that it works in"
	return e
}

// repoOf is the registered repository that the worker's folder is in.
func repoOf(tx store.RepoReader, a hub.Attachment) (hub.Repo, bool, error) {
	if a.Worktree != "" {
		w, err := tx.Worktree(a.Worktree)
		if err != nil {
			return hub.Repo{}, false, err
		}
		r, err := tx.Repo(w.Repo)
		return r, err == nil, err
	}
	return repoAbove(tx, a.Dir)
}

// repoAbove is the registered repository at the folder or at the nearest one that
// it is in.
func repoAbove(tx store.RepoReader, dir string) (hub.Repo, bool, error) {
	for {
		r, ok, err := tx.RepoByPath(dir)
		parent := filepath.Dir(dir)
		if err != nil || ok || parent == dir {
			return r, ok, err
		}
		dir = parent
	}
}
