package apierror

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"regexp"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/mutation"
	"github.com/listwatch/listwatch/conformance/reference"
)

// Mutants break the cases of errors and Status.
var Mutants = []mutation.Mutant{
	{Name: "errors-without-a-reason", Breaks: []string{"error/status-shape"}, Defect: reference.Interceptors{Handler: mutation.OnErrors(func(status int, body []byte) (int, []byte) {
		return status, bytes.Replace(body, []byte(`"reason"`), []byte(`"cause"`), 1)
	})}},
	{Name: "always-400", Breaks: []string{"error/http-code-equals-status", "error/404", "error/422-causes", "error/status-shape"}, Defect: reference.Interceptors{
		Handler: mutation.OnErrors(func(_ int, body []byte) (int, []byte) { return http.StatusBadRequest, body }),
	}},
	{Name: "errors-without-causes", Breaks: []string{"error/422-causes"}, Defect: reference.Interceptors{Handler: mutation.OnErrors(func(status int, body []byte) (int, []byte) {
		return status, regexp.MustCompile(`"causes":\[.*?\]`).ReplaceAll(body, []byte(`"causes":[]`))
	})}},
	{Name: "errors-in-plain-text", Breaks: []string{"error/negotiated", "error/status-shape"}, Defect: reference.Interceptors{Handler: mutation.OnErrors(func(status int, _ []byte) (int, []byte) {
		return status, []byte("no")
	})}},
	{Name: "fails-without-a-word", Breaks: []string{"error/in-stream"}, Defect: reference.Interceptors{Source: func(s listwatch.Source) listwatch.Source { return &mutation.Mute{Source: s} }}},
	{Name: "client-errors-have-no-code", Breaks: []string{"error/client-typed", "error/html-502"}, Defect: reference.Interceptors{Client: func(r *client.Remote) listwatch.Source {
		return &codeless{r}
	}}},
	{Name: "client-hammers", Breaks: []string{"error/retry-after", "error/no-retry-on-4xx"}, Defect: reference.Interceptors{Client: func(r *client.Remote) listwatch.Source {
		return &hammering{r}
	}}},
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
