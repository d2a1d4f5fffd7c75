package cli

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/safefile"
)

// consumerFile is where a consumer token goes. It is made before the call, so
// that a place that cannot be written is known before anything happens.
type consumerFile struct {
	path string
	made bool // by us, empty so far
}

// reserveConsumer checks the place. What is there already has to be a private
// file that holds a consumer token, or nothing: other files are never replaced.
func reserveConsumer(path string) (*consumerFile, error) {
	if path == "" {
		return nil, nil
	}
	err := safefile.CreateExclusive(path, nil, 0o600)
	if err == nil {
		return &consumerFile{path: path, made: true}, nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return nil, usage("consumer-file", "--consumer-file: %v", err)
	}
	old, err := safefile.ReadPrivate(path, maxToken)
	if err != nil {
		return nil, usage("consumer-file", "--consumer-file: %v", err)
	}
	if text := strings.TrimSpace(string(old)); text != "" && !strings.HasPrefix(text, "whc_") {
		return nil, usage("consumer-file", "--consumer-file: %s holds something else than a consumer token", path)
	}
	return &consumerFile{path: path}, nil
}

// settle writes the token of a bound Run, or gives the place back after err.
func (f *consumerFile) settle(a *app, bound *client.RunBound, err error) error {
	if f == nil {
		return err
	}
	if err != nil {
		f.giveBack(a)
		return err
	}
	if bound.Binding == nil || bound.Binding.ConsumerToken == nil {
		refusal := client.Errorf(client.CodeConsumerFenced, "the answer has no consumer token: another consumer of %s has taken over", bound.Run.RunId)
		refusal.Next = [][]string{{"wavehub", "run", "use", bound.Run.RunId, "--consumer-file", f.path}}
		f.giveBack(a)
		return refusal
	}
	if err := safefile.WriteAtomic(f.path, []byte(*bound.Binding.ConsumerToken+"\n"), 0o600); err != nil {
		e := client.Errorf(client.CodeInternal, "the Run is bound, but its consumer token could not be written: %v", err)
		e.RequestID, e.Err = bound.Mutation.RequestId, err
		return e
	}
	return nil
}

// giveBack removes the empty file. Failing to is only worth a note: the call's
// own error is what matters.
func (f *consumerFile) giveBack(a *app) {
	if !f.made {
		return
	}
	if err := os.Remove(f.path); err != nil {
		a.note("wavehub: the unused consumer file stays: %v", err)
	}
}
