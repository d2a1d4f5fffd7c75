package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
)

// hostNet is a network of its own: a namespace for each host and one for the
// router between them. Each host has a cable to the router, a subnet of its own
// and the address 10.77.N.2, or is behind a gateway, which has those; nothing of
// it is in the machine's own network.
type hostNet struct {
	t     testing.TB
	name  string // begins the names of all namespaces
	hosts int
}

const hubPort = "7443"

var hostNets atomic.Int64

// newHostNet makes the router; the namespaces go with the test.
func newHostNet(t testing.TB) *hostNet {
	t.Helper()
	atMediumScale(t)
	needed(t, "ip")
	if os.Geteuid() != 0 {
		t.Skip("not run: only root makes network namespaces")
	}
	sweepHostNets(t)
	n := &hostNet{t: t, name: fmt.Sprintf("whe%d-%d-", os.Getpid(), hostNets.Add(1))}
	if out, err := exec.Command("ip", "netns", "add", n.space("router")).CombinedOutput(); err != nil {
		t.Skipf("not run: no network namespace can be made: %s", out)
	}
	n.deleted("router")
	n.ip("router", "link", "set", "lo", "up")
	n.forwards("router")
	return n
}

// sweepHostNets deletes what runs that are no more, and were killed, left behind.
func sweepHostNets(t testing.TB) {
	t.Helper()
	for _, root := range []string{"/run/netns", "/etc/netns"} {
		left, err := filepath.Glob(filepath.Join(root, "whe*-*-*"))
		must(t, err)
		for _, path := range left {
			var pid, nr int
			if _, err := fmt.Sscanf(filepath.Base(path), "whe%d-%d-", &pid, &nr); err != nil || syscall.Kill(pid, 0) != syscall.ESRCH {
				continue
			}
			if root == "/etc/netns" {
				must(t, os.RemoveAll(path))
				continue
			}
			// A test beside this one may have been quicker.
			if out, err := exec.Command("ip", "netns", "del", filepath.Base(path)).CombinedOutput(); err != nil && exists(path) {
				t.Errorf("deleting %s: %v\n%s", path, err, out)
			}
		}
	}
}

// deleted deletes the namespace, and what is in it, behind the test.
func (n *hostNet) deleted(name string) {
	n.t.Cleanup(func() {
		if out, err := exec.Command("ip", "netns", "del", n.space(name)).CombinedOutput(); err != nil {
			n.t.Errorf("deleting the namespace of %s: %v\n%s", name, err, out)
		}
	})
}

func (n *hostNet) space(name string) string { return n.name + name }

// ip configures a host, or the router.
func (n *hostNet) ip(host string, args ...string) {
	n.t.Helper()
	n.run(append([]string{"ip", "-n", n.space(host)}, args...)...)
}

func (n *hostNet) run(argv ...string) {
	n.t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		n.t.Fatalf("%q: %v\n%s", argv, err, out)
	}
}

// netHost is a host, and the hub on it if it has one.
type netHost struct {
	*Hub
	net    *hostNet
	name   string
	router string // the host at the other end of its cable
	subnet string // the first three numbers of its addresses
	addr   string
}

// host makes a host that is cabled to the router.
func (n *hostNet) host(name string) *netHost {
	n.t.Helper()
	return n.cabled(name, "router", "10.77")
}

// cabled makes a host whose cable goes to router; it has a subnet of its own
// below network.
func (n *hostNet) cabled(name, router, network string) *netHost {
	n.t.Helper()
	n.hosts++
	h := &netHost{net: n, name: name, router: router, subnet: fmt.Sprintf("%s.%d", network, n.hosts)}
	n.run("ip", "netns", "add", n.space(name))
	n.deleted(name)
	n.ip(router, "link", "add", h.port(), "type", "veth", "peer", "name", "eth0", "netns", n.space(name))
	n.ip(router, "addr", "add", h.at(1)+"/24", "dev", h.port())
	n.ip(router, "link", "set", h.port(), "up")
	n.ip(name, "link", "set", "lo", "up")
	n.ip(name, "link", "set", "eth0", "up")
	h.move(2)
	n.makeHostsFile(name)
	return h
}

// start makes a host and starts its hub, which other hosts may reach.
func (n *hostNet) start(name string) *netHost {
	n.t.Helper()
	return n.host(name).start()
}

func (h *netHost) start() *netHost {
	h.net.t.Helper()
	return h.serve("--listen", "0.0.0.0:"+hubPort, "--advertise", h.addr+":"+hubPort)
}

// serve starts the host's hub with flags.
func (h *netHost) serve(flags ...string) *netHost {
	h.net.t.Helper()
	h.Hub = StartHub(h.net.t, h.name, func(_ testing.TB, hub *Hub) {
		hub.via = []string{"ip", "netns", "exec", h.net.space(h.name)}
		hub.args = append([]string{"serve", "--name", h.name}, flags...)
	})
	return h
}

// gateway makes a host without a hub that masquerades: those behind it reach
// others by its address, and nobody has a way in to them.
func (n *hostNet) gateway(name string) *netHost {
	n.t.Helper()
	needed(n.t, "nft")
	g := n.host(name)
	n.forwards(name)
	n.run("ip", "netns", "exec", n.space(name), "nft", "add table ip nat;"+
		"add chain ip nat out { type nat hook postrouting priority srcnat; };"+
		"add rule ip nat out oifname eth0 masquerade")
	return g
}

// behind makes a host behind a gateway.
func (n *hostNet) behind(gateway *netHost, name string) *netHost {
	n.t.Helper()
	return n.cabled(name, gateway.name, "192.168")
}

func (n *hostNet) forwards(host string) {
	n.t.Helper()
	n.run("ip", "netns", "exec", n.space(host), "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
}

// port is the router's end of the host's cable.
func (h *netHost) port() string { return "to-" + h.name }

// at is an address in the host's subnet.
func (h *netHost) at(last int) string { return fmt.Sprintf("%s.%d", h.subnet, last) }

// move gives the host another address of its subnet instead of the one it has.
func (h *netHost) move(last int) {
	h.net.t.Helper()
	h.net.ip(h.name, "addr", "flush", "dev", "eth0")
	h.addr = h.at(last)
	h.net.ip(h.name, "addr", "add", h.addr+"/24", "dev", "eth0")
	h.net.ip(h.name, "route", "add", "default", "via", h.at(1))
}

// unplug pulls the host's cable out of its router; plug puts it back.
func (h *netHost) unplug() { h.net.ip(h.router, "link", "set", h.port(), "down") }

func (h *netHost) plug() { h.net.ip(h.router, "link", "set", h.port(), "up") }

// swallow has the router drop, and answer nothing to, what is for the host.
func (h *netHost) swallow() { h.net.ip(h.router, "route", "add", "blackhole", h.addr+"/32") }

func (h *netHost) deliver() { h.net.ip(h.router, "route", "del", "blackhole", h.addr+"/32") }

// throttle lets through so many bits per second in each direction.
func (h *netHost) throttle(rate string) {
	h.net.t.Helper()
	needed(h.net.t, "tc")
	for space, dev := range map[string]string{h.router: h.port(), h.name: "eth0"} {
		h.net.run("tc", "-n", h.net.space(space), "qdisc", "add", "dev", dev, "root", "tbf", "rate", rate, "burst", "4kb", "latency", "1s")
	}
}

// hostsFile is what the programs of a host have as /etc/hosts.
func (n *hostNet) hostsFile(name string) string {
	return filepath.Join("/etc/netns", n.space(name), "hosts")
}

func (n *hostNet) makeHostsFile(name string) {
	n.t.Helper()
	file := n.hostsFile(name)
	must(n.t, os.MkdirAll(filepath.Dir(file), 0o755))
	n.t.Cleanup(func() { must(n.t, os.RemoveAll(filepath.Dir(file))) })
	must(n.t, os.WriteFile(file, []byte("127.0.0.1 localhost\n"), 0o644))
}

// resolves makes name an address on this host alone. The file is written over,
// since running programs have this very one.
func (h *netHost) resolves(name, addr string) {
	h.net.t.Helper()
	must(h.net.t, os.WriteFile(h.net.hostsFile(h.name), []byte("127.0.0.1 localhost\n"+addr+" "+name+"\n"), 0o644))
}

// pair makes worker serve home; host is how home calls it, "" is its address.
func (n *hostNet) pair(home, worker *netHost, host string) Pairing {
	n.t.Helper()
	p := Pairing{Home: home.Hub, Worker: worker.Hub, Root: n.t.TempDir()}
	if host == "" {
		host = worker.addr
	}
	Pair(n.t, home.Hub, worker.Hub, p.Root, "https://"+host+":"+hubPort)
	return p
}
