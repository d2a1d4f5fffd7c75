//go:build unix

package e2e

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/config"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/sqlite"
	"github.com/wavehub/wavehub/internal/store"
)

// edit changes the store of a hub that is not running: what would take long to
// bring about, or cannot be brought about from outside yet.
func (h *Hub) edit(change func(tx store.Tx) error) {
	h.t.Helper()
	st, err := sqlite.Open(h.t.Context(), sqlite.Config{Path: h.Data("wavehub.db")})
	must(h.t, err)
	err = st.Update(h.t.Context(), store.New, change)
	must(h.t, st.Close())
	must(h.t, err)
}

// stoppedHub is one that has been started once, so that it has a key, a store
// and an address, and runs no longer.
func stoppedHub(t testing.TB, name string, opts ...Option) *Hub {
	t.Helper()
	h := StartHub(t, name, opts...)
	h.Stop()
	return h
}

// card is what another hub records of this one, which must not run.
func (h *Hub) card(role hub.Role) hub.Peer {
	h.t.Helper()
	id, err := keystore.Load(h.Data())
	must(h.t, err)
	p := hub.Peer{
		ID: hub.NewPeerID(), Name: h.Name, Lineage: id.HubID, Fingerprint: id.Fingerprint, Addresses: []string{h.Endpoint().URL},
		Role: role, Grants: hub.Grants{Verbs: []string{}, Repos: []string{}}, State: hub.PeerActive,
	}
	h.edit(func(tx store.Tx) error {
		p.StoreID, p.StoreEpoch, err = tx.StoreIdentity()
		return err
	})
	return p
}

// know records the peers at a hub that does not run.
func (h *Hub) know(peers ...hub.Peer) {
	h.t.Helper()
	h.edit(func(tx store.Tx) error {
		for _, p := range peers {
			if err := tx.PutPeer(p); err != nil {
				return err
			}
		}
		return nil
	})
}

// introduce pairs hubs that do not run, without a code and its slow hash: the
// worker grants the root to the home, which finds it at the address ("": its own).
func introduce(home, worker *Hub, root, address string) {
	p := worker.card(hub.RoleWorker)
	if address != "" {
		p.Addresses = []string{address}
	}
	home.know(p)
	p = home.card(hub.RoleHome)
	p.Grants = hub.Grants{Verbs: []string{hub.GrantStart, hub.GrantRead}, Repos: []string{root}}
	worker.know(p)
}

// at is a caller that finds the hub at another address, with another key or
// another token.
func (h *Hub) at(t testing.TB, e config.Endpoint, token string) Caller {
	t.Helper()
	dir := t.TempDir()
	must(t, config.WriteEndpoint(dir, e))
	must(t, os.WriteFile(filepath.Join(dir, "token"), []byte(token+"\n"), 0o600))
	return h.Caller("WAVEHUB_DATA_DIR=" + dir)
}

// trusting takes any key: it is used between a test and its own hubs.
var trusting = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}

// waits says whether a call waits at the hub.
func (h *Hub) waits() bool {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.Endpoint().URL+"/metrics", nil)
	must(h.t, err)
	r.Header.Set("Authorization", "Bearer "+h.Token())
	resp, err := trusting.RoundTrip(r)
	must(h.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(h.t, err)
	return strings.Contains(string(text), "\nwavehub_waits_in_flight 1\n")
}

// writeProgram makes a file that can be run at once: no process that this one
// forks meanwhile has it open for writing.
func writeProgram(t testing.TB, path, text string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `cat > "$1" && chmod 700 "$1"`, "sh", path)
	cmd.Stdin = strings.NewReader(text)
	must(t, cmd.Run())
}

// spoilt is a caller whose requests are changed on their way to the hub.
func (h *Hub) spoilt(t testing.TB, spoil func(*http.Request)) Caller {
	t.Helper()
	target, err := url.Parse(h.Endpoint().URL)
	must(t, err)
	srv := httptest.NewTLSServer(&httputil.ReverseProxy{
		Transport: trusting,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			spoil(r.Out)
		},
	})
	t.Cleanup(srv.Close)
	e := config.Endpoint{URL: srv.URL, Fingerprint: keystore.FingerprintOf(srv.Certificate()), HubID: h.Endpoint().HubID}
	return h.at(t, e, h.Token())
}
