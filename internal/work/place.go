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
	agent    string // completion of the launcher
	setup    hub.SetupReport
	defaults []hub.Default
}

// resolve validates a start completely, so that a refusal has no effect.
// granted is nil for this hub's own starts, else the peer's grants.
func (s *Service) resolve(ctx context.Context, spec hub.StartSpec, granted *hub.Grants) (place, error) {
	p := place{spec: spec}
	if spec.Terminal != "" {
		return p, hub.Errorf(hub.CodeTerminalNotFound, "%s is no terminal that a Dispatch can use", spec.Terminal)
	}
	var err error
	if p.agent, err = s.Agents.Completion(spec.Agent); err != nil {
		return p, err
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
	return p, err
}

func (s *Service) resolveNew(ctx context.Context, p *place) error {
	if err := s.Git.Check(p.spec.Name, p.spec.Base); err != nil {
		return err
	}
	if err := s.findRepo(ctx, p); err != nil {
		return err
	}
	if p.repo.Kind != hub.RepoGit {
		return hub.Invalid("worktree", "%s is a plain folder: it has no worktrees; use path:%s", p.repo.Name, p.repo.Path)
	}
	p.worktree = hub.Worktree{ID: hub.NewWorktreeID(), Repo: p.repo.ID, Name: p.spec.Name}
	if err := s.findParent(ctx, p); err != nil {
		return err
	}
	p.dir, _ = s.Git.Where(p.newWorktree())
	if err := s.refuseTaken(ctx, p); err != nil {
		return err
	}
	if err := s.Git.Free(ctx, p.newWorktree()); err != nil {
		return err
	}
	return s.resolveSetup(ctx, p)
}

func (p place) newWorktree() NewWorktree {
	return NewWorktree{Repo: p.repo, ID: p.worktree.ID, Name: p.spec.Name, Base: p.spec.Base}
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
	return s.Store.View(ctx, func(rx store.Rx) error {
		parent, err := s.parentOf(rx, p)
		p.worktree.Parent = parent.ID
		return err
	})
}

func (s *Service) parentOf(rx store.RepoReader, p *place) (hub.Worktree, error) {
	if p.spec.Parent != "" {
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

// resolveSetup says what becomes of the setup hook. A repository that has one
// is started with setup skip only: running hooks is not offered yet, and doing
// without one silently would be a lie.
func (s *Service) resolveSetup(ctx context.Context, p *place) error {
	p.setup = hub.SetupReport{Requested: p.spec.Setup, Effective: p.spec.Setup, Source: "explicit_request", StartupPolicy: "start-immediately"}
	if p.spec.Setup == "" || p.spec.Setup == hub.SetupInherit {
		p.inheritSetup()
	}
	found, err := s.Git.HasSetup(ctx, p.repo, p.spec.Base)
	if err != nil {
		return err
	}
	p.setup.HookFound = found
	switch {
	case p.setup.Effective == hub.SetupSkip:
		p.setup.State = "skipped"
	case !found:
		p.setup.Effective, p.setup.State = "none", "not_configured"
	default:
		e := hub.Errorf(hub.CodeCapabilityUnsupported, "%s has a setup hook, and this hub does not run hooks", p.repo.Name)
		e.Hint = "start with --setup skip and prepare the worktree in the task itself"
		return e
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

var notApplicable = hub.SetupReport{Effective: "none", Source: "default", State: "not_applicable"}

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
	switch len(named) {
	case 0:
		return hub.Worktree{}, hub.Errorf(hub.CodeWorktreeNotFoundOnServer, "there is no worktree %q here", selector)
	case 1:
		return named[0], nil
	}
	return hub.Worktree{}, hub.Invalid("worktree", "several worktrees are named %q; use id:…", selector)
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
	return hub.Errorf(hub.CodeOutOfScope, "this peer may not start workers here")
}

var errNotGranted = hub.Errorf(hub.CodeRepoNotGranted, "the repository is outside the roots granted to this peer")

func grantsPath(g hub.Grants, path string) bool {
	return slices.ContainsFunc(g.Repos, func(root string) bool { return within(root, path) })
}

func within(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
