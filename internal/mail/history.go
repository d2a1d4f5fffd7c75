package mail

import (
	"context"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// HistoryInput asks for one page of a mailbox, oldest first.
type HistoryInput struct {
	Box   hub.Box
	Peek  bool // only what no ack has consumed and a check would deliver
	Types []hub.MessageType
	After int64
	Limit int
}

// History is one page; Next is the After of the page behind it, 0 at the end.
type History struct {
	Run      hub.RunID
	Messages []hub.Message
	Next     int64
}

// History reads; it never consumes and never disturbs a waiter.
func (s *Service) History(ctx context.Context, p hub.Principal, in HistoryInput) (History, error) {
	if err := validTypes(in.Types); err != nil {
		return History{}, err
	}
	var h History
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		if h.Run, err = s.Access.Read(rx, p, in.Box); err != nil {
			return err
		}
		h.Messages, h.Next, err = rx.History(in.Box, store.HistoryFilter{
			After: in.After, Limit: in.Limit, Types: in.Types, Unread: in.Peek,
		})
		return err
	})
	return h, err
}
