package mutants

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/cases"
)

// errorMutants break the cases of errors and Status.
var errorMutants = []Mutant{
	{"errors-without-a-reason", []string{"error/status-shape"}, cases.Interceptors{Handler: onErrors(func(status int, body []byte) (int, []byte) {
		return status, bytes.Replace(body, []byte(`"reason"`), []byte(`"cause"`), 1)
	})}},
	{"always-400", []string{"error/http-code-equals-status", "error/404", "error/422-causes", "error/status-shape"}, cases.Interceptors{
		Handler: onErrors(func(_ int, body []byte) (int, []byte) { return http.StatusBadRequest, body }),
	}},
	{"errors-without-causes", []string{"error/422-causes"}, cases.Interceptors{Handler: onErrors(func(status int, body []byte) (int, []byte) {
		return status, regexp.MustCompile(`"causes":\[.*?\]`).ReplaceAll(body, []byte(`"causes":[]`))
	})}},
	{"errors-in-plain-text", []string{"error/negotiated", "error/status-shape"}, cases.Interceptors{Handler: onErrors(func(status int, _ []byte) (int, []byte) {
		return status, []byte("no")
	})}},
	{"fails-without-a-word", []string{"error/in-stream"}, cases.Interceptors{Source: func(s listwatch.Source) listwatch.Source { return &mute{s} }}},
	{"client-errors-have-no-code", []string{"error/client-typed", "error/html-502"}, cases.Interceptors{Client: func(r *client.Remote) listwatch.Source {
		return &codeless{r}
	}}},
	{"client-hammers", []string{"error/retry-after", "error/no-retry-on-4xx"}, cases.Interceptors{Client: func(r *client.Remote) listwatch.Source {
		return &hammering{r}
	}}},
}

// mute is a source whose watches end where they fail.
type mute struct{ listwatch.Source }

// Describe is that of the source below.
func (m *mute) Describe() listwatch.Description { return listwatch.Describe(m.Source) }

// Watch hides errors.
func (m *mute) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := m.Source.Watch(ctx, q)
	if err != nil {
		return &muteWatcher{}, nil
	}
	return &muteWatcher{w}, nil
}

type muteWatcher struct{ listwatch.Watcher }

// Next ends where it fails.
func (w *muteWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	if w.Watcher == nil {
		return 0, io.EOF
	}
	n, err := w.Watcher.Next(ctx, dst)
	if err != nil && ctx.Err() == nil {
		err = io.EOF
	}
	return n, err
}

// Close closes the watcher, if there is one.
func (w *muteWatcher) Close() error {
	if w.Watcher == nil {
		return nil
	}
	return w.Watcher.Close()
}

// codeless is a client whose errors are words alone.
type codeless struct{ *client.Remote }

// List hides the code of an error.
func (c *codeless) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	page, err := c.Remote.List(ctx, q)
	return page, bare(err)
}

// Watch hides the code of an error.
func (c *codeless) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := c.Remote.Watch(ctx, q)
	return w, bare(err)
}

func bare(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(err.Error())
}

// hammering is a client that asks again at once, whatever it was told.
type hammering struct{ *client.Remote }

// Watch opens another watch where one fails.
func (h *hammering) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	h.Backoff = listwatch.Backoff{Min: time.Second, Max: time.Second}
	w, err := h.Remote.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return &hammeringWatcher{Watcher: w, from: h.Remote, query: q}, nil
}

type hammeringWatcher struct {
	listwatch.Watcher
	from  *client.Remote
	query listwatch.Query
}

// Next asks again, once for each error.
func (w *hammeringWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	soon, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	n, err := w.Watcher.Next(soon, dst)
	if err == nil {
		return n, nil
	}
	again, failed := w.from.Watch(ctx, w.query)
	if failed != nil {
		return 0, err
	}
	_ = w.Watcher.Close()
	w.Watcher = again
	return w.Watcher.Next(ctx, dst)
}
