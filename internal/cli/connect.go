package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/capfile"
	"github.com/wavehub/wavehub/internal/config"
	"github.com/wavehub/wavehub/internal/proc"
	"github.com/wavehub/wavehub/internal/safefile"
	"github.com/wavehub/wavehub/internal/terminal"
)

const (
	envDispatchFile = "WAVEHUB_DISPATCH_FILE"
	envTerminal     = "WAVEHUB_TERMINAL_ID" // of a worker's processes
	envConsumer     = "WAVEHUB_CONSUMER"
	envConsumerFile = "WAVEHUB_CONSUMER_FILE"
)

// maxToken bounds a token file, in bytes.
const maxToken = 4096

// session is a client with what is known about its credential.
type session struct {
	*client.Client
	dispatch *capfile.File // set inside a Dispatch, nil for the operator
	path     string        // of the file that dispatch was read from
	timeout  time.Duration // of the client inside a Dispatch
	bound    bool          // a context or a consumer token is sent along
	context  bool          // it is a context
	hub      string        // the paired hub that is asked, "" for this one
	unmade   string        // the consumer file of the environment, which does not exist yet
	// contextErr says why the terminal could not be found; only verbs that
	// need a binding fail on it.
	contextErr error
}

// turn is the Dispatch of an attached worker's turn, which its messages have to
// name; "" elsewhere, where the credential says it.
func (s *session) turn() string {
	if s.dispatch == nil || !s.dispatch.Attached() {
		return ""
	}
	return s.dispatch.DispatchID
}

// connect chooses the credential: a capability where the environment names one
// or a supervisor is among this program's ancestors, and then nothing else;
// otherwise the operator's token. A terminal that never had a Dispatch is its
// user's as any other.
func (a *app) connect(timeout time.Duration) (*session, error) {
	path, inside := os.LookupEnv(envDispatchFile)
	if inside && openTerminal(path) == "" {
		return a.connectDispatch(path, timeout)
	}
	cfg, err := config.Load(nil)
	if err != nil {
		return nil, err
	}
	if !inside {
		if path, inside, err = supervised(cfg); err != nil {
			return nil, err
		}
	}
	terminal := openTerminal(path)
	if inside && terminal == "" {
		return a.connectDispatch(path, timeout)
	}
	return a.connectOperator(cfg, terminal, timeout)
}

// openTerminal is the id of the terminal whose capability file this would be, if
// it has no capability and is marked as one that never had; else "".
func openTerminal(path string) string {
	if path == "" {
		return ""
	}
	folder := filepath.Dir(path)
	_, errMark := os.Lstat(filepath.Join(folder, config.OpenName))
	_, errFile := os.Lstat(path) // after the mark, which goes when the file is there
	if errMark != nil || !errors.Is(errFile, fs.ErrNotExist) {
		return ""
	}
	return filepath.Base(folder)
}

// supervised is the capability file of the Dispatch in whose process tree this
// program runs, whatever its environment says; false outside of any.
func supervised(cfg config.Config) (path string, inside bool, err error) {
	chain, err := proc.Ancestors()
	if err != nil {
		return "", false, err
	}
	id, inside, err := terminal.Within(cfg.TerminalDir(), chain)
	return cfg.CapabilityFile(string(id)), inside, err
}

func (a *app) connectDispatch(path string, timeout time.Duration) (*session, error) {
	if a.flags.hub != "" {
		return nil, outOfReach("inside a Dispatch no other hub is asked: its credential is of its own")
	}
	file, err := readCapability(path)
	if err != nil {
		e := client.Errorf(client.CodeInvalidToken, "the capability %s cannot be used: %v", path, err)
		e.Hint, e.Status, e.Err = "inside a Dispatch no other credential is tried", 0, err
		return nil, e
	}
	c, err := a.workerClient(file, timeout)
	if err != nil {
		return nil, err
	}
	return &session{Client: c, dispatch: &file, path: path, timeout: timeout}, nil
}

func (a *app) workerClient(file capfile.File, timeout time.Duration) (*client.Client, error) {
	return client.New(client.Config{
		URL: file.URL, Fingerprint: file.Fingerprint, Token: client.Secret(file.Token),
		Timeout: timeout, ConnectTimeout: a.flags.connectTimeout,
	})
}

func readCapability(path string) (capfile.File, error) {
	raw, err := safefile.ReadPrivate(path, capfile.MaxSize)
	if err != nil {
		return capfile.File{}, err
	}
	return capfile.Decode(raw)
}

// connectOperator connects with the operator's token. terminal is the hub's own
// terminal that this program runs in, "" for none: it is the context then.
func (a *app) connectOperator(cfg config.Config, terminal string, timeout time.Duration) (*session, error) {
	endpoint, err := readEndpoint(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	token, err := readToken(cfg.TokenFile(), "the operator's token")
	if err != nil {
		return nil, err
	}
	s := &session{hub: a.flags.hub}
	cc := client.Config{URL: endpoint.URL, Fingerprint: endpoint.Fingerprint, Token: token, Hub: a.flags.hub, Timeout: timeout, ConnectTimeout: a.flags.connectTimeout}
	cc.Consumer, err = consumerToken()
	fresh := a.makesConsumer && errors.Is(err, fs.ErrNotExist) // its file is about to be made
	if err != nil && !fresh {
		return nil, err
	}
	if cc.Consumer == "" && !fresh {
		cc.Context, s.contextErr = callerContext(terminal)
	}
	if fresh {
		s.unmade = os.Getenv(envConsumerFile)
	}
	s.context = cc.Context != ""
	s.bound = cc.Consumer != "" || cc.Context != ""
	s.Client, err = client.New(cc)
	return s, err
}

func callerContext(terminal string) (string, error) {
	if terminal != "" {
		return "terminal:" + terminal, nil
	}
	return proc.CallerContext()
}

func readEndpoint(dataDir string) (config.Endpoint, error) {
	endpoint, err := config.ReadEndpoint(dataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return config.Endpoint{}, client.Errorf(client.CodeHubUnreachable, "no hub has been started with the data directory %s", dataDir)
	}
	if err != nil {
		return config.Endpoint{}, client.Errorf(client.CodeDataDirInvalid, "%v", err)
	}
	return endpoint, nil
}

func readToken(path, what string) (client.Secret, error) {
	raw, err := safefile.ReadPrivate(path, maxToken)
	if err == nil && strings.TrimSpace(string(raw)) == "" {
		err = fmt.Errorf("%s is empty", path)
	}
	if err != nil {
		e := client.Errorf(client.CodeInvalidToken, "%s cannot be read: %v", what, err)
		e.Status, e.Err = 0, err
		return "", e
	}
	return client.Secret(strings.TrimSpace(string(raw))), nil
}

// consumerGiven reports whether the environment names a consumer token.
func consumerGiven() bool {
	return os.Getenv(envConsumer) != "" || os.Getenv(envConsumerFile) != ""
}

func consumerToken() (client.Secret, error) {
	direct := client.Secret(os.Getenv(envConsumer))
	path := os.Getenv(envConsumerFile)
	if path == "" {
		return direct, nil
	}
	token, err := readToken(path, "the consumer token of "+envConsumerFile)
	if e, ok := errors.AsType[*client.Error](err); ok && errors.Is(err, fs.ErrNotExist) {
		e.Hint = "run create makes the file; until then unset " + envConsumerFile + " for other commands"
	}
	if err == nil && direct != "" && direct != token {
		return "", usage("consumer", "%s and %s name different consumers; unset one", envConsumer, envConsumerFile)
	}
	return token, err
}
