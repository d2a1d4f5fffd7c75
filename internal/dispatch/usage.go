package dispatch

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Used commits what a Dispatch's own worker says that it has used so far. Nothing
// is written for a word that changes nothing.
func Used(tx store.Tx, p hub.Principal, id hub.DispatchID, usage json.RawMessage) error {
	a, err := Own(tx, p, id)
	if err != nil {
		return err
	}
	return noteUsage(tx, a, usage)
}

// usedBy commits the same for those of an attached worker's Dispatches that it
// works on and that have not ended.
func usedBy(tx store.Tx, w hub.WorkerID, ids []hub.DispatchID, usage json.RawMessage) error {
	for _, id := range ids {
		a, ok, err := tx.WorkerAttachment(w, id)
		if err == nil && ok && !a.Capability.Ended() {
			err = noteUsage(tx, a, usage)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func noteUsage(tx store.Tx, a hub.Attachment, usage json.RawMessage) error {
	if len(usage) == 0 || string(usage) == a.Agent.Said {
		return nil
	}
	a.Agent.Said = string(usage)
	return tx.SaveAttachment(a)
}

// Metered commits what the owner of a Dispatch has counted that its agent used so far,
// in the agent's own record. Nothing is written where that changes nothing, for a
// Dispatch whose end is on record, and for a record that says nothing.
func Metered(tx store.Tx, home hub.PeerID, id hub.DispatchID, used hub.Usage) error {
	a, ok, err := tx.Attachment(home, id)
	if err != nil || !ok || a.ExitDone || used.Source == hub.UsageUnknown || a.Agent.Usage != nil && reflect.DeepEqual(*a.Agent.Usage, used) {
		return err
	}
	a.Agent.Usage = &used
	return tx.SaveAttachment(a)
}

// withUsage keeps on the attachment what a report says that the worker used, and
// adds to one that does not say it what is known of it.
func withUsage(a *hub.Attachment, r hub.Report) (hub.Report, error) {
	if len(r.Usage) > 0 {
		a.Agent.Said = string(r.Usage)
		return r, nil
	}
	usage, err := a.Used()
	r.Usage = usage
	return r, err
}

// usedHere is what the worker of a Dispatch of this hub's own used, nil for another
// hub's worker.
func usedHere(tx store.AttachmentReader, d hub.Dispatch) (json.RawMessage, error) {
	if !d.Local() {
		return nil, nil
	}
	a, ok, err := tx.Attachment("", d.ID)
	if err != nil || !ok {
		return nil, err
	}
	return a.Used()
}

// Reckon replaces what a final Dispatch used by what its owner knew last, and
// returns the Dispatch. A worker reports before its last words are counted. nil,
// and what is no usage, changes nothing.
func Reckon(tx store.Tx, d hub.Dispatch, usage json.RawMessage) (hub.Dispatch, error) {
	if usage = hub.CleanUsage(usage); usage == nil || !d.State.Final() || bytes.Equal(usage, d.Usage) {
		return d, nil
	}
	nd := d
	nd.Usage = usage
	if _, err := tx.SwapDispatch(d, nd); err != nil {
		return d, err
	}
	nd.Version = d.Version + 1
	return nd, nil
}
