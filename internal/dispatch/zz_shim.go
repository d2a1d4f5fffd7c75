package dispatch

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

func WaveNotice(tx store.Tx, run hub.RunID, kind, subject, body string, payload map[string]any) error {
	return postNotice(tx, run, notice{subject: subject, body: body, payload: payload})
}
