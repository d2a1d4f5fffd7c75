package peer

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// The headers in which the side that asks for a hello says what it offers
// itself: names with commas between them.
const (
	contractsHeader = "Wavehub-Contracts"
	featuresHeader  = "Wavehub-Features"
)

// Limits of an offer.
const (
	maxOffered     = 64
	maxOfferedName = 64
)

func (s *Service) offer() hub.Offer {
	return hub.Offer{Contracts: []string{hub.ContractFederation}, Features: orEmpty(s.cfg.Features)}
}

// setOffer writes an offer into the headers of a request for the hello.
func setOffer(h http.Header, o hub.Offer) {
	h.Set(contractsHeader, strings.Join(o.Contracts, ","))
	h.Set(featuresHeader, strings.Join(o.Features, ","))
}

// offerOf reads an offer; no contracts: it makes none.
func offerOf(h http.Header) hub.Offer {
	return hub.Offer{Contracts: splitNames(h.Get(contractsHeader)), Features: splitNames(h.Get(featuresHeader))}
}

func splitNames(s string) []string {
	names := []string{}
	for name := range strings.SplitSeq(s, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// sawOffer notes what the peer offers now; effects look it up in their own
// transaction.
func (s *Service) sawOffer(ctx context.Context, p hub.Peer, o hub.Offer) error {
	if err := checkOffer(o); err != nil {
		return err
	}
	if slices.Equal(p.Contracts, o.Contracts) && slices.Equal(p.Features, o.Features) {
		return nil
	}
	return s.cfg.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		now, err := tx.Peer(p.ID)
		if err != nil {
			return err
		}
		now.Contracts, now.Features = o.Contracts, o.Features
		return tx.SavePeer(now)
	})
}

func checkOffer(o hub.Offer) error {
	for _, names := range [][]string{o.Contracts, o.Features} {
		if len(names) > maxOffered || slices.ContainsFunc(names, func(n string) bool { return n == "" || len(n) > maxOfferedName }) {
			return hub.Invalid("features", "an offer has at most %d names of at most %d characters", maxOffered, maxOfferedName)
		}
	}
	return nil
}
