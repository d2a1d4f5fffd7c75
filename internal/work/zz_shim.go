package work

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

func (s *Service) BeginStop(tx store.Tx, r receipt.Request, in StopInput) (hub.StopResult, error) {
	panic("shim")
}
