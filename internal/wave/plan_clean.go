package wave

import (
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
)

// Clean returns the entries as a wave keeps them: each dependency once, scopes and
// handoff_path in their one form and each path once, a time-out within its bounds.
// A write scope that is not known stays nil, one of nothing empty. What is wrong
// stays as it is, for BuildPlan to find. The argument is not changed.
func Clean(entries []hub.WaveEntry) []hub.WaveEntry {
	out, seen := slices.Clone(entries), map[string]struct{}{}
	for i := range out {
		e := &out[i]
		e.Dependencies = once(e.Dependencies, seen)
		e.WriteScope, e.ReadScope = once(cleanScope(e.WriteScope), seen), once(cleanScope(e.ReadScope), seen)
		if path, err := hub.CleanPath("handoff_path", e.HandoffPath); err == nil {
			e.HandoffPath = path
		}
		if e.TimeoutSecs > 0 {
			e.TimeoutSecs = hub.ClampWaveTime(e.TimeoutSecs)
		}
	}
	return out
}

// cleanScope puts the valid paths of a scope in their one form.
func cleanScope(scope []string) []string {
	var out []string
	for i, entry := range scope {
		path, err := hub.CleanPath("scope", entry)
		if err != nil || path == entry {
			continue
		}
		if out == nil {
			out = slices.Clone(scope)
		}
		out[i] = path
	}
	if out == nil {
		return scope
	}
	return out
}

// once is list with each text once, where it is first; list itself if that is so.
// seen is scratch.
func once(list []string, seen map[string]struct{}) []string {
	if len(list) < 2 || len(list) <= maxShown && !repeats(list) {
		return list
	}
	clear(seen)
	for _, s := range list {
		seen[s] = struct{}{}
	}
	if len(seen) == len(list) {
		return list
	}
	out := make([]string, 0, len(seen))
	for _, s := range list {
		if _, ok := seen[s]; ok {
			delete(seen, s)
			out = append(out, s)
		}
	}
	return out
}

// repeats reports whether a short list has a text twice.
func repeats(list []string) bool {
	for i, s := range list {
		if slices.Contains(list[:i], s) {
			return true
		}
	}
	return false
}

// clean takes the entries and sorts the valid paths of their scopes out.
func (p *planner) clean(entries []hub.WaveEntry) {
	p.entries = Clean(entries)
	p.writes, p.reads = make([][]string, len(entries)), make([][]string, len(entries))
	room := p.bounds.entries
	for i, e := range p.entries {
		p.writes[i] = p.valid(i, "write_scope", e.WriteScope, &room)
		p.reads[i] = p.valid(i, "read_scope", e.ReadScope, &room)
	}
	if room < 0 {
		p.found.add(len(entries), hub.Finding{Code: hub.FindScopeInvalid, Detail: "the scopes of all tasks name too many paths together: " + overBy(p.bounds.entries, room)})
	}
}

// valid is the part of a scope that can be compared. What is over the bounds of a
// task or of the wave is found and not compared.
func (p *planner) valid(i int, field string, scope []string, room *int) []string {
	if len(scope) > hub.MaxScopeEntries {
		p.find(i, hub.FindScopeInvalid, "%s: %d paths; at most %d are taken", field, len(scope), hub.MaxScopeEntries)
		scope = scope[:hub.MaxScopeEntries]
	}
	if *room -= len(scope); *room < 0 {
		return nil
	}
	bad, size := 0, 0
	for _, entry := range scope {
		size += len(entry)
		if err := hub.CheckScopePath(field, entry); err != nil {
			if bad++; bad <= maxShown {
				p.find(i, hub.FindScopeInvalid, "%s", err.Error())
			}
		}
	}
	if bad > maxShown {
		p.find(i, hub.FindScopeInvalid, "%s: %d more of its paths are invalid", field, bad-maxShown)
	}
	if size > hub.MaxScopeBytes {
		p.find(i, hub.FindScopeInvalid, "%s: %d bytes; at most %d are taken", field, size, hub.MaxScopeBytes)
		return nil
	}
	if bad == 0 {
		return scope
	}
	return slices.DeleteFunc(slices.Clone(scope), func(entry string) bool { return hub.CheckScopePath(field, entry) != nil })
}
