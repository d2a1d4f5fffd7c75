package terminal

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// helloLimit is for a supervisor that accepts and says nothing.
const helloLimit = 5 * time.Second

// client is a connection to a supervisor that has said hello. The end of its
// context closes it.
type client struct {
	net.Conn
	hello Hello
	stop  func() bool
	wrote func(total int64) // told of each answer to watch while it waits; nil for nobody
}

// connect opens the endpoint that the terminal's spec names.
func (m *Manager) connect(ctx context.Context, dir string) (*client, error) {
	var l launch
	found, err := load(dir, specFile, &l)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, errors.New("the terminal has no endpoint")
	}
	dialCtx, cancel := context.WithTimeout(ctx, helloLimit)
	defer cancel()
	conn, err := dial(dialCtx, l.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("connecting to the supervisor: %w", err)
	}
	c := &client{Conn: conn, stop: context.AfterFunc(ctx, func() { _ = conn.Close() })}
	if err := c.greet(); err != nil {
		return nil, errors.Join(fmt.Errorf("greeting the supervisor: %w", err), c.Close())
	}
	return c, nil
}

func (c *client) greet() error {
	if err := c.SetReadDeadline(time.Now().Add(helloLimit)); err != nil {
		return err
	}
	if err := readControl(c, &c.hello); err != nil {
		return err
	}
	return c.SetReadDeadline(time.Time{})
}

// Close ends the connection; the process goes on.
func (c *client) Close() error {
	c.stop()
	return c.Conn.Close()
}

// send sends a command.
func (c *client) send(cmd Command) error {
	if err := c.SetWriteDeadline(time.Now().Add(sendLimit)); err != nil {
		return err
	}
	return writeControl(c, cmd)
}

// untilExit reads events until the process has ended. The error is that of a
// failed command or of the connection.
func (c *client) untilExit() error {
	for {
		var ev Event
		if err := readControl(c, &ev); err != nil {
			return fmt.Errorf("waiting for the supervisor: %w", err)
		}
		switch ev.Op {
		case evExited:
			return nil
		case opWatch:
			if c.wrote != nil {
				c.wrote(ev.Total)
			}
		case evError:
			return fmt.Errorf("the supervisor failed: %s", ev.Error)
		}
	}
}
