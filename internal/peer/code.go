package peer

import (
	"crypto/rand"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
)

// A pairing code is SSSC-XXXX-XXXX-XXXX in Crockford base32: three public
// characters that name the invite, one check character over all the others,
// twelve secret characters (60 bits).
const (
	slotLen   = 3
	secretLen = 12
	codeLen   = slotLen + 1 + secretLen
)

// code is a pairing code that has passed its check character; upper case.
type code struct{ slot, secret string }

// String returns the form that is shown.
func (c code) String() string {
	check := strings.ToUpper(string(keystore.CheckChar(c.slot + c.secret)))
	s := c.secret
	return c.slot + check + "-" + s[:4] + "-" + s[4:8] + "-" + s[8:]
}

var foldCode = strings.NewReplacer("I", "1", "L", "1", "O", "0", "-", "", " ", "", "\t", "", "\r", "", "\n", "")

// parseCode accepts any case, I and L for 1, O for 0, and any grouping. A
// typo is found here, before anything is sent.
func parseCode(s string) (code, error) {
	text := foldCode.Replace(strings.ToUpper(s))
	if len(text) != codeLen || strings.Trim(strings.ToLower(text), keystore.Alphabet) != "" {
		return code{}, hub.Invalid("code", "must look like SSSC-XXXX-XXXX-XXXX")
	}
	c := code{slot: text[:slotLen], secret: text[slotLen+1:]}
	if check := keystore.CheckChar(c.slot + c.secret); strings.ToLower(text)[slotLen] != check {
		return code{}, hub.Invalid("code", "has a typo: the check character does not fit; nothing was sent")
	}
	return c, nil
}

// secretOf derives an invite's secret, so that it is stored nowhere.
func secretOf(tokenKey []byte, id hub.InviteID) string {
	b := keystore.Derive(tokenKey, "invite", string(id), 0, 8)
	return strings.ToUpper(keystore.EncodeBase32(b)[:secretLen])
}

func newSlot() string {
	b := make([]byte, 2)
	rand.Read(b) // never fails
	return strings.ToUpper(keystore.EncodeBase32(b)[:slotLen])
}
