package work

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

// StartInput is the argument of Start.
type StartInput struct {
	Task    hub.TaskID     `json:"task_id"`
	On      string         `json:"on"` // name or id of a peer; "": this hub
	Spec    hub.StartSpec  `json:"spec"`
	RetryOf hub.DispatchID `json:"retry_of"`
	Quiet   bool           `json:"quiet"`
	NoWait  bool           `json:"no_wait"`
	// Admit may refuse the start in the transaction that would begin it; nil admits.
	Admit func(store.Tx) error `json:"-"`

	fresh *newTask // what StartNew creates for Task
	by    hub.Principal
}

// Start starts a worker for the Task and returns when it is ready, failed, or
// unknown. The start goes on when the caller goes away.
func (s *Service) Start(ctx context.Context, r receipt.Request, in StartInput) (hub.Receipt, error) {
	if err := in.Spec.Check(in.On != ""); err != nil {
		return hub.Receipt{}, err
	}
	return s.start(ctx, r, in)
}

func (s *Service) start(ctx context.Context, r receipt.Request, in StartInput) (hub.Receipt, error) {
	if in.by = r.Principal; in.On != "" && in.by.Kind == hub.DispatchCap {
		return hub.Receipt{}, errOwnHubOnly
	}
	op := s.localStart(r, in)
	if in.On != "" {
		op = s.remoteStart(r, in)
	}
	op.Class, op.Unknown, op.Open = store.New, openStart, left
	if in.NoWait {
		op.Perform = s.later(op.Perform)
	}
	return receipt.Long(ctx, s.Gate, r, op)
}

// admitted is begin for a start that is still wanted.
func (in StartInput) admitted(begin func(store.Tx) (hub.Receipt, error)) func(store.Tx) (hub.Receipt, error) {
	return func(tx store.Tx) (hub.Receipt, error) {
		if in.Admit != nil {
			if err := in.Admit(tx); err != nil {
				return hub.Receipt{}, err
			}
		}
		return begin(tx)
	}
}

// openStart reports whether a start's answer may still change.
func openStart(r hub.Receipt) bool { return r.State == hub.StartOutcomeUnknown }

// left is the answer to a caller whose start goes on without it.
func left(begun hub.Receipt) hub.Receipt {
	begun.State, begun.FailedStage = hub.StartOutcomeUnknown, begun.Stage
	begun.LastError = "the start goes on and its end was not waited for"
	begun.NextCommands = inspectCommands(begun.Dispatch)
	return begun
}

// later answers with the receipt as it was begun and performs on its own.
func (s *Service) later(perform func(context.Context, hub.Receipt) (hub.Receipt, error)) func(context.Context, hub.Receipt) (hub.Receipt, error) {
	return func(_ context.Context, begun hub.Receipt) (hub.Receipt, error) {
		ok := s.Spawn(func(ctx context.Context) {
			if _, err := perform(ctx, begun); err != nil {
				s.Log.Error("starting a worker", "dispatch_id", begun.Dispatch, "error", err)
			}
		})
		if !ok {
			return begun, hub.Errorf(hub.CodeHubDraining, "the hub is stopping")
		}
		return begun, nil
	}
}

func (s *Service) localStart(r receipt.Request, in StartInput) receipt.Operation[hub.Receipt] {
	var p place
	var what brief
	return receipt.Operation[hub.Receipt]{
		Prepare: func(ctx context.Context) (err error) {
			if what, err = s.startableNow(ctx, in); err != nil {
				return err
			}
			if p, err = s.resolve(ctx, in.Spec, nil); err != nil {
				return advised(in.by, err)
			}
			if p.resume, err = s.resumable(ctx, "", in.RetryOf, in.Spec); err != nil {
				return err
			}
			return s.Store.View(ctx, func(rx store.Rx) error {
				_, err := s.charge(rx, in.by, p)
				return err
			})
		},
		Begin: in.admitted(func(tx store.Tx) (hub.Receipt, error) {
			if err := s.roomHere(tx, in.Spec.Agent); err != nil {
				return hub.Receipt{}, err
			}
			return s.beginLocal(tx, r, in, p)
		}),
		Perform: func(ctx context.Context, begun hub.Receipt) (hub.Receipt, error) {
			return s.performOwn(ctx, "", begun, p, what, !in.NoWait)
		},
		Observe: s.observeStart,
	}
}

// startableNow refuses early what Begin would refuse, before a probe or a look
// at folders; Begin decides. It returns what the worker is handed.
func (s *Service) startableNow(ctx context.Context, in StartInput) (what brief, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		t, err := in.task(rx)
		if err := cmp.Or(err, run.Operates(rx, in.by, t.Run)); err != nil {
			return err
		}
		if err := dispatch.Startable(rx, t, in.RetryOf); err != nil {
			return err
		}
		what, err = s.briefOf(rx, t)
		return err
	})
	return what, err
}

func (s *Service) beginLocal(tx store.Tx, r receipt.Request, in StartInput, p place) (hub.Receipt, error) {
	t, err := in.create(tx)
	if err != nil {
		return hub.Receipt{}, err
	}
	of, err := tx.Run(t.Run)
	if err := cmp.Or(err, run.Operates(tx, r.Principal, t.Run)); err != nil {
		return hub.Receipt{}, err
	}
	start := hub.PeerStart{Dispatch: hub.NewDispatchID(), Task: t.ID, Run: t.Run, Spec: in.Spec, Depth: of.Depth, Checks: t.Checks()}
	a := s.newAttachment(p, start, "", r.Key)
	if a.Sponsor, err = s.charge(tx, r.Principal, p); err != nil {
		return hub.Receipt{}, err
	}
	if err := p.reserve(tx, "", start.Dispatch); err != nil {
		return hub.Receipt{}, err
	}
	a.Receipt.Defaults = in.defaults(a.Receipt.Defaults)
	_, err = dispatch.Begin(tx, dispatch.Attempt{
		ID: start.Dispatch, Task: t.ID, RetryOf: in.RetryOf, Server: hub.Server{Name: s.Name},
		Request: r.Key, Quiet: in.Quiet, Receipt: a.Receipt,
	})
	if err != nil {
		return hub.Receipt{}, err
	}
	if err := claim(tx, p, a); err != nil {
		return hub.Receipt{}, err
	}
	_, sum := s.Authority.Capability("", start.Dispatch)
	return a.Receipt, dispatch.Attach(tx, a, sum)
}

// roomTx is what a start's limits are read from.
type roomTx interface {
	store.AttachmentReader
	store.PoolReader
	Now() hub.Micros
}

// roomHere refuses a start over this hub's limits, and one of an agent whose
// provider is known to refuse work.
func (s *Service) roomHere(tx roomTx, agent string) error {
	if err := dispatch.PoolOpen(tx, agent, tx.Now()); err != nil {
		return err
	}
	if err := roomUnder(tx, s.Workers, "this hub", func(a hub.Attachment) bool { return !a.Attached() }); err != nil {
		return err
	}
	return roomUnder(tx, s.PerAgent[agent], "this hub, of "+agent+",", func(a hub.Attachment) bool { return a.Spec.Agent == agent })
}

// roomFor refuses a peer's start over this hub's limits or the peer's grant.
func (s *Service) roomFor(tx roomTx, peer hub.Peer, agent string) error {
	if err := s.roomHere(tx, agent); err != nil {
		return err
	}
	return roomGranted(tx, peer)
}

// roomGranted refuses a worker over the peer's grant, which its own workers and
// those of their child Runs share.
func roomGranted(tx store.AttachmentReader, peer hub.Peer) error {
	return roomUnder(tx, peer.Grants.MaxWorkers, "the grant of this peer", func(a hub.Attachment) bool {
		return a.Home == peer.ID || a.Sponsor == peer.ID
	})
}

// roomUnder counts live workers against a limit; 0 is none.
func roomUnder(tx store.AttachmentReader, limit int, who string, counts func(hub.Attachment) bool) error {
	if limit == 0 {
		return nil
	}
	open, err := tx.OpenAttachments()
	if err != nil {
		return err
	}
	n := 0
	for _, a := range open {
		if !a.ExitDone && counts(a) {
			n++
		}
	}
	if n < limit {
		return nil
	}
	e := hub.Errorf(hub.CodeWorkerLimit, "%d workers run and %s allows %d", n, who, limit)
	e.AfterMS = 5000
	return e
}

// performOwn composes a worker on this hub, within the start's own budget.
// answered says that a call returns the outcome.
func (s *Service) performOwn(ctx context.Context, home hub.PeerID, begun hub.Receipt, p place, what brief, answered bool) (hub.Receipt, error) {
	a, err := s.attachment(ctx, home, begun.Dispatch)
	if err != nil {
		return begun, err
	}
	r, ev := s.compose(ctx, a, p, what)
	r.Mutation = begun.Mutation
	out, err := s.endOwn(ctx, home, r, ev, answered)
	if ev == hub.EvStartLost {
		s.pursue(a.Home, a.Dispatch)
	}
	return out, err
}

func (s *Service) attachment(ctx context.Context, home hub.PeerID, id hub.DispatchID) (a hub.Attachment, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		var ok bool
		if a, ok, err = rx.Attachment(home, id); err != nil {
			return err
		}
		return missing(id, ok)
	})
	return a, err
}

// observeStart answers a repeated start whose outcome is open.
func (s *Service) observeStart(ctx context.Context, begun hub.Receipt) (hub.Receipt, error) {
	shown, err := s.Show(ctx, begun.Dispatch)
	if err != nil {
		return begun, err
	}
	r := shown.Receipt
	r.Mutation, r.DispatchState = begun.Mutation, shown.Dispatch.State
	return r, nil
}

func (s *Service) remoteStart(r receipt.Request, in StartInput) receipt.Operation[hub.Receipt] {
	var peer hub.Peer
	var body hub.PeerStart
	return receipt.Operation[hub.Receipt]{
		Prepare: func(ctx context.Context) (err error) {
			if _, err = s.startableNow(ctx, in); err != nil {
				return err
			}
			peer, err = s.probe(ctx, in, &body)
			return err
		},
		Begin: in.admitted(func(tx store.Tx) (hub.Receipt, error) { return s.beginRemote(tx, r, in, peer, body) }),
		Perform: func(ctx context.Context, begun hub.Receipt) (hub.Receipt, error) {
			return s.performRemote(ctx, begun, sending{first: true, answered: !in.NoWait})
		},
		Observe: s.observeRemote,
	}
}

// probe finds the peer, completes the request and has the owner validate it.
func (s *Service) probe(ctx context.Context, in StartInput, body *hub.PeerStart) (hub.Peer, error) {
	var peer hub.Peer
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		if peer, err = peerNamed(rx, in.On); err != nil {
			return err
		}
		t, err := in.task(rx)
		if err != nil {
			return err
		}
		what, err := s.briefOf(rx, t)
		if err != nil {
			return err
		}
		of, err := rx.Run(t.Run)
		*body = hub.PeerStart{
			Dispatch: hub.NewDispatchID(), Task: t.ID, Run: t.Run, Title: t.Title, Prompt: what.text, Background: what.background, Spec: in.Spec, RetryOf: in.RetryOf,
			StoreID: peer.StoreID, Epoch: peer.StoreEpoch, Depth: of.Depth, Contract: hub.ContractFederation, Checks: t.Checks(),
		}
		if body.Features = body.Needs(); err == nil {
			body.Attempt, err = attempts(rx, t.ID)
		}
		return err
	})
	if err != nil {
		return peer, err
	}
	body.Spec.CurrentDir = "" // a directory of this hub means nothing there
	return peer, s.validateThere(ctx, peer, *body)
}

// validateThere has the owner of a start that is to come validate it.
func (s *Service) validateThere(ctx context.Context, peer hub.Peer, body hub.PeerStart) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_, err = s.Remote.Probe(ctx, peer.ID, raw)
	if e, ok := errors.AsType[*hub.Error](err); ok && e.Code == hub.CodeRemoteRuntimeUnavailable {
		err = e.WithNext("wavehub", "peer", "show", peer.Name)
	}
	return err
}

func peerNamed(rx store.PeerReader, on string) (hub.Peer, error) {
	find := func() (hub.Peer, error) {
		if hub.ValidID(hub.PrefixPeer, on) {
			return rx.Peer(hub.PeerID(on))
		}
		return rx.PeerByName(on)
	}
	p, err := find()
	if err != nil {
		return p, err
	}
	return p, Serves(p)
}

// Serves refuses a peer that does not work for this hub.
func Serves(p hub.Peer) error {
	switch {
	case p.State != hub.PeerActive:
		return hub.Errorf(hub.CodePeerRevoked, "%s is %s", p.Name, p.State)
	case !p.Role.CanBe(hub.RoleWorker):
		return hub.Errorf(hub.CodeServerRequired, "%s is paired as home only; it runs no workers for this hub", p.Name)
	}
	return nil
}

func (s *Service) beginRemote(tx store.Tx, r receipt.Request, in StartInput, peer hub.Peer, body hub.PeerStart) (hub.Receipt, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return hub.Receipt{}, err
	}
	if err := samePeer(tx, peer, body); err != nil {
		return hub.Receipt{}, err
	}
	if _, err := in.create(tx); err != nil {
		return hub.Receipt{}, err
	}
	server := hub.Server{PeerID: peer.ID, Name: peer.Name}
	begun := hub.Receipt{
		Run: body.Run, Task: body.Task, Dispatch: body.Dispatch, State: hub.StartStarting, DispatchState: hub.Starting,
		Stage: hub.StageAttachRequested, Server: server, TimeoutMS: startTimeout(in.Spec).Milliseconds(), Setup: notApplicable,
		Worker:  in.Spec.Worker,
		Effects: []hub.Resource{}, Residuals: []hub.Resource{}, Defaults: in.defaults(nil), NextCommands: [][]string{}, Warnings: append(selfGraded(body), untold(peer, body)...),
	}
	_, err = dispatch.Begin(tx, dispatch.Attempt{
		ID: body.Dispatch, Task: body.Task, RetryOf: in.RetryOf, Server: server,
		Pin:     pinOf(peer, body),
		Request: r.Key, Quiet: in.Quiet, Receipt: begun, PeerRequest: raw,
	})
	return begun, err
}

// pinOf is what a remote start is bound to.
func pinOf(p hub.Peer, body hub.PeerStart) hub.Pin {
	return hub.Pin{
		Lineage: p.Lineage, StoreID: p.StoreID, Epoch: p.StoreEpoch,
		Contract: body.Contract, Features: strings.Join(body.Features, ","),
	}
}

// offeredTo refuses what needs what the peer does not offer now. A start needs
// its features, a stop the contract alone.
func offeredTo(p hub.Peer, pin hub.Pin, start bool) error {
	var features []string
	if start && pin.Features != "" {
		features = strings.Split(pin.Features, ",")
	}
	return p.Offer().Check(p.Name, cmp.Or(pin.Contract, hub.ContractFederation), features)
}

// samePeer refuses a peer that is not, or not in the same store, what it was
// when it was probed, or does not offer what the start needs. Its key may have
// been rotated: its record follows proofs only.
func samePeer(tx store.PeerReader, probed hub.Peer, body hub.PeerStart) error {
	now, err := tx.Peer(probed.ID)
	switch {
	case err != nil:
		return err
	case now.State != hub.PeerActive:
		return hub.Errorf(hub.CodePeerRevoked, "%s is %s", now.Name, now.State)
	case now.Lineage != probed.Lineage:
		return hub.Errorf(hub.CodePeerChanged, "%s has another key than when it was asked", now.Name)
	case now.StoreID != probed.StoreID || now.StoreEpoch != probed.StoreEpoch:
		return hub.Errorf(hub.CodePeerStoreChanged, "%s has another store than when it was asked", now.Name)
	}
	return offeredTo(now, pinOf(now, body), true)
}

func startTimeout(spec hub.StartSpec) time.Duration {
	if spec.TimeoutMS == 0 {
		return hub.DefaultStartTimeout
	}
	return time.Duration(spec.TimeoutMS) * time.Millisecond
}

// answerMargin is what a peer's answer may take beyond the start's own budget.
const answerMargin = 10 * time.Second

// answerTime is how long the owner's answer to a start is waited for. A setup that
// holds the start has a budget of its own.
func answerTime(begun hub.Receipt, body []byte) (time.Duration, error) {
	var sent hub.PeerStart
	err := json.Unmarshal(body, &sent)
	budget := time.Duration(begun.TimeoutMS) * time.Millisecond
	if sent.Spec.New() {
		budget *= 2
	}
	return budget + answerMargin, err
}

// sending says how a remote start is sent. Only of the first sending does a
// refusal prove that nothing runs: an earlier one may have been accepted.
type sending struct{ first, answered bool }

// performRemote sends the recorded request and applies what its owner answers.
func (s *Service) performRemote(ctx context.Context, begun hub.Receipt, how sending) (hub.Receipt, error) {
	var d hub.Dispatch
	var body []byte
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		if d, err = rx.Dispatch(begun.Dispatch); err != nil {
			return err
		}
		body, err = rx.PeerRequest(begun.Dispatch)
		return err
	})
	if err != nil {
		return begun, err
	}
	limit, err := answerTime(begun, body)
	if err != nil {
		return begun, err
	}
	budget, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var got hub.Receipt
	if err = dispatch.Routed(ctx, s.Store, d); err == nil {
		got, err = s.Remote.Start(budget, d.Server.PeerID, d.Request, body)
	}
	if err == nil && !about(got, begun) {
		err = hub.Errorf(hub.CodeResourceServerMismatch, "the owner answered with the receipt of another Dispatch")
		how.first = false
	}
	return s.endRemote(ctx, d, begun, got, err, how)
}

// about reports whether an owner's receipt is of the start that was begun.
func about(got, begun hub.Receipt) bool {
	return got.Dispatch == begun.Dispatch && got.Task == begun.Task && got.Run == begun.Run
}

// endRemote records the owner's answer, or what its absence proves.
func (s *Service) endRemote(ctx context.Context, d hub.Dispatch, begun, got hub.Receipt, err error, how sending) (hub.Receipt, error) {
	r, ev, code := begun, hub.EvStartFailed, hub.Code("")
	switch {
	case err == nil && got.Queued():
		return s.queued(ctx, d, begun, got)
	case err == nil:
		r, ev = ownersReceipt(got, begun, d), eventOf(got)
	case s.mayHaveStarted(err, how):
		ev = hub.EvStartLost
		r.State, r.FailedStage, r.LastError = hub.StartOutcomeUnknown, r.Stage, err.Error()
		r.NextCommands = inspectCommands(d.ID)
	default:
		r.State, r.FailedStage, r.LastError = hub.StartFailed, r.Stage, err.Error()
		r.NextCommands = [][]string{{"wavehub", "worker", "show", string(d.ID)}}
		code = refusal(err)
	}
	r.Mutation = begun.Mutation
	out := r
	uerr := s.Store.Update(ctx, store.Settle, func(tx store.Tx) (err error) {
		out, err = dispatch.EndStart(tx, d.ID, dispatch.Start{Event: ev, Reason: cmp.Or(string(code), startReason(r)), Receipt: r, Answered: how.answered})
		return err
	})
	if ev == hub.EvStartLost {
		s.pursue("", d.ID)
	}
	return out, uerr
}

// refusal is the code of a refusal, "" for any other error.
func refusal(err error) hub.Code {
	if e, ok := errors.AsType[*hub.Error](err); ok {
		return e.Code
	}
	return ""
}

// mayHaveStarted reports whether an error of a sending leaves open whether a
// worker runs. After the first sending only the owner's tombstone proves that
// none does.
func (s *Service) mayHaveStarted(err error, how sending) bool {
	if !how.first {
		return !hub.IsCode(err, hub.CodeDispatchInactive)
	}
	switch hub.CodeOf(err) { // an owner that failed itself may have begun before
	case hub.CodeOutcomeUnknown, hub.CodeStorageFull, hub.CodeHubDraining:
		return true
	case hub.CodeInternal:
		_, coded := errors.AsType[*hub.Error](err)
		return coded || s.AnswerLost(err)
	}
	return s.AnswerLost(err)
}

// ownersReceipt is an owner's receipt as this home shows it: its lists are
// complete, its commands this hub's own. What this home chose when it began the
// start comes before what the owner chose, and who it was given to is this home's
// word: by it a report is judged.
func ownersReceipt(got, begun hub.Receipt, d hub.Dispatch) hub.Receipt {
	got.Server, got.Worker = d.Server, begun.Worker
	got.Effects, got.Residuals = onServer(got.Effects, d.Server.Name), onServer(got.Residuals, d.Server.Name)
	got.Defaults = chosen(begun.Defaults, got.Defaults)
	got.Warnings = warnedOf(begun.Warnings, got.Warnings)
	got.NextCommands = [][]string{}
	if got.State != hub.StartReady {
		got.NextCommands = inspectCommands(d.ID)
	}
	return got
}

// warnedOf are the home's warnings and those of the owner, each once.
func warnedOf(home, owner []string) []string {
	out := append([]string{}, home...)
	for _, w := range owner {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

func onServer(rs []hub.Resource, name string) []hub.Resource {
	out := make([]hub.Resource, 0, len(rs))
	for _, r := range rs {
		r.Server = name
		out = append(out, r)
	}
	return out
}

func eventOf(r hub.Receipt) hub.EventKind {
	switch r.State {
	case hub.StartReady:
		return hub.EvStarted
	case hub.StartFailed:
		return hub.EvStartFailed
	}
	return hub.EvStartLost
}

// observeRemote answers a repeated remote start. While the request may not have
// arrived it is sent again, the same bytes to the same store under the same id;
// from any later stage on the owner is only asked. Where the pinned hub or store
// is not paired any more, nothing is.
func (s *Service) observeRemote(ctx context.Context, begun hub.Receipt) (hub.Receipt, error) {
	var d hub.Dispatch
	var lacks error
	again := false
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		if d, err = rx.Dispatch(begun.Dispatch); err != nil {
			return err
		}
		if d.State != hub.StartUnknown && d.State != hub.Starting || begun.Stage != hub.StageAttachRequested {
			return nil
		}
		if err := dispatch.Reachable(rx, d); err != nil {
			return err
		}
		peer, err := rx.Peer(d.Server.PeerID)
		lacks = offeredTo(peer, d.Pin, true)
		again = peer.StoreEpoch == d.Pin.Epoch && lacks == nil
		return err
	})
	switch {
	case err != nil:
		return begun, err
	case again:
		return s.performRemote(ctx, begun, sending{answered: true})
	}
	out, err := s.observeStart(ctx, begun)
	if err == nil && lacks != nil && openStart(out) {
		out.LastError = lacks.Error()
	}
	return out, err
}
