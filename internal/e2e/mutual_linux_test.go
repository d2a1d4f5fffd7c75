package e2e

import (
	"strings"
	"testing"

	"github.com/wavehub/wavehub/openapi/api"
)

// Of three hosts two pairs serve each other, by the word of the one that invites
// or of the one that joins, and in the third pair the inviter is the home.
func TestHosts_ThreeServeEachOther(t *testing.T) {
	t.Parallel()
	n := newHostNet(t)
	mac, windows, linux := n.start("mac"), n.start("windows"), n.start("linux")
	root := t.TempDir()
	invite := func(h *netHost, flags ...string) string {
		t.Helper()
		return *get[api.InviteResult](t, h.Caller(), append([]string{"peer", "invite"}, flags...)...).Invite.Code
	}
	windows.add(t, mac, invite(mac, "--mutual", "--allow-repo", root))
	get[api.PeerResult](t, windows.Caller(), "peer", "grant", "mac", "--verb", "start", "--allow-repo", root)
	linux.add(t, windows, invite(windows, "--allow-repo", root), "--mutual", "--allow-repo", root)
	mac.add(t, linux, invite(linux, "--as", "home"), "--serve", "--allow-repo", root)
	for _, pair := range [][2]*netHost{{mac, windows}, {windows, mac}, {windows, linux}, {linux, windows}, {linux, mac}} {
		p := Pairing{Home: pair[0].Hub, Worker: pair[1].Hub, Root: root}
		run := p.Home.NewRun("on " + p.Worker.Name)
		if m := run.Done(run.Work(done+p.Worker.Name, p.Place()...).DispatchId); m.Body != p.Worker.Name {
			t.Errorf("%s on %s: %+v", p.Home.Name, p.Worker.Name, m)
		}
	}
	run := mac.NewRun("not served")
	place := Pairing{Worker: linux.Hub, Root: root}.Place()
	refused(t, run.Caller, "server_required", append([]string{"worker", "start", "--task", run.Task("true")}, place...)...)
}

// A hub that is configured for this host alone says so when it invites, and how
// to change that.
func TestHosts_AnInviteThatNobodyCanReach(t *testing.T) {
	t.Parallel()
	n := newHostNet(t)
	home, far := n.start("mac"), n.host("windows").serve()
	warnings := get[api.InviteResult](t, far.Caller(), "peer", "invite").Warnings
	if len(warnings) != 1 || !strings.Contains(warnings[0], "other hosts cannot reach this hub") {
		t.Fatalf("the warnings are %q", warnings)
	}
	if text := far.CLI("peer", "invite").Stdout; !strings.Contains(text, "warning: "+warnings[0]) {
		t.Errorf("for people: %q", text)
	}
	_, fix, _ := strings.Cut(warnings[0], "start it again: ")
	fix, _, _ = strings.Cut(fix, " (")
	fix = strings.ReplaceAll(fix, "HOST", far.addr)
	for line := range strings.SplitSeq(fix, "; ") {
		if r := far.CLI(strings.Fields(line)[1:]...); r.Code != 0 {
			t.Fatalf("%q: %+v", line, r)
		}
	}
	far.Stop()
	far.Start()
	if again := get[api.InviteResult](t, far.Caller(), "peer", "invite"); len(again.Warnings) != 0 {
		t.Errorf("after the fix: %q", again.Warnings)
	}
	p := n.pair(home, far, "")
	run := home.NewRun("reached")
	run.Done(run.Work(done+"reached", p.Place()...).DispatchId)
}
