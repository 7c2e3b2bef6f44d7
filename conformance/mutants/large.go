package mutants

import (
	"bytes"
	"context"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/cases"
	"github.com/listwatch/listwatch/transport"
)

// largeMutants break the cases of large objects.
var largeMutants = []Mutant{
	{"client-takes-512-KiB", []string{"large/1MiB", "large/3MiB"}, cases.Interceptors{
		TransportClient: asks(func(r *transport.Request) { r.Limit = 512 << 10 }, nil),
	}},
	{"cuts-text-short", []string{"large/3MiB"}, cases.Interceptors{Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
		if len(e.Object.Data) > 2<<20 {
			e = withData(e, append(bytes.Clone(e.Object.Data[:2<<20]), `"}}`...))
		}
		return []listwatch.Event{e}
	})}},
	{"loses-one-of-many", []string{"large/burst"}, cases.Interceptors{Source: onEvents(func(e listwatch.Event, seen int) []listwatch.Event {
		if seen == 30 {
			return nil
		}
		return []listwatch.Event{e}
	})}},
	{"copies-the-state-for-each-watch", []string{"large/initial-50k"}, cases.Interceptors{Source: func(s listwatch.Source) listwatch.Source { return &copying{s} }}},
}

// unicodeMutants break the cases of text and numbers.
var unicodeMutants = []Mutant{
	{"composes-letters", []string{"unicode/roundtrip"}, cases.Interceptors{Source: onData("e\u0301", "é")}},
	{"forgets-half-pairs", []string{"unicode/surrogates"}, cases.Interceptors{Source: onData(`\udc00"`, `"`)}},
	{"spells-numbers-for-Go", []string{"unicode/numbers"}, cases.Interceptors{Source: onData(`1e400`, `1e+400`)}},
	{"mends-queries", []string{"unicode/names-in-selectors"}, cases.Interceptors{Handler: onQueries(func(value string) string { return strings.ToValidUTF8(value, "") })}},
	{"asks-in-ASCII", []string{"unicode/names-in-selectors"}, cases.Interceptors{Handler: onQueries(func(value string) string {
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
