package cli

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/config"
	"github.com/wavehub/wavehub/internal/safefile"
)

// envMail names the file to which the mail of a turn's Dispatch is appended.
const envMail = "WAVEHUB_MAIL_FILE"

// attachFlags are how attach runs its turns. Exec and Resume are command lines of
// the platform's shell.
type attachFlags struct {
	name, tokenFile  string
	exec, resume     string
	dir              string
	parallel         int
	bare             bool
	url, fingerprint string
}

func (a *app) attachCommand() *cobra.Command {
	var f attachFlags
	cmd := &cobra.Command{
		Use:   "attach --name NAME --token-file FILE --exec COMMAND",
		Short: "Serve as an attached worker: one turn of COMMAND for each Dispatch",
		Long: "Takes Dispatches from the worker's mailbox and runs COMMAND for each, with how to report and\n" +
			"the Task's text on stdin. wavehub done, ask and send work inside the turn. If it does not\n" +
			"report itself, exit code 0 reports success with the end of its output, any other failure.\n\n" +
			"A turn that a crash of this program has cut is never run again: --resume-exec goes on with\n" +
			"it, else it is reported as failed (attach_restarted). The first interrupt ends when the\n" +
			"running turns have ended; the second leaves them to the next start.",
		Example: "wavehub attach --name w-1 --token-file w-1.token --exec \"claude -p\"\n" +
			"wavehub attach --name w-1 --token-file w-1.token --exec \"sh -s\" --bare --parallel 4",
		Args: exactly(),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "the worker's name, as it is registered")
	flags.StringVar(&f.tokenFile, "token-file", "", "file with the worker's token, readable by you only")
	flags.StringVar(&f.exec, "exec", "", "shell command of a turn")
	flags.StringVar(&f.resume, "resume-exec", "", "shell command that goes on with a turn that was cut")
	flags.StringVar(&f.dir, "dir", "", "folder that the turns run in (default: this one)")
	flags.IntVar(&f.parallel, "parallel", 1, "how many turns run at once")
	flags.BoolVar(&f.bare, "bare", false, "hand the Task's text over alone, without how to report")
	flags.StringVar(&f.url, "url", "", "https://host:port of a hub on another host; needs --fingerprint")
	flags.StringVar(&f.fingerprint, "fingerprint", "", "of that hub's key, as its status shows it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.check(cmd); err != nil {
			return err
		}
		return a.attach(cmd.Context(), f)
	}
	return cmd
}

func (f attachFlags) check(cmd *cobra.Command) error {
	switch {
	case f.name == "" || f.tokenFile == "" || f.exec == "":
		return misused(cmd, "needs --name, --token-file and --exec")
	case f.parallel < 1 || f.parallel > 1000:
		return misused(cmd, "--parallel must be 1 to 1000")
	case (f.url == "") != (f.fingerprint == ""):
		return misused(cmd, "takes --url and --fingerprint together")
	}
	return nil
}

func (a *app) attach(ctx context.Context, f attachFlags) error {
	cfg, err := config.Load(nil)
	if err != nil {
		return err
	}
	if f.dir, err = filepath.Abs(f.dir); err != nil {
		return usage("dir", "--dir: %v", err)
	}
	token, err := readToken(f.tokenFile, "the worker's token")
	if err != nil {
		return err
	}
	endpoint := config.Endpoint{URL: f.url, Fingerprint: f.fingerprint}
	if f.url == "" {
		if endpoint, err = readEndpoint(cfg.DataDir); err != nil {
			return err
		}
	}
	conn := client.Config{URL: endpoint.URL, Fingerprint: endpoint.Fingerprint, Token: token, ConnectTimeout: a.flags.connectTimeout}
	l, err := a.newLoop(ctx, f, conn, cfg.AttachDir())
	if err != nil {
		return err
	}
	defer l.hub.Close()
	return l.run(ctx)
}

// newLoop attaches: from now on a former loop of the identity is fenced.
func (a *app) newLoop(ctx context.Context, f attachFlags, conn client.Config, root string) (*attachLoop, error) {
	hub, err := client.New(conn)
	if err != nil {
		return nil, err
	}
	defer hub.Close()
	l := &attachLoop{
		app: a, flags: f, conn: conn, turns: map[string]*turn{}, ended: make(chan *turn), hurried: newOnce(), drained: newOnce(),
	}
	var me *client.WorkerResult
	var opts []client.Option
	err = l.stubborn(ctx, func() error {
		me, err = hub.Attach(ctx, opts...)
		opts = sameRequest(opts, err)
		return err
	})
	if err != nil {
		return nil, err
	}
	if me.Worker.Name != f.name {
		return nil, usage("name", "the token is that of %s, not of %s", me.Worker.Name, f.name)
	}
	l.box, l.conn.Generation = "worker:"+me.Worker.WorkerId, me.Worker.Generation
	if l.bin, err = os.Executable(); err != nil {
		return nil, err
	}
	l.notes = noteBook{dir: filepath.Join(root, me.Worker.WorkerId)}
	if err := os.MkdirAll(filepath.Dir(filepath.Dir(root)), 0o700); err != nil {
		return nil, err
	}
	for _, dir := range []string{filepath.Dir(root), root, l.notes.dir} {
		if err := safefile.PrivateDir(dir); err != nil {
			return nil, err
		}
	}
	l.hub, err = client.New(l.conn)
	return l, err
}
