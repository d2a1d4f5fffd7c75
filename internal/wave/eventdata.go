package wave

import (
	"encoding/json"

	"github.com/wavehub/wavehub/internal/hub"
)

// The data of events.
type (
	dispatched struct {
		Worker   string         `json:"worker"`
		Dispatch hub.DispatchID `json:"dispatch_id"`
		Server   string         `json:"server"`
		Attempt  int            `json:"attempt"`
	}
	completed struct {
		Result   string          `json:"result"`
		Data     json.RawMessage `json:"result_data,omitempty"`
		Dispatch hub.DispatchID  `json:"dispatch_id,omitempty"`
	}
	failure struct {
		Error    string         `json:"error"`
		Output   string         `json:"output,omitempty"`
		Dispatch hub.DispatchID `json:"dispatch_id,omitempty"`
	}
	cancellation struct {
		Reason   string         `json:"reason"`
		Dispatch hub.DispatchID `json:"dispatch_id,omitempty"`
	}
	warning struct {
		Code     string         `json:"code"`
		Detail   string         `json:"detail"`
		Dispatch hub.DispatchID `json:"dispatch_id,omitempty"`
	}
	verified struct {
		By       string            `json:"verified_by"`
		Result   string            `json:"verify_result"`
		Dispatch hub.DispatchID    `json:"dispatch_id"`
		Details  *hub.Verification `json:"verify,omitempty"`
	}
)
