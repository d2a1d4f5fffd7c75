package relay

import (
	"context"
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/relay/wire"
)

// greet exchanges and judges the hellos. No item crosses before it.
func (l *link) greet(ctx context.Context) (wire.Hello, error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Hello)
	defer cancel()
	feed, err := l.cfg.Source.Feed(ctx, l.peer, l.recv)
	if err != nil {
		return wire.Hello{}, staged(StageHello, err)
	}
	if l.log, err = l.cfg.Source.Log(ctx, l.peer, l.send); err != nil {
		return wire.Hello{}, staged(StageHello, err)
	}
	store, epoch := l.cfg.Source.Store()
	ours := wire.Hello{StoreID: store, Epoch: epoch, Nonce: l.cfg.Nonce,
		Contract: hub.ContractFederation, Feed: feed, Credit: l.cfg.Window, Features: l.cfg.features(),
		Begin: l.log.Begin, End: l.log.End, Swept: l.log.Swept, Acked: l.log.Items}
	if err := l.write(ctx, ours); err != nil {
		return wire.Hello{}, staged(StageHello, err)
	}
	theirs, err := l.readHello(ctx)
	if err != nil {
		return theirs, staged(StageHello, err)
	}
	l.presence = agreed(hub.FeaturePresence, ours, theirs)
	return theirs, l.agree(ctx, theirs)
}

func (l *link) readHello(ctx context.Context) (wire.Hello, error) {
	f, err := l.receive(ctx)
	if err != nil {
		return wire.Hello{}, err
	}
	switch f := f.(type) {
	case wire.Hello:
		return f, nil
	case wire.Goodbye:
		return wire.Hello{}, &PeerGone{f.Code, f.Text}
	}
	return wire.Hello{}, protocolf("%T before the hello", f)
}

func (l *link) agree(ctx context.Context, theirs wire.Hello) error {
	switch {
	case theirs.Contract != hub.ContractFederation:
		return staged(StageContract, hub.Errorf(hub.CodeCapabilityUnsupported,
			"the peer speaks %q, this hub %s", theirs.Contract, hub.ContractFederation))
	case theirs.StoreID == "" || theirs.Nonce == "":
		return staged(StageHello, protocolf("a hello without store or nonce"))
	case theirs.Credit < wire.MaxFrame:
		return staged(StageHello, protocolf("a window of %d bytes holds no frame", theirs.Credit))
	}
	if l.cfg.Check != nil {
		if err := l.cfg.Check(ctx, l.peer, theirs); err != nil {
			return staged(StageHello, err)
		}
	}
	if err := l.begin(ctx, theirs); err != nil {
		return staged(StageHello, err)
	}
	l.lacks = l.log.Lacks(theirs.Feed)
	l.out.addCredit(theirs.Credit)
	for _, w := range theirs.Next {
		if err := l.wanted(w); err != nil {
			return staged(StageHello, err)
		}
	}
	return nil
}

// begin has the importer judge the peer's log, so that nothing is taken from one
// that is older than what was imported of it.
func (l *link) begin(ctx context.Context, theirs wire.Hello) error {
	feed, acks, err := l.cfg.Importer.Begin(ctx, l.peer, l.recv, hub.LogState{
		StoreID: theirs.StoreID, Epoch: theirs.Epoch, Begin: theirs.Begin, End: theirs.End, Items: theirs.Acked, Swept: theirs.Swept,
	})
	if err != nil {
		return fmt.Errorf("judging the peer's log: %w", err)
	}
	l.feed = hub.FeedState{StoreID: theirs.StoreID, Epoch: theirs.Epoch, Position: feed.Position}
	l.out.add(acks, nil, 0)
	return nil
}

func checkDispatch(d hub.DispatchID) error {
	if !hub.ValidID(hub.PrefixDispatch, string(d)) {
		return protocolf("not a Dispatch: %s", clip(string(d)))
	}
	return nil
}

func clip(s string) string { return fmt.Sprintf("%.64q", s) }
