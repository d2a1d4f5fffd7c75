package relay

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/testkit"
)

func TestNewerProcessEndsTheOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		p.start()
		eventually(t, 5*time.Second, "up", func() bool { return p.desk.Up(thePeer) })
		twin, err := NewSession(newModel("store-home").config("nonce-twin"))
		if err != nil {
			t.Fatal(err)
		}
		conn, err := p.Open(t.Context(), thePeer)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		p.wg.Go(func() { _ = twin.Run(ctx, conn, hub.RoleHome, thePeer) })
		eventually(t, time.Second, "the older one is told", func() bool {
			return p.puller.State(thePeer).Code == hub.CodePeerDuplicate
		})
		opens := p.opened()
		for p.opened() < opens+5 { // it comes back, and does not take the other one's place
			p.puller.Kick(thePeer)
			synctest.Wait()
			if p.desk.nonceOf(thePeer) != "nonce-twin" {
				t.Fatalf("%s is connected", p.desk.nonceOf(thePeer))
			}
			<-time.After(time.Second)
		}
		cancel()
		eventually(t, time.Minute, "the older one is alone", func() bool { return p.puller.State(thePeer).State == LinkUp })
		p.close()
	})
}

// A home that meets a process of its peer again, after a later one, knows that two
// run: the later one counts while it may be alive.
func TestTwinsOfAWorkerHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		twin, err := NewSession(newModel("store-worker").config("nonce-twin"))
		if err != nil {
			t.Fatal(err)
		}
		other, err := NewDesk(twin)
		if err != nil {
			t.Fatal(err)
		}
		first := p.desk
		p.start()
		up := func(d *Desk) func() bool {
			return func() bool { return d.Up(thePeer) && p.puller.State(thePeer).State == LinkUp }
		}
		eventually(t, 5*time.Second, "the first one is up", up(first))
		p.serveBy(other)
		p.net.CutAll()
		eventually(t, 5*time.Second, "the second one is up", up(other))
		p.serveBy(first)
		p.net.CutAll()
		eventually(t, 5*time.Second, "the first one is not taken", func() bool { return p.puller.State(thePeer).Code == hub.CodePeerDuplicate })
		eventually(t, 5*time.Minute, "nothing was heard of the second one", up(first))
		p.close()
	})
}
