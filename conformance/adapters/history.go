package adapters

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// restartTimeout limits the time in which a restarted server must respond again.
const restartTimeout = 2 * time.Minute

// History has the ways to drop the history of a server that the suite reaches by its URL.
type History struct {
	// CompactURL is a URL at which a POST drops the history of the server, so that a watch from an
	// older version gets 410. If empty, a restart is used instead.
	CompactURL string
	// Restart is a shell command that restarts the server. It returns when the old process has
	// ended; the suite waits for the new one. If CompactURL is empty, the command must also see to
	// it that the server has no history afterwards: it compacts the etcd of an API server, for
	// example. If empty, the server cannot be restarted.
	Restart string
}

// compact drops the history of the server of r. path is a path that the server responds to.
func (h History) compact(ctx context.Context, r *restClient, path string) error {
	if h.CompactURL == "" {
		return h.restart(ctx, r, path)
	}
	u, err := url.Parse(h.CompactURL)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), http.NoBody)
	if err != nil {
		return err
	}
	if u.Host == r.base.Host { // no other host may see the credentials
		request.Header = r.header.Clone()
	}
	resp, err := r.http.Do(request)
	if err != nil {
		return transport.DialError(ctx, "", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("POST %s: %w", u.Redacted(), transport.ResponseError(resp))
	}
	return nil
}

// restart restarts the server of r, and waits until a GET of path succeeds.
func (h History) restart(ctx context.Context, r *restClient, path string) error {
	command := exec.CommandContext(ctx, "sh", "-c", h.Restart)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	// The command may start the server in the background, and the server then keeps the output
	// open.
	command.WaitDelay = time.Second
	if err := command.Run(); err != nil && command.ProcessState.ExitCode() != 0 {
		return fmt.Errorf("the command of --restart: %w: %s", err, output.Bytes())
	}
	r.http.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, restartTimeout)
	defer cancel()
	for {
		err := r.do(ctx, "GET", path, url.Values{"limit": {"1"}}, nil, nil)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return &listwatch.Error{
				Code: listwatch.Unavailable, Message: "the server does not respond after the restart", Err: err,
			}
		case <-time.After(restartPoll):
		}
	}
}

// restartPoll is the time between two requests to a server that restarts.
const restartPoll = 50 * time.Millisecond
