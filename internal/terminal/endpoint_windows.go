package terminal

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"

	"github.com/wavehub/wavehub/internal/hub"
)

// endpointFor returns the name of the terminal's pipe. Terminal ids are
// unique, so is the name.
func endpointFor(id hub.TerminalID) (string, error) { return `\\.\pipe\wavehub-` + string(id), nil }

// listen opens the pipe for this user alone.
func listen(endpoint string) (net.Listener, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, fmt.Errorf("reading the user of this process: %w", err)
	}
	l, err := winio.ListenPipe(endpoint, &winio.PipeConfig{
		SecurityDescriptor: "D:P(A;;GA;;;" + user.User.Sid.String() + ")",
		InputBufferSize:    outputChunk, OutputBufferSize: outputChunk,
	})
	if err != nil {
		return nil, err
	}
	if err := useUpFirst(endpoint); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// useUpFirst takes the place at the pipe that the listener opens only to keep
// the name, and never serves. Windows says that this place is busy. Wine lets
// one client have it, who would wait for ever.
func useUpFirst(endpoint string) error {
	name, err := windows.UTF16PtrFromString(endpoint)
	if err != nil {
		return err
	}
	h, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, 0, nil, windows.OPEN_EXISTING, 0, 0)
	if errors.Is(err, windows.ERROR_PIPE_BUSY) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("preparing the supervisor's pipe: %w", err)
	}
	return windows.CloseHandle(h)
}

func dial(ctx context.Context, endpoint string) (net.Conn, error) {
	return winio.DialPipeContext(ctx, endpoint)
}

// removeEndpoint does nothing: a pipe ends with its server.
func removeEndpoint(string) error { return nil }
