package terminal

import (
	"context"
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
	return winio.ListenPipe(endpoint, &winio.PipeConfig{
		SecurityDescriptor: "D:P(A;;GA;;;" + user.User.Sid.String() + ")",
		InputBufferSize:    outputChunk, OutputBufferSize: outputChunk,
	})
}

func dial(ctx context.Context, endpoint string) (net.Conn, error) {
	return winio.DialPipeContext(ctx, endpoint)
}

// removeEndpoint does nothing: a pipe ends with its server.
func removeEndpoint(string) error { return nil }
