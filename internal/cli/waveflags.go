package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/wavehub/wavehub/client"
)

const waveTimeoutHelp = "how long the wave may run, in whole seconds (default 1h0m0s, at least 1s, at most 168h0m0s)"

// secondsFlag is a flag whose time is sent in whole seconds.
type secondsFlag struct {
	cmd   *cobra.Command
	name  string
	value time.Duration
}

func (f *secondsFlag) register(cmd *cobra.Command, name, help string) {
	f.cmd, f.name = cmd, name
	cmd.Flags().DurationVar(&f.value, name, 0, help)
}

// read is the time in seconds, nil where it was not given.
func (f *secondsFlag) read() (*int64, error) {
	if !f.cmd.Flags().Changed(f.name) {
		return nil, nil
	}
	if f.value < 0 || f.value%time.Second != 0 {
		return nil, ofFlag(f.cmd, f.name, "--%s takes whole seconds, such as 90s or 1h, not %q", f.name, f.value.String())
	}
	secs := int64(f.value / time.Second)
	return &secs, nil
}

// policyFlags are the policy of a wave: a file, and flags that win over it.
type policyFlags struct {
	cmd                       *cobra.Command
	file                      string
	order, onFailure          string
	conflicts, verify, scope  string
	mail, budget              string
	concurrency, retry        int
	maxIterations             int
	timeout, liveness, idling secondsFlag
}

// policyNames are the flags that say something of the policy.
var policyNames = []string{
	"policy", "order", "on-failure", "conflicts", "concurrency", "timeout", "liveness", "idle", "retry", "max-iterations", "verify", "scope", "budget", "mail",
}

func (f *policyFlags) register(cmd *cobra.Command) {
	f.cmd = cmd
	flags := cmd.Flags()
	flags.StringVar(&f.file, "policy", "", "the policy from a file, in JSON or YAML; flags win over it")
	flags.StringVar(&f.order, "order", "", "dag (a task starts after its dependencies) or barrier (level by level)")
	flags.StringVar(&f.onFailure, "on-failure", "", "fail_fast (end the wave) or continue")
	flags.StringVar(&f.conflicts, "conflicts", "", "of tasks that write the same: reject, serialize or allow")
	flags.IntVar(&f.concurrency, "concurrency", 0, "at most so many workers at once (0: no limit)")
	f.timeout.register(cmd, "timeout", waveTimeoutHelp)
	f.liveness.register(cmd, "liveness", "end a worker that is silent for longer (0: never; default: the hub's)")
	f.idling.register(cmd, "idle", "tell of a worker without output and reports for longer (0: never; default 10m0s)")
	flags.IntVar(&f.retry, "retry", 0, "automatic new attempts at a task, 0 to 3")
	flags.IntVar(&f.maxIterations, "max-iterations", 0, "how often the wave may run in all (default 3)")
	flags.StringVar(&f.verify, "verify", "", "what a check that is not passed means: record, or required (the task fails)")
	flags.StringVar(&f.scope, "scope", "", "what a change outside of the write scope means: advisory, or enforce (the task fails)")
	budgetFlag(cmd, &f.budget)
	flags.StringVar(&f.mail, "mail", "", "final (one notice at the end) or all (every report)")
}

func budgetFlag(cmd *cobra.Command, budget *string) {
	cmd.Flags().StringVar(budget, "budget", "", "what all attempts may use together, such as cost_usd=5,tokens=100000")
}

// given is the first flag of the policy that was given, "" for none.
func (f *policyFlags) given() string {
	i := slices.IndexFunc(policyNames, f.cmd.Flags().Changed)
	if i < 0 {
		return ""
	}
	return policyNames[i]
}

// policy is what file and flags say.
func (f *policyFlags) policy(a *app) (client.WavePolicyInput, error) {
	p, err := a.readPolicy(f.file)
	if err != nil {
		return p, err
	}
	f.choices(&p)
	if err := f.counts(&p); err != nil {
		return p, err
	}
	for flag, into := range map[*secondsFlag]**int64{&f.timeout: &p.TimeoutSecs, &f.liveness: &p.LivenessSecs, &f.idling: &p.IdleSecs} {
		secs, err := flag.read()
		if err != nil {
			return p, err
		}
		if secs != nil {
			*into = secs
		}
	}
	budget, err := parseBudget(f.cmd, f.budget)
	if budget != nil && p.Budget != nil { // the file has the rest
		budget.CostUsd, budget.Tokens = cmp.Or(budget.CostUsd, p.Budget.CostUsd), cmp.Or(budget.Tokens, p.Budget.Tokens)
	}
	p.Budget = cmp.Or(budget, p.Budget)
	return p, err
}

func (f *policyFlags) choices(p *client.WavePolicyInput) {
	choose(&p.Order, f.order)
	choose(&p.OnFailure, f.onFailure)
	choose(&p.Conflicts, f.conflicts)
	choose(&p.Verify, f.verify)
	choose(&p.Scope, f.scope)
	choose(&p.Mail, f.mail)
}

func choose[T ~string](into *T, value string) {
	if value != "" {
		*into = T(value)
	}
}

func (f *policyFlags) counts(p *client.WavePolicyInput) error {
	for _, c := range []struct {
		name        string
		value, from int
		into        *int
	}{{"concurrency", f.concurrency, 0, &p.Concurrency}, {"retry", f.retry, 0, &p.Retry}, {"max-iterations", f.maxIterations, 1, &p.MaxIterations}} {
		if !f.cmd.Flags().Changed(c.name) {
			continue
		}
		if c.value < c.from {
			return ofFlag(f.cmd, c.name, "--%s takes a whole number from %d", c.name, c.from)
		}
		*c.into = c.value
	}
	return nil
}

// readPolicy reads the fields of a policy from a file in YAML, of which JSON is a
// part. Unknown and repeated ones are refused.
func (a *app) readPolicy(path string) (p client.WavePolicyInput, err error) {
	if path == "" {
		return p, nil
	}
	text, err := a.readText("policy", path)
	if err != nil {
		return p, err
	}
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		return p, usage("policy", "--policy: %s is neither JSON nor YAML of a policy's fields: %v", path, err)
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return p, usage("policy", "--policy: %s: %v", path, err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return p, usage("policy", "--policy: %s: %s", path, strings.TrimPrefix(err.Error(), "json: "))
	}
	return p, nil
}

// parseBudget reads cost_usd=5,tokens=100000; nil for "".
func parseBudget(cmd *cobra.Command, text string) (*client.WaveBudget, error) {
	if text == "" {
		return nil, nil
	}
	out, seen := &client.WaveBudget{}, map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		if seen[name] {
			return nil, ofFlag(cmd, "budget", "--budget has %s twice", name)
		}
		seen[name] = true
		if err := bound(out, name, value); err != nil {
			return nil, ofFlag(cmd, "budget", "--budget takes cost_usd=N and tokens=N with a comma between them: %v", err)
		}
	}
	return out, nil
}

func bound(b *client.WaveBudget, name, value string) error {
	switch name {
	case "cost_usd":
		cost, err := strconv.ParseFloat(value, 64)
		if err != nil || cost < 0 || math.IsNaN(cost) || math.IsInf(cost, 0) {
			return fmt.Errorf("%q is no amount", value)
		}
		b.CostUsd = &cost
	case "tokens":
		tokens, err := strconv.ParseInt(value, 10, 64)
		if err != nil || tokens < 0 {
			return fmt.Errorf("%q is no whole number", value)
		}
		b.Tokens = &tokens
	default:
		return fmt.Errorf("%q is neither", name)
	}
	return nil
}
