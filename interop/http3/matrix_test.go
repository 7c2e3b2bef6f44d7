package http3

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/framing"
)

// This is the row of HTTP/3 in the matrix of package conformance: every framing, with and without
// compression. Each watcher loses its connection several times, and resumes alternately over HTTP/2
// and HTTP/3. All must receive the same history.
func TestEveryFramingDeliversTheSameHistory(t *testing.T) {
	const writes = 400
	s := start(t, nil)
	from := s.db.Version()
	type cell struct {
		framer   framing.Framer
		compress bool
	}
	var cells []cell
	for _, f := range framing.Default().Framers() {
		cells = append(cells, cell{f, false}, cell{f, true})
	}
	histories := make([][]string, len(cells))
	errs := make([]error, len(cells))
	var group sync.WaitGroup
	for i, c := range cells {
		over3 := &client.Remote{
			URL: s.url(""), HTTPClient: &http.Client{Transport: s.transport(t)},
			Framings: []framing.Framer{c.framer}, Compress: c.compress,
		}
		over2 := s.overHTTP2(t)
		over2.Framings, over2.Compress = over3.Framings, c.compress
		group.Go(func() { histories[i], errs[i] = follow(t.Context(), from, writes, over3, over2) })
	}
	var want []string
	for n := range writes {
		name := "a-" + strconv.Itoa(n%50)
		version := s.put(t, name, n)
		eventType := "MODIFIED"
		if n < 50 {
			eventType = "ADDED"
		}
		want = append(want, fmt.Sprintf(`%s %s %d %d`, eventType, name, version, n))
	}
	group.Wait()
	for i, c := range cells {
		t.Run(fmt.Sprint(strings.ReplaceAll(c.framer.MediaType(), "/", " "), " compressed ", c.compress),
			func(t *testing.T) {
				if errs[i] != nil || !slices.Equal(histories[i], want) {
					t.Errorf("got %d events, %v, want %d: %q", len(histories[i]), errs[i], len(want), histories[i])
				}
			})
	}
}

// follow returns the n events after the version from. It reads some 60 events from one of the
// sources, and resumes at the next one.
func follow(ctx context.Context, from listwatch.Version, n int, sources ...listwatch.Source) (history []string,
	err error,
) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for turn := 0; len(history) < n; turn++ {
		w, err := sources[turn%len(sources)].Watch(ctx, listwatch.Query{Start: listwatch.StartAt, Version: from})
		if err != nil {
			return history, err
		}
		for enough := len(history) + 60; len(history) < min(enough, n); {
			events := make([]listwatch.Event, 7)
			got, err := w.Next(ctx, events)
			if err != nil {
				w.Close()
				return history, err
			}
			for _, e := range events[:got] {
				from = e.Version
				_, value, _ := strings.Cut(string(e.Object.Data), `"n":`)
				history = append(history,
					fmt.Sprintf("%s %s %d %s", e.Type, e.Object.Key.Name, e.Version, strings.TrimRight(value, "}")))
			}
		}
		w.Close()
	}
	return history, nil
}
