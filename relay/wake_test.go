package relay

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wavehub/wavehub/internal/testkit"
)

func (p *pair) isUp() bool { return p.desk.Up(thePeer) && p.puller.State(thePeer).State == LinkUp }

func (p *pair) opened() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opens
}

func (p *pair) setDown(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = err
}

func TestAfterASleepALinkProvesThatItLives(t *testing.T) {
	for name, side := range map[string]func(*pair) *Session{
		"home": func(p *pair) *Session { return p.puller.cfg.Session }, "worker": func(p *pair) *Session { return p.desk.session },
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
			p.start()
			eventually(t, 5*time.Second, "up", p.isUp)
			side(p).Wake()
			<-time.After(20 * time.Second)
			if !p.isUp() || p.opened() != 1 {
				t.Errorf("%s: a link that lives was ended: %d connections", name, p.opened())
			}
			p.net.Set(testkit.Faults{Drop: 1})
			side(p).Wake()
			eventually(t, 7*time.Second, name+" gave the dead link up", func() bool { return !p.isUp() })
			p.net.Set(testkit.Faults{})
			eventually(t, time.Minute, "healed", p.isUp)
			p.close()
			if len(p.puller.cfg.Session.live)+len(p.desk.session.live) != 0 {
				t.Errorf("%s: ended sessions are still woken", name)
			}
		})
	}
}

// resting is a pair whose home has failed so often that it rests for long.
func resting(t *testing.T) *pair {
	p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
	p.setDown(errors.New("unreachable"))
	p.start()
	<-time.After(3 * time.Minute)
	synctest.Wait()
	return p
}

func TestKicksAndContactsEndTheRest(t *testing.T) {
	for name, c := range map[string]struct {
		kick func(*Home)
		want int
	}{
		"nothing":  {func(*Home) {}, 0},
		"command":  {func(h *Home) { h.Kick(thePeer) }, 1},
		"commands": {func(h *Home) { h.Kick(thePeer); synctest.Wait(); h.Kick(thePeer) }, 2},
		"wake":     {(*Home).KickAll, 1},
		"contact":  {func(h *Home) { h.Contact(thePeer) }, 1},
		"contacts": {func(h *Home) { h.Contact(thePeer); synctest.Wait(); h.Contact(thePeer) }, 1},
		"stranger": {func(h *Home) { h.Kick("peer_other"); h.Contact("peer_other") }, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := resting(t)
			eventually(t, time.Minute, "an attempt", func(before int) func() bool { return func() bool { return p.opened() > before } }(p.opened()))
			before := p.opened()
			c.kick(p.puller)
			synctest.Wait()
			if got := p.opened() - before; got != c.want {
				t.Errorf("%s: %d attempts at once, want %d", name, got, c.want)
			}
			p.close()
		})
	}
}

func TestALiveLinkIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		p.start()
		eventually(t, 5*time.Second, "up", p.isUp)
		p.puller.KickAll()
		p.puller.Contact(thePeer)
		synctest.Wait()
		p.setDown(errors.New("unreachable"))
		p.net.CutAll()
		synctest.Wait()
		if p.opened() != 1 {
			t.Errorf("%d connections: a kick of a live link was kept for its end", p.opened())
		}
		p.close()
	})
}

// carrier is a connection that knows what it runs over.
type carrier struct {
	Conn
	over string
}

func (c carrier) Transport() string { return c.over }

func TestLinkStatesNameTheirTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		p.over = "reverse"
		p.start()
		eventually(t, 5*time.Second, "up", p.isUp)
		home, worker := p.puller.State(thePeer), p.desk.State(thePeer)
		for _, st := range []LinkState{home, worker} {
			if st.State != LinkUp || st.Transport != "reverse" || st.ConnectedAt == 0 {
				t.Errorf("%+v", st)
			}
		}
		p.setDown(errors.New("unreachable"))
		p.net.CutAll()
		eventually(t, 5*time.Second, "down", func() bool { return !p.desk.Up(thePeer) && p.puller.State(thePeer).State == LinkDown })
		if st := p.puller.State(thePeer); st.Transport != "" || st.LastError == "" {
			t.Errorf("home: %+v", st)
		}
		if st := p.desk.State(thePeer); st != (LinkState{State: LinkDown}) {
			t.Errorf("worker: %+v", st)
		}
		p.close()
	})
}
