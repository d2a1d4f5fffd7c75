package work

import (
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// brief is what a worker is handed: its Task's text, and what that depends on.
type brief struct {
	text       string
	background *hub.Background
}

// briefOf is what a worker of the Task is handed, as the home has it now. What is
// told of a completed Task does not change any more but for its title.
func (s *Service) briefOf(rx store.Rx, t hub.Task) (brief, error) {
	b, err := s.backgroundOf(rx, t)
	return brief{t.Spec, b}, err
}

// homeTx is what a home's records are read from, in a snapshot or a transaction.
type homeTx interface {
	store.TaskReader
	store.DispatchReader
	store.AttachmentReader
	store.WaveReader
}

// backgroundOf reads those of the Task's dependencies that are completed.
func (s *Service) backgroundOf(rx homeTx, t hub.Task) (*hub.Background, error) {
	var told []hub.Dependency
	all := 0
	for _, id := range t.Dependencies {
		st, err := rx.TaskState(id)
		if err != nil {
			return nil, err
		}
		if st != hub.TaskCompleted {
			continue
		}
		if all++; all > hub.MaxTold {
			continue
		}
		d, err := s.dependency(rx, id)
		if err != nil {
			return nil, err
		}
		told = append(told, d)
	}
	return hub.NewBackground(told, all), nil
}

func (s *Service) dependency(rx homeTx, id hub.TaskID) (hub.Dependency, error) {
	t, err := rx.Task(id)
	if err != nil {
		return hub.Dependency{}, err
	}
	out := hub.Dependency{Task: id, Title: t.Title, Result: t.Result, HandoffPath: t.HandoffPath}
	if strings.HasPrefix(t.Origin, hub.WaveOrigin("")) {
		row, ok, err := rx.WaveRow(id)
		if err != nil {
			return out, err
		}
		if ok {
			out.Token = row.Entry.Token
		}
	}
	if t.Latest == "" {
		return out, nil // nobody worked at it: somebody said that it is completed
	}
	return s.ranAt(rx, t.Latest, out)
}

// ranAt adds where the Dispatch ran, and what it left there.
func (s *Service) ranAt(rx homeTx, id hub.DispatchID, out hub.Dependency) (hub.Dependency, error) {
	d, err := rx.Dispatch(id)
	if err != nil {
		return out, err
	}
	out.Hub = d.Server.Name
	if d.Findings != nil {
		out.Handoff = d.Findings.Handoff
	}
	if !d.Local() {
		r, err := rx.StartReceipt(id)
		out.Worktree = worktreeIn(r)
		return out, err
	}
	a, _, err := rx.Attachment("", id)
	out.Worktree, out.Folder = a.Worktree, a.Dir
	return out, err
}

// worktreeIn is the worktree that a start made or used, "" for none.
func worktreeIn(r hub.Receipt) hub.WorktreeID {
	i := slices.IndexFunc(r.Effects, func(e hub.Resource) bool { return e.Kind == "worktree" })
	if i < 0 {
		return ""
	}
	return hub.WorktreeID(r.Effects[i].ID)
}

// untold warns that an owner from before waves/1 tells its worker nothing of what
// the Task depends on.
func untold(p hub.Peer, in hub.PeerStart) []string {
	if in.Background == nil || p.Offer().Check(p.Name, hub.ContractFederation, []string{hub.FeatureWaves}) == nil {
		return nil
	}
	return []string{"background_untold: " + p.Name + " does not tell its worker of the Tasks that this one depends on; name in its text what it has to know"}
}
