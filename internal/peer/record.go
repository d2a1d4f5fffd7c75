package peer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// reserved names mean something else where a peer can be named.
var reserved = []string{hub.WorktreeCurrent}

func checkName(name string) error {
	switch {
	case !nameForm.MatchString(name):
		return hub.Invalid("name", "must be a-z, 0-9, '.', '_' or '-', start with a letter or digit, at most 63 characters")
	case slices.Contains(reserved, name) || hub.ValidID(hub.PrefixPeer, name):
		return hub.Invalid("name", "%s means something else; choose another one", name)
	}
	return nil
}

func taken(name string) error {
	e := hub.Errorf(hub.CodeNameTaken, "a peer named %s exists", name)
	e.Field = "name"
	return e
}

// tidyName makes a name of what a peer suggests.
func tidyName(s string) string {
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789._-", r) {
			return r
		}
		return '-'
	}, strings.ToLower(s))
	s = strings.TrimLeft(s, "._-")
	if s = s[:min(len(s), 48)]; checkName(s) != nil {
		return "peer"
	}
	return s
}

// checkGrants fills in the defaults of a side that serves; a side that does
// not gives nothing.
func checkGrants(g hub.Grants, serves bool) (hub.Grants, error) {
	if !serves {
		if len(g.Repos) > 0 || len(g.Verbs) > 0 || g.MaxWorkers != 0 {
			return g, hub.Invalid("grants", "only the worker's side grants; serve, or leave them away")
		}
		return hub.Grants{Verbs: []string{}, Repos: []string{}}, nil
	}
	if g.Verbs == nil {
		g.Verbs = []string{hub.GrantStart, hub.GrantRead, hub.GrantProxy}
	}
	for _, v := range g.Verbs {
		if v != hub.GrantStart && v != hub.GrantRead && v != hub.GrantProxy {
			return g, hub.Invalid("grants", "%q is not start, read or proxy", v)
		}
	}
	for _, r := range g.Repos {
		if !absolute(r) {
			return g, hub.Invalid("allow_repos", "%q must be an absolute path", r)
		}
	}
	if g.MaxWorkers < 0 {
		return g, hub.Invalid("max_workers", "must be 0 (no limit) or more")
	}
	g.Repos = orEmpty(g.Repos)
	return g, nil
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return slices.Clone(s)
}

// enroll stores a pairing. A hub paired again with the store that it had keeps
// its id, and with it what is pinned to that. With another store it is another
// peer, and the one before is removed: its Dispatches and attachments are not
// handed on.
func (s *Service) enroll(tx store.Tx, p hub.Peer) (hub.Peer, error) {
	other, err := tx.PeerByName(p.Name)
	switch {
	case err == nil && other.Lineage != p.Lineage:
		return p, taken(p.Name)
	case err != nil && !hub.IsCode(err, hub.CodePeerNotFound):
		return p, err
	}
	if _, _, err := enrolled(tx, p); err != nil {
		return p, err
	}
	known, err := s.retire(tx, p)
	if err != nil {
		return p, err
	}
	if known {
		p, err = s.again(tx, p)
	} else {
		err = tx.PutPeer(p)
	}
	tx.Signal(hub.Signal{Topic: hub.TopicPeer, Key: string(p.ID)})
	return p, err
}

// retire removes the pairings with other stores of the hub, and reports whether
// it was paired with this one.
func (s *Service) retire(tx store.Tx, p hub.Peer) (known bool, err error) {
	was, err := tx.PeersOf(p.Lineage)
	for _, old := range was {
		switch {
		case err != nil:
		case old.StoreID == p.StoreID:
			known = true
		case old.State != hub.PeerRemoved:
			_, err = s.end(tx, old)
		}
	}
	return known, err
}

// again takes the id of the pairing with the same store.
func (s *Service) again(tx store.Tx, p hub.Peer) (hub.Peer, error) {
	was, err := tx.PeersOf(p.Lineage)
	at := slices.IndexFunc(was, func(old hub.Peer) bool { return old.StoreID == p.StoreID })
	if err != nil || at < 0 {
		return p, err
	}
	p.ID, p.CreatedAt = was[at].ID, was[at].CreatedAt
	return p, tx.SavePeer(p)
}

// freeName returns want, or want with the first number that is free.
func freeName(tx store.PeerReader, want, fingerprint string) (string, error) {
	name := want
	for n := 2; n < 1000; n++ {
		p, err := tx.PeerByName(name)
		switch {
		case hub.IsCode(err, hub.CodePeerNotFound) || err == nil && p.Fingerprint == fingerprint:
			return name, nil
		case err != nil:
			return "", err
		}
		name = fmt.Sprintf("%s-%d", want, n)
	}
	return "", taken(want)
}
