package work

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// place is where a worker will work, resolved and checked without any effect.
type place struct {
	spec     hub.StartSpec
	here     string       // top folder of the caller's directory
	repo     hub.Repo     // of the worktree, if it has one
	worktree hub.Worktree // the existing one, or the id and name of the new one
	dir      string
	agent    string       // completion of the launcher
	resume   string       // session that the agent goes on with
	terminal hub.Terminal // the existing one that is used, none else
	silent   bool         // nothing is typed into it
	hook     hub.SetupHook
	setup    hub.SetupReport
	hooks    bool // the repository's own hooks run
	defaults []hub.Default
}

// resolve validates a start completely, so that a refusal has no effect.
// granted is nil for this hub's own starts, else the peer's grants.
func (s *Service) resolve(ctx context.Context, spec hub.StartSpec, granted *hub.Grants) (place, error) {
	p := place{spec: spec}
	var err error
	if spec.Terminal == "" {
		if p.agent, err = s.Agents.Completion(spec.Agent, spec.Mode); err != nil {
			return p, err
		}
	}
	if spec.New() {
		err = s.resolveNew(ctx, &p)
	} else {
		err = s.resolveExisting(ctx, &p)
	}
	if err != nil {
		return p, err
	}
	if granted != nil {
		err = withinGrant(p, *granted)
	}
	if err == nil && spec.Terminal != "" {
		err = s.resolveTerminal(ctx, &p)
	}
	return p, err
}

// resumable is the agent's own session of the Dispatch that is retried, at this
// hub; home is as in Attachment.
func (s *Service) resumable(ctx context.Context, home hub.PeerID, retryOf hub.DispatchID, spec hub.StartSpec) (string, error) {
	if !spec.ResumeSession {
		return "", nil
	}
	if retryOf == "" {
		return "", hub.Invalid("resume_session", "--resume-session needs --retry-of: it is the session of that Dispatch")
	}
	a, err := s.attachment(ctx, home, retryOf)
	if err != nil && !hub.IsCode(err, hub.CodeDispatchNotFound) {
		return "", err
	}
	if a.Agent.Session.ID == "" || a.Spec.Agent != spec.Agent {
		e := hub.Errorf(hub.CodeCapabilityUnsupported, "%s has no session here that %s could go on with", retryOf, spec.Agent)
		e.Hint = "start it without --resume-session; the agent begins anew"
		return "", e
	}
	return a.Agent.Session.ID, nil
}

func (s *Service) resolveNew(ctx context.Context, p *place) error {
	if err := s.Git.Check(p.spec.Name, p.spec.Base); err != nil {
		return err
	}
	if err := s.findRepo(ctx, p); err != nil {
		return err
	}
	if p.repo.Kind != hub.RepoGit {
		return plainFolder(p.repo)
	}
	p.worktree = hub.Worktree{ID: hub.NewWorktreeID(), Repo: p.repo.ID, Name: p.spec.Name, DisplayName: p.spec.DisplayName, Comment: p.spec.Comment}
	if err := s.findParent(ctx, p); err != nil {
		return err
	}
	p.worktree.Path, p.worktree.Branch = s.Git.Where(p.newWorktree())
	p.dir = p.worktree.Path
	if err := s.refuseTaken(ctx, p); err != nil {
		return err
	}
	if err := s.Git.Free(ctx, p.newWorktree()); err != nil {
		return err
	}
	return s.resolveSetup(ctx, p)
}

func (p place) newWorktree() NewWorktree {
	base := p.worktree.Base
	if base == "" {
		base = p.spec.Base
	}
	return NewWorktree{Repo: p.repo, ID: p.worktree.ID, Name: p.spec.Name, Base: base, Hooks: p.hooks}
}

// reserve commits that the new worktree is about to be made, which takes its
// name, or that the existing one can be used.
func (p place) reserve(tx store.Tx, home hub.PeerID, d hub.DispatchID) error {
	if p.spec.New() {
		w := p.worktree
		w.State, w.CreatedAt = hub.WorktreeCreating, tx.Now()
		w.Setup = hub.WorktreeSetup{Report: p.setup, Home: home, Dispatch: d}
		return tx.PutWorktree(w)
	}
	if p.worktree.ID == "" {
		return nil
	}
	w, err := tx.Worktree(p.worktree.ID)
	if err == nil {
		err = standing(w)
	}
	return err
}

// standing refuses a worktree that is not there yet, or soon not any more.
func standing(w hub.Worktree) error {
	if w.State == hub.WorktreeReady {
		return nil
	}
	e := hub.Errorf(hub.CodeTerminalBusy, "%s (%s) is %s", w.Name, w.ID, w.State)
	e.Hint = "wait until it is done: see worktree list"
	return e
}

// findRepo takes the named repository, or the registered one that the caller's
// directory is in, as itself or as a worktree of it.
func (s *Service) findRepo(ctx context.Context, p *place) error {
	if p.spec.CurrentDir != "" {
		f, err := s.Git.Inspect(ctx, p.spec.CurrentDir)
		if err != nil && p.spec.Repo == "" {
			return err
		}
		p.here = f.Path
	}
	if p.spec.Repo == "" && p.here == "" {
		return needsRepo(p.spec)
	}
	return s.Store.View(ctx, func(rx store.Rx) (err error) {
		if p.spec.Repo != "" {
			p.repo, err = FindRepo(rx, p.spec.Repo)
			return err
		}
		if p.repo, err = repoAt(rx, p.here); hub.IsCode(err, hub.CodeRepoNotFound) {
			return needsRepo(p.spec)
		}
		p.defaults = append(p.defaults, hub.Default{Field: "repo", Value: p.repo.Name, Source: "current_directory"})
		return err
	})
}

func needsRepo(spec hub.StartSpec) error {
	e := hub.Errorf(hub.CodeInvalidArgument, "--worktree %s needs --repo: the current folder is in no registered repository", spec.Worktree)
	e.Field = "repo"
	return e.WithNext("wavehub", "repo", "list")
}

// repoAt is the repository whose top folder, or one of whose worktrees, it is.
func repoAt(rx store.RepoReader, path string) (hub.Repo, error) {
	w, ok, err := rx.WorktreeByPath(path)
	if err != nil {
		return hub.Repo{}, err
	}
	if ok {
		return rx.Repo(w.Repo)
	}
	return FindRepo(rx, path)
}

// FindRepo finds a registered repository by its id, path or name.
func FindRepo(rx store.RepoReader, name string) (hub.Repo, error) {
	if hub.ValidID(hub.PrefixRepo, name) {
		return rx.Repo(hub.RepoID(name))
	}
	if filepath.IsAbs(name) {
		if r, ok, err := rx.RepoByPath(filepath.Clean(name)); err != nil || ok {
			return r, err
		}
	} else if r, ok, err := rx.RepoByName(name); err != nil || ok {
		return r, err
	}
	e := hub.Errorf(hub.CodeRepoNotFound, "%q is not registered on this hub", name)
	e.Hint = "register it on the hub that has it"
	return hub.Repo{}, e.WithNext("wavehub", "repo", "list")
}

// findParent records the parent of a new-child worktree.
func (s *Service) findParent(ctx context.Context, p *place) error {
	if p.spec.Worktree != hub.WorktreeNewChild {
		return nil
	}
	if path, ok := strings.CutPrefix(p.spec.Parent, "path:"); ok {
		real, err := s.Git.Canonical(path)
		if err != nil {
			return err
		}
		p.spec.Parent = "path:" + real
	}
	return s.Store.View(ctx, func(rx store.Rx) error {
		parent, err := s.parentOf(rx, p)
		p.worktree.Parent = parent.ID
		return err
	})
}

func (s *Service) parentOf(rx store.RepoReader, p *place) (hub.Worktree, error) {
	switch path, ok := strings.CutPrefix(p.spec.Parent, "path:"); {
	case p.spec.Parent == hub.WorktreeCurrent:
		return worktreeAround(rx, p.here)
	case ok:
		return worktreeAround(rx, path)
	case p.spec.Parent != "":
		return lookupWorktree(rx, p.spec.Parent)
	}
	w, _, err := rx.WorktreeByPath(p.here)
	p.defaults = append(p.defaults, hub.Default{Field: "parent", Value: p.here, Source: "current_directory"})
	return w, err
}

func (s *Service) refuseTaken(ctx context.Context, p *place) error {
	return s.Store.View(ctx, func(rx store.Rx) error {
		named, err := rx.WorktreesNamed(p.spec.Name)
		if err != nil {
			return err
		}
		for _, w := range named {
			if w.Repo == p.repo.ID {
				return hub.Errorf(hub.CodeNameTaken, "%s has a worktree named %q (%s)", p.repo.Name, w.Name, w.ID)
			}
		}
		return nil
	})
}

// resolveSetup says what becomes of the setup hook, and pins the commit that it
// is taken from: the worktree is made of that one.
func (s *Service) resolveSetup(ctx context.Context, p *place) error {
	p.setup = hub.SetupReport{Requested: p.spec.Setup, Effective: p.spec.Setup, Source: "explicit_request", StartupPolicy: hub.PolicyImmediate}
	if p.spec.Setup == "" || p.spec.Setup == hub.SetupInherit {
		p.inheritSetup()
	}
	hook, commit, err := s.Git.SetupHook(ctx, p.repo, p.spec.Base)
	if err != nil && !(hook.Found && p.setup.Effective == hub.SetupSkip) {
		return err
	}
	p.hook, p.worktree.Base = hook, commit
	p.setup.HookFound, p.setup.Hash = hook.Found, hook.Hash
	if hook.Policy != "" {
		p.setup.StartupPolicy = hook.Policy
	}
	switch {
	case p.setup.Effective == hub.SetupSkip:
		p.setup.State = hub.SetupSkipped
	case !hook.Found:
		p.setup.Effective, p.setup.State = "none", hub.SetupNotConfigured
	default:
		p.setup.State = hub.SetupUnknown
	}
	return nil
}

func (p *place) inheritSetup() {
	p.setup.Effective, p.setup.Source = hub.SetupRun, "default"
	if p.spec.Setup == "" {
		p.setup.Requested = hub.SetupRun
	} else if p.repo.Setup != "" {
		p.setup.Effective, p.setup.Source = p.repo.Setup, "repository"
	}
	p.defaults = append(p.defaults, hub.Default{Field: "setup", Value: p.setup.Effective, Source: p.setup.Source})
}

var notApplicable = hub.SetupReport{Effective: "none", Source: "default", State: hub.SetupNotApplicable}

func (s *Service) resolveExisting(ctx context.Context, p *place) error {
	p.setup = notApplicable
	if p.spec.Worktree == hub.WorktreeCurrent {
		if p.spec.CurrentDir == "" {
			return hub.Invalid("current_dir", "current means the caller's directory; say which it is")
		}
		return s.resolveDir(ctx, p, p.spec.CurrentDir)
	}
	if path, ok := strings.CutPrefix(p.spec.Worktree, "path:"); ok {
		return s.resolveDir(ctx, p, path)
	}
	return s.Store.View(ctx, func(rx store.Rx) (err error) {
		if p.worktree, err = lookupWorktree(rx, p.spec.Worktree); err != nil {
			return err
		}
		p.dir = p.worktree.Path
		p.repo, err = rx.Repo(p.worktree.Repo)
		return err
	})
}

func (s *Service) resolveDir(ctx context.Context, p *place, dir string) error {
	if !filepath.IsAbs(dir) {
		return hub.Invalid("worktree", "%q must be an absolute path", dir)
	}
	var err error
	if p.dir, err = s.Git.Canonical(dir); err != nil {
		return err
	}
	return s.Store.View(ctx, func(rx store.Rx) error {
		w, ok, err := rx.WorktreeByPath(p.dir)
		if err != nil || !ok {
			return err
		}
		p.worktree = w
		p.repo, err = rx.Repo(w.Repo)
		return err
	})
}

func lookupWorktree(rx store.RepoReader, selector string) (hub.Worktree, error) {
	if id, ok := strings.CutPrefix(selector, "id:"); ok {
		return rx.Worktree(hub.WorktreeID(id))
	}
	named, err := rx.WorktreesNamed(selector)
	if err != nil {
		return hub.Worktree{}, err
	}
	return onlyOne(named, selector)
}

// onlyOne is the one worktree that a name stands for.
func onlyOne(named []hub.Worktree, name string) (hub.Worktree, error) {
	switch len(named) {
	case 0:
		return hub.Worktree{}, hub.Errorf(hub.CodeWorktreeNotFoundOnServer, "there is no worktree %q here", name)
	case 1:
		return named[0], nil
	}
	return hub.Worktree{}, hub.Invalid("worktree", "several worktrees are named %q; use id:…", name)
}

// worktreeAround is the worktree that a folder is, or lies in.
func worktreeAround(rx store.RepoReader, path string) (hub.Worktree, error) {
	for dir := filepath.Clean(path); filepath.IsAbs(dir); dir = filepath.Dir(dir) {
		if w, ok, err := rx.WorktreeByPath(dir); err != nil || ok {
			return w, err
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return hub.Worktree{}, noneAround(path)
}

func noneAround(path string) error {
	return hub.Errorf(hub.CodeWorktreeNotFoundOnServer, "%q is in no worktree that this hub made", path)
}

// withinGrant refuses a place outside the peer's granted roots.
func withinGrant(p place, g hub.Grants) error {
	if err := mayStart(g); err != nil {
		return err
	}
	path := p.dir
	if p.repo.ID != "" {
		path = p.repo.Path
	}
	if !grantsPath(g, path) {
		return errNotGranted
	}
	return nil
}

func mayStart(g hub.Grants) error {
	if slices.Contains(g.Verbs, hub.GrantStart) {
		return nil
	}
	return ungranted(hub.GrantStart, "start workers")
}

// ungranted refuses a peer what it lacks the verb for. Only the owner of this
// hub can change that.
func ungranted(verb, what string) error {
	e := hub.Errorf(hub.CodeOutOfScope, "this peer may not %s here: the verb %s is not granted", what, verb)
	e.Hint = "ask the owner of that hub to add " + verb + " to the verbs that it grants this one, with peer grant"
	return e
}

var errNotGranted = hub.Errorf(hub.CodeRepoNotGranted, "the repository is outside the roots granted to this peer")

func grantsPath(g hub.Grants, path string) bool {
	return slices.ContainsFunc(g.Repos, func(root string) bool { return within(root, path) })
}

func within(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
