package cli

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

// maxTasks bounds a file of tasks, in bytes.
const maxTasks = 64 << 20

// Formats of files of tasks.
const (
	sourceAuto  = "auto"
	sourceTasks = "tasks-json"
)

var sourceFormats = []string{sourceAuto, sourceTasks, "spec-kit", "gsd", "taskmaster"}

// readSource is a file of tasks as it is; the hub reads it.
func (a *app) readSource(flag, path, format string) (*client.WaveSource, error) {
	if !slices.Contains(sourceFormats, format) {
		return nil, usage("format", "--format takes %s, not %q", strings.Join(sourceFormats, ", "), format)
	}
	text, err := a.readTextWithin(flag, path, maxTasks)
	if err != nil {
		return nil, err
	}
	return &client.WaveSource{Format: client.WaveSourceFormat(format), Name: filepath.Base(path), Text: text}, nil
}

type waveFlags struct {
	cmd                    *cobra.Command
	goal                   *body
	tasks, from, format    string
	checkpoint, keep       string
	id, owner, metadata    string
	replace, spawn, strict bool
	policy                 policyFlags
	place                  placing
}

// register adds the flags that create and run share.
func (f *waveFlags) register(cmd *cobra.Command) {
	f.cmd = cmd
	f.goal = bodyFlags(cmd, "goal", "what the wave is for")
	flags := cmd.Flags()
	flags.StringVar(&f.format, "format", sourceAuto, "how the file is written: "+strings.Join(sourceFormats, ", "))
	flags.StringVar(&f.id, "id", "", "the wave's name, which no other wave of this hub ever had (default: a new one)")
	flags.StringVar(&f.owner, "owner", "", "whose wave it is, for people")
	flags.StringVar(&f.metadata, "metadata", "", "a JSON object to keep with the wave, from a file (- for stdin)")
	flags.StringVar(&f.keep, "checkpoint-dir", "", "folder on the hub's host in which others can read how far the wave is")
	flags.BoolVar(&f.replace, "replace", false, "take the place of the pending wave of that --id")
	f.policy.register(cmd)
	f.place.register(cmd, false)
}

func (a *app) waveCreate() *cobra.Command {
	var f waveFlags
	cmd := mark(&cobra.Command{
		Use:   "create (--tasks FILE | --from FILE | --from-checkpoint DIR)",
		Short: "Validate a wave and store it with its tasks, all or nothing",
		Long: "Takes an array of tasks in JSON (--tasks), the plan of another tool (--from), or what is kept of\n" +
			"a wave in a checkpoint folder (--from-checkpoint). Nothing starts without --spawn.\n\n" +
			"A plan with findings is refused with all of them, and nothing is stored.",
		Example: "wavehub wave create --goal \"Port to v2\" --tasks tasks.json --id w1\n" +
			"wavehub wave create --goal \"Port to v2\" --tasks tasks.json --conflicts serialize --concurrency 4 --retry 1 --timeout 2h --budget cost_usd=5,tokens=100000 --spawn\n" +
			"wavehub wave create --from specs/001/tasks.md --format spec-kit --agent codex --repo demo --worktree new-top-level\n" +
			"wavehub wave create --from-checkpoint checkpoints/w1 --id w1-again",
		Args: exactly(),
	}, isMutation)
	f.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.tasks, "tasks", "", "the tasks, in JSON, from a file (- for stdin)")
	flags.StringVar(&f.from, "from", "", "the tasks in a --format of another tool, from a file (- for stdin)")
	flags.StringVar(&f.checkpoint, "from-checkpoint", "", "a wave's folder below its --checkpoint-dir; completed levels stay completed")
	flags.BoolVar(&f.spawn, "spawn", false, "start it as well")
	cmd.RunE = verb[client.WaveResult]{call: a.createWave(&f), human: printCreated, label: "planning"}.runE(a)
	return cmd
}

func (a *app) createWave(f *waveFlags) func(context.Context, *session, []string, ...client.Option) (*client.WaveResult, error) {
	return func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.WaveResult, error) {
		in, err := f.input(a)
		if err != nil {
			return nil, err
		}
		if in.RunId, err = a.resolveRun(ctx, s); err != nil {
			return nil, err
		}
		return s.CreateWave(ctx, in, opts...)
	}
}

// input is all that the flags say of a wave but its Run.
func (f *waveFlags) input(a *app) (in client.WaveCreate, err error) {
	if err := f.check(); err != nil {
		return in, err
	}
	in = client.WaveCreate{WaveId: f.id, Owner: f.owner, Replace: f.replace, Spawn: f.spawn}
	if in.Policy, err = f.policy.policy(a); err != nil {
		return in, err
	}
	if in.Defaults, err = f.defaults(); err != nil {
		return in, err
	}
	if in.Goal, err = f.goal.read(a); err != nil {
		return in, err
	}
	if in.Metadata, err = a.readObject("metadata", f.metadata); err != nil {
		return in, err
	}
	if f.keep != "" {
		dirs, err := absolute("checkpoint-dir", f.keep)
		if err != nil {
			return in, err
		}
		in.CheckpointDir = dirs[0]
	}
	return in, f.readTasks(a, &in)
}

// check refuses combinations that say two things at once.
func (f *waveFlags) check() error {
	given := f.cmd.Flags().Changed
	switch policy := f.policy.given(); {
	case given("tasks") && given("from"):
		return misused(f.cmd, "takes --tasks or --from, not both")
	case f.format != sourceAuto && f.from == "":
		return ofFlag(f.cmd, "format", "takes --format with --from only")
	case f.checkpoint != "" && policy != "":
		return ofFlag(f.cmd, policy, "takes --%s or --from-checkpoint, not both: the policy is the checkpoint's", policy)
	case f.replace && f.id == "":
		return ofFlag(f.cmd, "replace", "needs --id with --replace")
	case f.tasks == "" && f.from == "" && f.checkpoint == "" && !given("goal") && !given("goal-file"):
		return misused(f.cmd, "needs --tasks, --from or --from-checkpoint, or for a wave without tasks yet --goal")
	}
	return f.oneStdin()
}

// oneStdin refuses to read two things from stdin.
func (f *waveFlags) oneStdin() error {
	n := 0
	for _, path := range []string{f.tasks, f.from, f.metadata, f.goal.file, f.policy.file} {
		if path == "-" {
			n++
		}
	}
	if n > 1 {
		return misused(f.cmd, "reads one thing from stdin, not %d", n)
	}
	return nil
}

func (f *waveFlags) defaults() (*client.WaveDefaults, error) {
	worker, start, err := f.place.read()
	if err != nil || worker == "" && start == nil {
		return nil, err
	}
	return &client.WaveDefaults{Worker: worker, Start: start}, nil
}

func (f *waveFlags) readTasks(a *app, in *client.WaveCreate) (err error) {
	switch {
	case f.tasks != "":
		in.Source, err = a.readSource("tasks", f.tasks, sourceTasks)
	case f.from != "":
		in.Source, err = a.readSource(f.fromFlag(), f.from, f.format)
	}
	if err == nil && f.checkpoint != "" {
		in.Checkpoint, err = readCheckpoint(f.checkpoint)
	}
	return err
}

// fromFlag is the flag that names the plan of another tool, "" for an argument.
func (f *waveFlags) fromFlag() string {
	if f.cmd.Flags().Lookup("from") == nil {
		return ""
	}
	return "from"
}

// readObject reads a JSON object from a file; nil for no file.
func (a *app) readObject(flag, path string) (json.RawMessage, error) {
	if path == "" {
		return nil, nil
	}
	text, err := a.readText(flag, path)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil || object == nil {
		return nil, usage(flag, "--%s: %s holds no JSON object", flag, path)
	}
	return json.RawMessage(text), nil
}

func (a *app) waveRun() *cobra.Command {
	var f waveFlags
	cmd := mark(&cobra.Command{
		Use:   "run FILE",
		Short: "Create a wave of a file of tasks, start it and watch it until it has ended",
		Long:  "FILE is read as wave create --from does (- for stdin). Leaving the view does not end the wave.",
		Example: "wavehub wave run tasks.json --goal \"Port to v2\"\n" +
			"wavehub wave run tasks.md --agent codex --repo demo --worktree new-top-level --exit-status",
		Args: exactly("FILE"),
	}, isMutation)
	f.register(cmd)
	f.spawn = true
	exitStatusFlag(cmd, &f.strict)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f.from = args[0]
		return a.runWave(cmd.Context(), &f)
	}
	return cmd
}

// runWave is create with spawn, then watch.
func (a *app) runWave(ctx context.Context, f *waveFlags) error {
	s, err := a.connect(a.silence(f.cmd))
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := a.expand(ctx, s, f.cmd, nil); err != nil {
		return err
	}
	var body json.RawMessage
	stop := a.progress("planning")
	out, err := a.createWave(f)(ctx, s, nil, a.options(&body)...)
	stop()
	if err != nil {
		return err
	}
	a.say("wave %s runs", out.Wave.WaveId)
	return a.watchWave(ctx, s, out.Wave.WaveId, nil, f.strict)
}
