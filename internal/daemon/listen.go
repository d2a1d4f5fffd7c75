package daemon

import (
	"errors"
	"io/fs"
	"net"
	"net/url"

	"github.com/wavehub/wavehub/internal/config"
	"github.com/wavehub/wavehub/internal/hub"
)

// listen takes the configured address. A port chosen for :0 at the first start
// is taken again, since workers and peers know it.
func listen(cfg config.Config) (net.Listener, error) {
	addr, err := address(cfg)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		e := hub.Errorf(hub.CodeListenFailed, "%s cannot be listened on", addr)
		e.Err = err
		e.Hint = "end what uses the port, or choose another with --listen"
		return nil, e
	}
	return ln, nil
}

func address(cfg config.Config) (string, error) {
	host, port, err := net.SplitHostPort(cfg.Listen)
	if err != nil || port != "0" {
		return cfg.Listen, err
	}
	last, err := config.ReadEndpoint(cfg.DataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return cfg.Listen, nil
	}
	if err != nil {
		return "", err
	}
	u, err := url.Parse(last.URL)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(host, u.Port()), nil
}

// reachable is the URL by which local clients reach a listener.
func reachable(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return "https://" + a.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "https://" + net.JoinHostPort(host, port)
}
