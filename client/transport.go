package client

import (
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/wavehub/wavehub/internal/keystore"
)

// apiServerName is below which a hub with several keys is asked for one.
const apiServerName = "api.wavehub.internal"

// newHTTPClient trusts exactly one key, whatever name or authority the
// certificate shows, and nobody before that key was compared.
func newHTTPClient(cfg Config) *http.Client {
	dialer := &net.Dialer{Timeout: cfg.ConnectTimeout}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               nil,
			DialContext:         dialer.DialContext,
			TLSHandshakeTimeout: cfg.ConnectTimeout,
			TLSClientConfig: &tls.Config{
				MinVersion:         tls.VersionTLS13,
				ServerName:         keystore.ServerName(cfg.Fingerprint, apiServerName),
				InsecureSkipVerify: true, // names and authorities mean nothing here: VerifyConnection compares the key
				VerifyConnection:   pin(cfg.Fingerprint),
			},
			DisableCompression: true, // bodies are passed on as received
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// identityError is the handshake's refusal of another key.
type identityError struct{ want, got string }

func (e *identityError) Error() string {
	return fmt.Sprintf("the hub shows the key %s, pinned is %s", e.got, e.want)
}

// pin runs within the handshake, before a byte of the request is written.
func pin(want string) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return errors.New("the hub shows no certificate")
		}
		got := keystore.FingerprintOf(state.PeerCertificates[0])
		if subtle.ConstantTimeCompare([]byte(got), []byte(want)) != 1 {
			return &identityError{want: want, got: got}
		}
		return nil
	}
}
