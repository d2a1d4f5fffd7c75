package keystore

import (
	"crypto/sha256"
	"strings"
)

// ServerName asks a listener with several keys for the one with the
// fingerprint: a label in front of its name. The label is a hash, for names
// travel in the clear. An empty fingerprint asks for the present key.
func ServerName(fingerprint, name string) string {
	if fingerprint == "" {
		return name
	}
	sum := sha256.Sum256([]byte("wavehub-sni/1 " + fingerprint))
	return "k" + EncodeBase32(sum[:10]) + "." + name
}

// Named reports whether a server name is name, or asks for a key in front of it.
func Named(serverName, name string) bool {
	return serverName == name || strings.HasSuffix(serverName, "."+name)
}

// Asked returns the key that a server name below name asks for, the present one
// if it asks for none that is held.
func (id Identity) Asked(serverName, name string) Key {
	for _, k := range append([]Key{id.Present()}, id.Former...) {
		if serverName == ServerName(k.Fingerprint, name) {
			return k
		}
	}
	return id.Present()
}
