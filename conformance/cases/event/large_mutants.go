package event

import (
	"bytes"
	"context"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/mutation"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/transport"
)

// LargeMutants break the cases of large objects.
var LargeMutants = []mutation.Mutant{
	{Name: "client-takes-512-KiB", Breaks: []string{"large/1MiB", "large/3MiB"}, Defect: reference.Interceptors{
		TransportClient: mutation.Asks(func(r *transport.Request) { r.Limit = 512 << 10 }, nil),
	}},
	{Name: "cuts-text-short", Breaks: []string{"large/3MiB"}, Defect: reference.Interceptors{Source: mutation.OnEvents(func(e listwatch.Event, _ int) []listwatch.Event {
		if len(e.Object.Data) > 2<<20 {
			e = mutation.WithData(e, append(bytes.Clone(e.Object.Data[:2<<20]), `"}}`...))
		}
		return []listwatch.Event{e}
	})}},
	{Name: "loses-one-of-many", Breaks: []string{"large/burst"}, Defect: reference.Interceptors{Source: mutation.OnEvents(func(e listwatch.Event, seen int) []listwatch.Event {
		if seen == 30 {
			return nil
		}
		return []listwatch.Event{e}
	})}},
	{Name: "copies-the-state-for-each-watch", Breaks: []string{"large/initial-50k"}, Defect: reference.Interceptors{Source: func(s listwatch.Source) listwatch.Source { return &copying{s} }}},
}

// UnicodeMutants break the cases of text and numbers.
var UnicodeMutants = []mutation.Mutant{
	{Name: "composes-letters", Breaks: []string{"unicode/roundtrip"}, Defect: reference.Interceptors{Source: mutation.OnData("e\u0301", "é")}},
	{Name: "forgets-half-pairs", Breaks: []string{"unicode/surrogates"}, Defect: reference.Interceptors{Source: mutation.OnData(`\udc00"`, `"`)}},
	{Name: "spells-numbers-for-Go", Breaks: []string{"unicode/numbers"}, Defect: reference.Interceptors{Source: mutation.OnData(`1e400`, `1e+400`)}},
	{Name: "mends-queries", Breaks: []string{"unicode/names-in-selectors"}, Defect: reference.Interceptors{Handler: onQueries(func(value string) string { return strings.ToValidUTF8(value, "") })}},
	{Name: "asks-in-ASCII", Breaks: []string{"unicode/names-in-selectors"}, Defect: reference.Interceptors{Handler: onQueries(func(value string) string {
		return strings.Map(func(r rune) rune {
			if r > 0x7f && r != '\uFFFD' {
				return 'o'
			}
			return r
		}, value)
	})}},
}

// onQueries returns a handler that gets other values in queries.
func onQueries(change func(string) string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			query := r.URL.Query()
			for _, values := range query {
				for i := range values {
					values[i] = change(values[i])
				}
			}
			r.URL.RawQuery = query.Encode()
			next.ServeHTTP(w, r)
		})
	}
}

// copying is a source whose watches hold a copy of everything there is.
type copying struct{ listwatch.Source }

// Describe is that of the source below.
func (c *copying) Describe() listwatch.Description { return listwatch.Describe(c.Source) }

// Watch copies the state.
func (c *copying) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	page, err := c.List(ctx, listwatch.Query{})
	if err != nil {
		return nil, err
	}
	w, err := c.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	full := &fullWatcher{Watcher: w}
	for _, o := range page.Items {
		full.state = append(full.state, bytes.Clone(o.Data))
	}
	return full, nil
}

type fullWatcher struct {
	listwatch.Watcher
	state [][]byte
}
