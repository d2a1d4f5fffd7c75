package peer

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// InviteInput asks for an invite. As is the role this side takes, worker when
// empty; Grants apply when this side serves. TTL is 10 minutes when 0, at
// most a day.
type InviteInput struct {
	As     hub.Role
	Mutual bool
	Grants hub.Grants
	TTL    time.Duration
}

// InviteView shows an invite. Code is nil once it cannot be used any more;
// SecretState then says why: used or expired.
type InviteView struct {
	ID          hub.InviteID `json:"invite_id"`
	Code        *string      `json:"code"`
	SecretState string       `json:"secret_state,omitempty"`
	Addresses   []string     `json:"addresses"`
	Fingerprint string       `json:"fingerprint"`
	ExpiresAt   hub.Micros   `json:"expires_at"`
	Grants      hub.Grants   `json:"grants"`
}

// InviteResult is the answer to Invite. What is stored of it has no code.
type InviteResult struct {
	Invite   InviteView   `json:"invite"`
	Warnings []string     `json:"warnings,omitempty"`
	Mutation hub.Mutation `json:"mutation"`
}

// Mut returns the mutation, for the receipt gate.
func (r *InviteResult) Mut() *hub.Mutation { return &r.Mutation }

// Subject is the invite, which belongs to no Run.
func (r *InviteResult) Subject() (hub.RunID, string) { return "", string(r.Invite.ID) }

const (
	defaultTTL = 10 * time.Minute
	maxTTL     = 24 * time.Hour
)

var errSlotTaken = errors.New("the slot is in use")

// Invite opens an invite and returns its code; a replay derives the code again
// while it is open. The work on the code is done before the transaction.
func (s *Service) Invite(ctx context.Context, r receipt.Request, in InviteInput) (InviteResult, error) {
	inv, err := prepare(in)
	if err != nil {
		return InviteResult{}, err
	}
	var out InviteResult
	own := s.cfg.Identity.Now().Present()
	for range 8 {
		c := code{slot: newSlot(), secret: secretOf(s.cfg.TokenKey, inv.ID)}
		inv.Slot, inv.Key = c.slot, pairKey(s.cfg.Cost, c, own.SPKI())
		out, err = receipt.Do(ctx, s.cfg.Store, store.New, r, func(tx store.Tx) (InviteResult, error) {
			return s.open(tx, own, inv, in)
		})
		if !errors.Is(err, errSlotTaken) {
			break
		}
	}
	if err != nil {
		return InviteResult{}, err
	}
	return out, s.reveal(ctx, &out.Invite)
}

// Check is what Invite refuses before it does anything.
func (in InviteInput) Check() error {
	_, err := prepare(in)
	return err
}

func prepare(in InviteInput) (hub.Invite, error) {
	role := in.As
	switch {
	case role == "":
		role = hub.RoleWorker
	case role != hub.RoleWorker && role != hub.RoleHome:
		return hub.Invite{}, hub.Invalid("as", "must be home or worker")
	}
	if in.TTL != 0 && (in.TTL < time.Second || in.TTL > maxTTL) {
		return hub.Invite{}, hub.Invalid("ttl_ms", "must be between a second and a day")
	}
	if in.Mutual {
		role = hub.RoleMutual
	}
	grants, err := checkGrants(in.Grants, role.CanBe(hub.RoleWorker))
	return hub.Invite{ID: hub.NewInviteID(), Role: role, Grants: grants}, err
}

func (s *Service) open(tx store.Tx, own keystore.Key, inv hub.Invite, in InviteInput) (InviteResult, error) {
	var out InviteResult
	now := tx.Now()
	open, err := tx.OpenInvites(now)
	if err != nil {
		return out, err
	}
	open, inv.BoundTo = usable(open, s.cfg.Identity.Now()), own.Fingerprint
	if len(open) >= hub.MaxOpenInvites {
		e := hub.Errorf(hub.CodeRateLimited, "%d invites are open", len(open))
		e.AfterMS = max(1, int64(open[0].ExpiresAt-now)/1000)
		return out, e
	}
	for _, o := range open {
		if o.Slot == inv.Slot {
			return out, errSlotTaken
		}
	}
	ttl := in.TTL
	if ttl == 0 {
		ttl = defaultTTL
	}
	inv.ExpiresAt = now.Add(ttl)
	out.Invite = InviteView{
		ID: inv.ID, Addresses: orEmpty(s.cfg.Addresses()), Fingerprint: own.Fingerprint,
		ExpiresAt: inv.ExpiresAt, Grants: inv.Grants,
	}
	out.Warnings = loopbackWarning(out.Invite.Addresses)
	return out, tx.PutInvite(inv)
}

// reveal fills in the code of an invite that is open.
func (s *Service) reveal(ctx context.Context, v *InviteView) error {
	var inv hub.Invite
	err := s.cfg.Store.View(ctx, func(rx store.Rx) (err error) { inv, err = rx.Invite(v.ID); return err })
	switch {
	case err != nil:
		return err
	case inv.Used:
		v.SecretState = "used"
	case inv.ExpiresAt <= s.cfg.Now(), !bound(inv, s.cfg.Identity.Now()):
		v.SecretState = "expired"
	default:
		text := code{slot: inv.Slot, secret: secretOf(s.cfg.TokenKey, inv.ID)}.String()
		v.Code = &text
	}
	return nil
}

func loopbackWarning(addresses []string) []string {
	for _, a := range addresses {
		u, err := parseAddress(a)
		if err != nil {
			continue
		}
		ip := net.ParseIP(u.Hostname())
		if !strings.EqualFold(u.Hostname(), "localhost") && (ip == nil || !ip.IsLoopback()) {
			return nil
		}
	}
	return []string{"other hosts cannot reach this hub: its addresses are loopback only. Give it others and start it again: " +
		"wavehub config set listen 0.0.0.0:7443; wavehub config set advertise HOST:7443 " +
		"(once only: wavehub serve --listen 0.0.0.0:7443 --advertise HOST:7443)"}
}
