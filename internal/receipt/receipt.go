package receipt

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Request is one mutating call: who asks, under which id, for what. Payload is
// the canonical form of the decoded arguments.
type Request struct {
	Principal hub.Principal
	Key       hub.RequestID
	Op        string
	Payload   []byte
}

// New makes a Request; it mints a key when none is given. args is marshalled:
// struct fields keep their order and map keys are sorted, so equal arguments
// have equal payloads.
func New(p hub.Principal, key hub.RequestID, op string, args any) (Request, error) {
	if key == "" {
		key = hub.NewRequestID()
	}
	if !hub.ValidID(hub.PrefixRequest, string(key)) {
		return Request{}, hub.Invalid("Idempotency-Key", "must be req_ and 26 characters as the client mints them")
	}
	payload, err := json.Marshal(args)
	if err != nil {
		return Request{}, fmt.Errorf("encoding the arguments of %s: %w", op, err)
	}
	return Request{Principal: p, Key: key, Op: op, Payload: payload}, nil
}

func (r Request) sum() string {
	s := sha256.Sum256(r.Payload)
	return hex.EncodeToString(s[:])
}

// Answer is what a mutation returns. Subject is what it is about: the Run whose
// receipt it is, "" for what belongs to none, and the id of the object that it
// made or changed. Both are set when the answer is made; a replay needs neither.
type Answer interface {
	Mut() *hub.Mutation
	Subject() (run hub.RunID, object string)
}

// Result is an Answer as a value that is stored as JSON.
type Result[T any] interface {
	*T
	Answer
}

// Do runs a purely local mutation: fn and the receipt in one transaction. fn
// obeys the rules of store.Writer. Concurrent equal requests have one effect:
// the writer runs one transaction at a time.
func Do[T any, P Result[T]](ctx context.Context, w store.Writer, class store.Class, r Request, fn func(store.Tx) (T, error)) (T, error) {
	var out T
	err := w.Update(ctx, class, func(tx store.Tx) error {
		var err error
		out, err = InTx[T, P](tx, r, fn)
		return err
	})
	return out, err
}

// InTx is Do inside a transaction that the caller has: an operation composed
// of several, each with its own receipt.
func InTx[T any, P Result[T]](tx store.Tx, r Request, fn func(store.Tx) (T, error)) (T, error) {
	var none T
	rec, found, err := Find(tx, r)
	if err != nil {
		return none, err
	}
	if found {
		return replay[T, P](rec)
	}
	out, err := fn(tx)
	if err != nil {
		return none, err
	}
	P(&out).Mut().RequestID = r.Key
	rec, err = r.Record(tx.Now(), store.ReceiptDone, P(&out))
	if err != nil {
		return none, err
	}
	return out, tx.PutReceipt(rec)
}

type findTx interface {
	store.ReceiptReader
	authTx
	Now() hub.Micros
}

// Find authorizes r's principal and returns the record of this very request,
// if there is one; another request under the same key is request_mismatch, one
// whose answer is no longer kept request_expired.
func Find(tx findTx, r Request) (store.Receipt, bool, error) {
	if err := Authorize(tx, r.Principal); err != nil {
		return store.Receipt{}, false, err
	}
	rec, found, err := tx.Receipt(r.Principal.Space(), r.Key)
	if err != nil || !found {
		return rec, false, err
	}
	return rec, true, cmp.Or(r.match(rec), Expired(rec, tx.Now()))
}

// Record makes the row that says r was answered with out.
func (r Request) Record(now hub.Micros, state store.ReceiptState, out Answer) (store.Receipt, error) {
	body, err := json.Marshal(out)
	if err != nil {
		return store.Receipt{}, fmt.Errorf("recording %s: %w", r.Op, err)
	}
	run, object := out.Subject()
	return store.Receipt{
		Space: r.Principal.Space(), Key: r.Key, Principal: r.Principal.Name(),
		Generation: r.Principal.Consumer.Generation, Op: r.Op, Sum: r.sum(),
		State: state, Status: 200, Body: body, Object: object, Run: run, CreatedAt: now,
	}, nil
}

func replay[T any, P Result[T]](rec store.Receipt) (T, error) {
	var out T
	if err := json.Unmarshal(rec.Body, &out); err != nil {
		return out, fmt.Errorf("reading the receipt of %s: %w", rec.Key, err)
	}
	P(&out).Mut().Replayed = true
	return out, nil
}

// match refuses a record that is not of this very request.
func (r Request) match(rec store.Receipt) error {
	if rec.Principal == r.Principal.Name() && rec.Op == r.Op && rec.Sum == r.sum() {
		return nil
	}
	e := hub.Errorf(hub.CodeRequestMismatch, "%s was used for another request", r.Key)
	e.Hint = "repeat the original request unchanged, or leave the request id away to make a new one"
	return e
}

// Save replaces the record of r by a later state of it. When it was made stays,
// and what it is about if the later answer does not say it.
func Save(tx store.Receipts, rec store.Receipt) error {
	old, ok, err := tx.Receipt(rec.Space, rec.Key)
	if err != nil {
		return err
	}
	if ok {
		rec.CreatedAt = old.CreatedAt
		rec.Run, rec.Object = cmp.Or(rec.Run, old.Run), cmp.Or(rec.Object, old.Object)
	}
	return tx.SaveReceipt(rec)
}

// Close records out as the answer of a request whose caller may be gone, final
// or still open. It does nothing to a record that is done, or if there is none.
func Close(tx store.Receipts, space string, key hub.RequestID, out Answer, final bool) error {
	rec, ok, err := tx.Receipt(space, key)
	if err != nil || !ok || rec.State == store.ReceiptDone {
		return err
	}
	if rec.Body, err = json.Marshal(out); err != nil {
		return fmt.Errorf("recording %s: %w", rec.Op, err)
	}
	rec.State = store.ReceiptUnknown
	if final {
		rec.State = store.ReceiptDone
	}
	return tx.SaveReceipt(rec)
}

type authTx interface {
	store.CredentialReader
	Peer(hub.PeerID) (hub.Peer, error)
	PeerByFingerprint(fp string) (hub.Peer, bool, error)
}

// Authorize looks the principal's proof up again: a credential that is gone, a
// peer that is no longer active, or the capability of such a peer's Dispatch has no
// effect.
func Authorize(tx authTx, p hub.Principal) error {
	switch p.Kind {
	case hub.PeerKey:
		return authorizePeer(tx, p)
	case hub.Operator, hub.Reader, hub.DispatchCap, hub.AttachedWorker:
		return authorizeToken(tx, p)
	case hub.Engine, hub.SystemPrincipal:
		return nil
	}
	return hub.Errorf(hub.CodeInvalidToken, "unknown kind of principal")
}

func authorizePeer(tx authTx, p hub.Principal) error {
	peer, err := tx.Peer(hub.PeerID(p.Credential))
	if err != nil {
		return err
	}
	if !peer.State.Trusted() || peer.Lineage != p.ID {
		return hub.Errorf(hub.CodePeerRevoked, "%s is %s", peer.Name, peer.State)
	}
	return nil
}

func authorizeToken(tx authTx, p hub.Principal) error {
	c, ok, err := tx.Credential(p.Credential)
	if err != nil {
		return err
	}
	if !ok || string(c.Kind) != string(p.Kind) {
		return hub.Errorf(hub.CodeInvalidToken, "the credential is no longer valid")
	}
	return Paired(tx, c.Home)
}

// Paired refuses the worker of a home whose pairing has ended: nobody would hear
// it. home is as in hub.Attachment.
func Paired(tx interface {
	Peer(hub.PeerID) (hub.Peer, error)
}, home hub.PeerID) error {
	if home == "" {
		return nil
	}
	p, err := tx.Peer(home)
	if err != nil || p.State.Trusted() {
		return err
	}
	e := hub.Errorf(hub.CodePeerRevoked, "this Dispatch is of the hub %s, which is not paired with this one any more", p.Name)
	e.Hint = "end here: nothing that is said of the Dispatch is taken any more"
	return e
}
