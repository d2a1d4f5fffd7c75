//go:build unix

package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/config"
	"github.com/wavehub/wavehub/openapi/api"
)

// recoveryAdvice is how to recover what was cut off: the request again, under
// its id.
var recoveryAdvice = map[string]advice{
	"a lost answer":             {sites: "cli.repeated", provoke: lostAnswer},
	"a lost answer, for people": {sites: "cli.repeated", provoke: lostAnswerText},
	"a lost answer to stdin":    {sites: "cli.recovery", provoke: lostInput},
	"hub_unreachable":           {sites: "cli.repeated", provoke: hubAway, exits: []int{6}},
	"internal":                  {sites: "cli.repeated", provoke: brokenHub, exits: []int{1}},
	"a cut ask":                 {sites: "cli.lostAnswer", provoke: askCut, exits: []int{7}},
	"a cut wait for a verdict":  {sites: "cli.repeated", duo: true, provoke: verdictCut, exits: []int{6}},
}

const odd = `echo "it's"; $HOME \ *`

// losing runs a command line as the Run's consumer and loses the answer to
// what puts something into the Run.
func losing(t *testing.T, s *stage, stdin string, args ...string) (Caller, Result) {
	t.Helper()
	h, run := s.solo(), s.solo().NewRun("lost")
	e, m, direct := h.Endpoint(), newMuter(t, strings.TrimPrefix(h.Endpoint().URL, "https://")), h.Client("")
	there := func() bool {
		tasks, err := direct.Tasks(t.Context(), run.Run, "", client.Page{})
		mail, err2 := direct.History(t.Context(), run.Box(), "all", nil, client.Page{})
		return err == nil && err2 == nil && len(tasks.Tasks)+len(mail.Messages) > 0
	}
	c := h.at(t, config.Endpoint{URL: m.Addr(), Fingerprint: e.Fingerprint, HubID: e.HubID}, h.Token())
	c.env, c.stdin = append(c.env, run.env...), stdin
	m.set(there)
	call := begin(t, func() (Result, error) { return c.CLI(append(args, "--run", run.Run)...), nil })
	eventually(t, "the hub has the request", 20*time.Second, there)
	m.cut()
	r := call.get(t, commandLimit).value
	m.set(func() bool { return false })
	if r.Code != 10 {
		t.Fatalf("%q: exit %d\n%s%s", args, r.Code, r.Stdout, r.Stderr)
	}
	return c, r
}

func lostAnswer(t *testing.T, s *stage) printed {
	c, r := losing(t, s, "", "task", "create", "--spec", odd, "--json")
	return printed{by: c, next: r.nextCommands(t)}
}

func lostAnswerText(t *testing.T, s *stage) printed {
	c, r := losing(t, s, "", "task", "create", "--spec", odd)
	_, line, _ := strings.Cut(r.Stderr, "recover: ")
	return printed{by: c, next: [][]string{{"sh", "-c", line}}}
}

func lostInput(t *testing.T, s *stage) printed {
	c, r := losing(t, s, odd, "task", "create", "--spec-file", "-", "--json")
	c.stdin = "" // whoever pastes the command does not have it
	return printed{by: c, next: r.nextCommands(t)}
}

func hubAway(t *testing.T, _ *stage) printed {
	h := StartHub(t, "away")
	run := h.NewRun("unreachable")
	h.Kill()
	r := run.json("task", "create", "--run", run.Run, "--spec", odd)
	return printed{by: run.Caller, next: r.nextCommands(t), mend: func(*testing.T) { h.Start() }}
}

// brokenHub is one whose git fails, until the real one is put in its place.
func brokenHub(t *testing.T, s *stage) printed {
	h := s.trio().wrong
	r := h.Caller().json("repo", "add", t.TempDir())
	return printed{by: h.Caller(), next: r.nextCommands(t), mend: func(t *testing.T) {
		git, err := exec.LookPath("git")
		must(t, err)
		writeProgram(t, filepath.Join(h.Home, "programs", "git"), "#!/bin/sh\nexec "+git+" \"$@\"\n")
	}}
}

// askCut is a question whose hub stops while the worker waits.
func askCut(t *testing.T, _ *stage) printed {
	h := StartHub(t, "stops")
	run := h.NewRun("cut")
	w := run.heldWorker(t, h)
	ask := begin(t, func() (Result, error) { return w.Caller().json("ask", "--question", "Go on?", "--timeout", "60s"), nil })
	q := run.Check("--types", "question").Messages[0]
	h.Stop()
	out := decode[struct {
		Resume []string `json:"resume_command"`
	}](t, ask.get(t, 20*time.Second).value.Stdout)
	return printed{by: w.Caller(), next: [][]string{out.Resume}, mend: func(t *testing.T) {
		h.Start()
		get[api.SendResult](t, run.Caller, "reply", "--id", q.MessageId, "--body", "yes")
	}}
}

// verdictCut is a report whose verdict cannot come, and whose hub stops while
// the worker waits for it.
func verdictCut(t *testing.T, s *stage) printed {
	d := s.duo()
	w := d.run.heldWorker(t, d.worker, d.place("sh")...)
	d.home.Kill()
	c := w.Client()
	report := append(w.report("succeeded", odd), "--wait-verdict", "--timeout", "60s")
	call := begin(t, func() (Result, error) { return w.Caller().json(report...), nil })
	eventually(t, "the report is stored", 20*time.Second, func() bool {
		_, err := c.Send(t.Context(), api.MessageSend{Type: "question", Body: "Reported?"})
		return isCode(err, client.CodeDispatchInactive)
	})
	d.worker.Stop()
	return printed{by: w.Caller(), next: call.get(t, 20*time.Second).value.nextCommands(t), mend: func(*testing.T) {
		d.worker.Start()
		d.home.Start()
	}}
}
