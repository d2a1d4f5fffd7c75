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

func checkName(name string) error {
	if !nameForm.MatchString(name) {
		return hub.Invalid("name", "must be a-z, 0-9, '.', '_' or '-', start with a letter or digit, at most 63 characters")
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
	if s = s[:min(len(s), 48)]; s == "" {
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

// enroll stores a pairing: a new peer, or the same key paired again, which
// keeps its id.
func enroll(tx store.Peers, p hub.Peer) (hub.Peer, error) {
	other, err := tx.PeerByName(p.Name)
	switch {
	case err == nil && other.Lineage != p.Lineage:
		return p, taken(p.Name)
	case err != nil && !hub.IsCode(err, hub.CodePeerNotFound):
		return p, err
	}
	old, known, err := enrolled(tx, p)
	switch {
	case err != nil:
		return p, err
	case known:
		p.ID, p.CreatedAt = old.ID, old.CreatedAt
		return p, tx.SavePeer(p)
	}
	return p, tx.PutPeer(p)
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
