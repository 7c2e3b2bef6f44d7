package mutants

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"regexp"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/transport"
)

// apierrorMutants are servers and clients with one defect each, which the cases about errors must
// detect.
var apierrorMutants = []mutant{
	{
		Name: "errors-without-a-reason", Breaks: []string{"error/status-shape"},
		Defect: defect{Handler: onErrors(func(status int, body []byte) (int, []byte) {
			return status, bytes.Replace(body, []byte(`"reason"`), []byte(`"cause"`), 1)
		})},
	},
	{
		Name:   "always-400",
		Breaks: []string{"error/http-code-equals-status", "error/404", "error/422-causes", "error/status-shape"},
		Defect: defect{
			Handler: onErrors(func(_ int, body []byte) (int, []byte) { return http.StatusBadRequest, body }),
		},
	},
	{
		Name: "errors-without-causes", Breaks: []string{"error/422-causes"},
		Defect: defect{Handler: onErrors(func(status int, body []byte) (int, []byte) {
			return status, regexp.MustCompile(`"causes":\[.*?\]`).ReplaceAll(body, []byte(`"causes":[]`))
		})},
	},
	{
		Name: "errors-in-plain-text", Breaks: []string{"error/negotiated", "error/status-shape"},
		Defect: defect{Handler: onErrors(func(status int, _ []byte) (int, []byte) {
			return status, []byte("no")
		})},
	},
	{
		Name: "fails-without-an-error-event", Breaks: []string{"error/in-stream"},
		Defect: defect{Source: func(s listwatch.Source) listwatch.Source { return &withoutErrors{Source: s} }},
	},
	{
		Name: "client-errors-have-no-code", Breaks: []string{"error/client-typed", "error/html-502"},
		Defect: defect{Client: func(r *client.Remote) listwatch.Source {
			return &codelessClient{r}
		}},
	},
	{
		Name: "client-gives-up-after-408", Breaks: []string{"error/retry-statuses"},
		Defect: defect{Client: func(r *client.Remote) listwatch.Source {
			for i, t := range r.Transports {
				r.Transports[i] = strictTransport{t}
			}
			return r
		}},
	},
	{
		Name: "client-retries-immediately", Breaks: []string{"error/retry-after", "error/no-retry-on-4xx"},
		Defect: defect{Client: func(r *client.Remote) listwatch.Source {
			return &eagerClient{r}
		}},
	},
}

// strictTransport takes every status 4xx for a mistake of the client.
type strictTransport struct{ transport.Client }

func (s strictTransport) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	receiver, err := s.Client.Dial(ctx, r)
	if e := listwatch.AsError(err); e != nil && e.Status/100 == 4 && e.Code == listwatch.Unavailable {
		mistaken := *e
		mistaken.Code = listwatch.Invalid
		err = &mistaken
	}
	return receiver, err
}

// codelessClient is a client whose errors have a message but no code.
type codelessClient struct{ *client.Remote }

func (c *codelessClient) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	page, err := c.Remote.List(ctx, q)
	return page, withoutCode(err)
}

func (c *codelessClient) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := c.Remote.Watch(ctx, q)
	return w, withoutCode(err)
}

func withoutCode(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(err.Error())
}

// eagerClient is a client that retries after every error and ignores Retry-After.
type eagerClient struct{ *client.Remote }

func (e *eagerClient) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	e.Backoff = listwatch.Backoff{Min: time.Second, Max: time.Second}
	w, err := e.Remote.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return &eagerWatcher{Watcher: w, remote: e.Remote, query: q}, nil
}

type eagerWatcher struct {
	listwatch.Watcher
	remote *client.Remote
	query  listwatch.Query
}

// Next opens a new watch after an error, or after a second without an event.
func (e *eagerWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	limited, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	n, err := e.Watcher.Next(limited, dst)
	if err == nil {
		return n, nil
	}
	replacement, watchErr := e.remote.Watch(ctx, e.query)
	if watchErr != nil {
		return 0, err
	}
	_ = e.Watcher.Close()
	e.Watcher = replacement
	return e.Watcher.Next(ctx, dst)
}
