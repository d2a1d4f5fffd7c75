package storetest

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

func repos(f *fixture) {
	n := 0
	a, b, c := filled[hub.Repo](&n), filled[hub.Repo](&n), filled[hub.Repo](&n)
	a.Name = "Straße-K"
	f.update(func(tx store.Tx) error { return first(tx.PutRepo(a), tx.PutRepo(b), tx.PutRepo(c)) })
	f.view(func(rx store.Rx) error {
		equal(f, []hub.Repo{c, b, a}, pages(f, 0, rx.RepoList))
		_, folded, err1 := rx.RepoByName("straße-k")
		_, elsewhere, err2 := rx.RepoByPath("other")
		return first(same(f, a)(rx.Repo(a.ID)), found(f, a)(rx.RepoByName(a.Name)), found(f, b)(rx.RepoByPath(b.Path)),
			f.absent("a repository by a folded name", folded, err1), f.absent("a repository elsewhere", elsewhere, err2))
	})
	twin := filled[hub.Repo](&n)
	twin.Name = "STRAßE-\u212a" // the Kelvin sign folds to k
	f.refused(hub.CodeNameTaken, func(tx store.Tx) error { return tx.PutRepo(twin) })
	b.Name = "sTRAßE-K"
	f.refused(hub.CodeNameTaken, func(tx store.Tx) error { return tx.SaveRepo(b) })
	a.Name, a.Setup = "straße-k", "run"
	f.update(func(tx store.Tx) error { return tx.SaveRepo(a) })
	f.view(func(rx store.Rx) error { return found(f, a)(rx.RepoByName("straße-k")) })
	again := filled[hub.Repo](&n)
	again.ID = a.ID
	f.refused(hub.CodeInternal, func(tx store.Tx) error { return tx.PutRepo(again) })
	f.refused(hub.CodeRepoNotFound, func(tx store.Tx) error { _, err := tx.Repo("other"); return err })
	f.refused(hub.CodeRepoNotFound, func(tx store.Tx) error { return tx.SaveRepo(filled[hub.Repo](&n)) })
}

func worktrees(f *fixture) {
	n := 0
	a, b, c := filled[hub.Worktree](&n), filled[hub.Worktree](&n), filled[hub.Worktree](&n)
	a.Name, b.Name, b.Repo, c.Repo = "Fix", "Fix", "other repo", a.Repo
	f.update(func(tx store.Tx) error { return first(tx.PutWorktree(a), tx.PutWorktree(b), tx.PutWorktree(c)) })
	of := func(rx store.Rx, repo hub.RepoID) []hub.Worktree {
		return pages(f, 0, func(p store.Page) ([]hub.Worktree, int64, error) { return rx.WorktreeList(repo, p) })
	}
	f.view(func(rx store.Rx) error {
		equal(f, []hub.Worktree{c, a}, of(rx, a.Repo))
		equal(f, []hub.Worktree{c, b, a}, of(rx, ""))
		return first(same(f, a)(rx.Worktree(a.ID)), same(f, []hub.Worktree{b, a})(rx.WorktreesNamed("Fix")),
			same(f, []hub.Worktree(nil))(rx.WorktreesNamed("fix")), found(f, c)(rx.WorktreeByPath(c.Path)))
	})
	twin := filled[hub.Worktree](&n)
	twin.Name, twin.Repo = "fIX", a.Repo
	f.refused(hub.CodeNameTaken, func(tx store.Tx) error { return tx.PutWorktree(twin) })
	f.update(func(tx store.Tx) error { return first(tx.DeleteWorktree(a.ID), tx.PutWorktree(twin)) })
	f.refused(hub.CodeWorktreeNotFoundOnServer, func(tx store.Tx) error { _, err := tx.Worktree(a.ID); return err })
	f.refused(hub.CodeWorktreeNotFoundOnServer, func(tx store.Tx) error { return tx.DeleteWorktree(a.ID) })
	f.view(func(rx store.Rx) error {
		_, ok, err := rx.WorktreeByPath(a.Path)
		return first(same(f, twin)(rx.Worktree(twin.ID)), f.absent("a deleted worktree", ok, err))
	})
}

func openWorktrees(f *fixture) {
	n := 0
	creating, running, ended, ready := filled[hub.Worktree](&n), filled[hub.Worktree](&n), filled[hub.Worktree](&n), filled[hub.Worktree](&n)
	creating.State, creating.Setup = hub.WorktreeCreating, hub.WorktreeSetup{}
	running.Setup.Report.Effective, ended.Setup.Report.Effective = hub.SetupRun, hub.SetupRun
	running.Setup.Report.Ended, ended.Setup.Report.Ended = false, true
	ready.State, ready.Setup = hub.WorktreeReady, hub.WorktreeSetup{}
	running.Parent, ready.Parent = ended.ID, ended.ID
	f.update(func(tx store.Tx) error {
		return first(tx.PutWorktree(creating), tx.PutWorktree(running), tx.PutWorktree(ended), tx.PutWorktree(ready))
	})
	f.view(func(rx store.Rx) error {
		return first(same(f, []hub.Worktree{creating, running})(rx.OpenWorktrees()),
			same(f, []hub.Worktree{running, ready})(rx.WorktreesUnder(ended.ID)), same(f, []hub.Worktree(nil))(rx.WorktreesUnder("")))
	})
	creating.State, running.Setup.Report.Ended = hub.WorktreeReady, true
	f.update(func(tx store.Tx) error { return first(tx.SaveWorktree(creating), tx.SaveWorktree(running)) })
	f.view(func(rx store.Rx) error {
		return first(same(f, []hub.Worktree(nil))(rx.OpenWorktrees()), same(f, creating)(rx.Worktree(creating.ID)))
	})
	f.refused(hub.CodeWorktreeNotFoundOnServer, func(tx store.Tx) error { return tx.SaveWorktree(filled[hub.Worktree](&n)) })
}
