package dispatch

import (
	"encoding/json"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// milestone is the data of an event of that type, and what the payload of a status
// says of it.
type milestone struct {
	Name     string         `json:"name"`
	Dispatch hub.DispatchID `json:"dispatch_id"`
}

// takeIn appends a worker's message to its Run's mailbox, at home and in time, and
// to the log of events the milestone that it tells. It is called once for each
// message: what is known by its id, or late, does not come here.
func takeIn(tx store.Tx, task hub.TaskID, d hub.DispatchID, m hub.Message) (seq int64, err error) {
	if seq, err = tx.Append(m); err != nil {
		return 0, err
	}
	name := milestoneOf(m)
	if name == "" {
		return seq, nil
	}
	data, err := encode(milestone{name, d})
	if err != nil {
		return 0, err
	}
	_, err = tx.AppendEvent(hub.WaveEvent{Run: m.Run, Type: hub.EventMilestone, Task: task, Data: data})
	return seq, err
}

// milestoneOf is the name of the milestone that a status tells, "" for none: a
// payload is free, and what has another shape tells none.
func milestoneOf(m hub.Message) string {
	var said struct {
		Milestone string `json:"milestone"`
	}
	if m.Type != hub.TypeStatus || json.Unmarshal(m.Payload, &said) != nil {
		return ""
	}
	return hub.Cut(said.Milestone, hub.MaxSubjectBytes)
}
