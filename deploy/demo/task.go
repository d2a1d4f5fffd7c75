package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/wavehub/wavehub/internal/id"
)

// task is one piece of real work and what became of it.
type task struct {
	name  string
	on    string // name of the hub that carries it out
	after []*task
	work  string // shell commands that leave their result in $result

	id, dispatch, outcome string
	started, settled      time.Time
}

// says is how many status messages a task sends around its work.
const says = 6

// plan is the work: five independent tasks, and one that reads their results.
func plan(d *demo) []*task {
	vet := &task{name: "vet", on: "mac", work: `go vet ./internal/hub ./internal/run ./internal/mail ./internal/dispatch ./relay/... && result="go vet found nothing"`}
	hub := &task{name: "build-hub", on: "windows", work: `go build -o out/wavehub ./cmd/wavehub && result="wavehub: $(wc -c < out/wavehub) bytes"`}
	agent := &task{name: "build-agent", on: "mac", work: `go build -o out/fakeagent ./cmd/fakeagent && result="fakeagent: $(wc -c < out/fakeagent) bytes"`}
	test := &task{name: "test-domain", on: "windows", work: `result=$(go test ./internal/hub ./internal/id | tr '\n' ' ')`}
	count := &task{name: "count", on: "windows", work: `
answer=$(ask "Shall tests be counted too?" --option yes --option no)
case $answer in *yes*) pattern='*.go' ;; *) pattern=':!*_test.go' ;; esac
result="answer $answer: $(git ls-files "$pattern" | grep '\.go$' | tr '\n' '\0' | xargs -0 cat | wc -l) lines of Go"`}
	all := []*task{vet, hub, agent, test, count}
	sum := &task{name: "summary", on: "mac", after: all, work: `result=$(cat "$shared"/*.result)`}
	return append(all, sum)
}

// script is the task's text: a shell script for the sh launcher. Every message
// has its own request id, so that repeating it after a crash of the hub sends
// it once; the witness file gets a line for each message that was accepted.
func (t *task) script(d *demo) string {
	var b strings.Builder
	fmt.Fprintf(&b, "set -u\nexport GOFLAGS='-trimpath -mod=readonly'\nname=%s\nshared=%s\nwitness=%s\n", t.name, quote(d.shared()), quote(d.witness(t)))
	b.WriteString(`
again() { # command…: repeats what a hub's crash cut off
  tries=0
  until "$@"; do
    tries=$((tries + 1)); [ $tries -lt 150 ] || exit 9
    sleep 0.2
  done
}
say() { again "$WAVEHUB_BIN" send --type status --subject "$name $1" --body "step $1 of $name" --retry-request "$2" >/dev/null && echo "$name $1" >> "$witness"; }
ask() { again "$WAVEHUB_BIN" ask --question "$@" --timeout 60s --retry-request "$question"; }
result="nothing"
`)
	fmt.Fprintf(&b, "question=%s\n", request())
	for n := 1; n <= says/2; n++ {
		fmt.Fprintf(&b, "say %d %s\n", n, request())
	}
	b.WriteString("if { " + t.work + "\n}; then fate=''; else fate=--failed; fi\n")
	for n := says/2 + 1; n <= says; n++ {
		fmt.Fprintf(&b, "say %d %s\n", n, request())
	}
	fmt.Fprintf(&b, "echo \"$name: $result\" > \"$shared/$name.result\"\n")
	fmt.Fprintf(&b, "again \"$WAVEHUB_BIN\" done \"$result\" $fate --retry-request %s && echo \"$name done\" >> \"$witness\"\n", request())
	return b.String()
}

func request() string { return id.New("req_") }

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (d *demo) shared() string         { return d.dir }
func (d *demo) witness(t *task) string { return filepath.Join(d.dir, t.name+".witness") }

// entry is the task as the wave's file has it: a worker in a worktree of its own.
func (t *task) entry(d *demo) map[string]any {
	start := map[string]any{"repo": "demo", "worktree": "new-top-level", "name": t.worktree(d), "agent": "sh", "setup": "skip"}
	if t.on != d.mac.name {
		start["on"] = t.on
	}
	after := []string{}
	for _, dep := range t.after {
		after = append(after, dep.name)
	}
	return map[string]any{"task_id": t.name, "goal": t.script(d), "dependencies": after, "write_scope": []string{"out"}, "workspace": t.name, "start": start}
}

// worktree is the name of the task's worktree, of names' grammar.
func (t *task) worktree(d *demo) string { return t.name + "-" + strings.ToLower(d.suffix) }
