package mutants

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/cases"
)

// eventMutants break the cases of what events mean.
var eventMutants = []Mutant{
	{"deletes-are-modified", []string{"event/create-update-delete", "event/recreate", "event/deleted-carries-delete-rv", "event/object-has-type-meta"}, cases.Interceptors{
		Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			if e.Type == listwatch.Deleted {
				e.Type = listwatch.Modified
			}
			return []listwatch.Event{e}
		}),
	}},
	{"starts-one-late", []string{"event/first-event-is-next", "event/rv-matches-write"}, cases.Interceptors{
		Source: onEvents(func(e listwatch.Event, seen int) []listwatch.Event {
			if seen == 0 {
				return nil
			}
			return []listwatch.Event{e}
		}),
	}},
	{"deletes-have-the-version-before", []string{"event/deleted-carries-delete-rv", "event/create-update-delete"}, cases.Interceptors{
		Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			if e.Type == listwatch.Deleted {
				e.Object = e.Object.At(e.Version - 1)
				e.Version--
			}
			return []listwatch.Event{e}
		}),
	}},
	{"tells-everything-twice", []string{"event/create-update-delete", "event/recreate"}, cases.Interceptors{
		Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event { return []listwatch.Event{e, e} }),
	}},
	{"sees-a-ghost", []string{"event/noop-update", "event/create-update-delete"}, cases.Interceptors{
		Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			return []listwatch.Event{ghost(e.Version), e}
		}),
	}},
	{"forgets-the-namespace", []string{"event/namespace-scope"}, cases.Interceptors{
		Source: onWatches(func(q *listwatch.Query) { q.Namespace = "default" }),
	}},
	{"drops-kind", []string{"event/object-has-type-meta"}, cases.Interceptors{Source: onData(`"kind":"Thing",`, ``)}},
	{"spells-numbers-anew", []string{"event/bytes-equal-get"}, cases.Interceptors{Source: onData(`1e400`, `1E+400`)}},
	{"another-spelling-each-time", []string{"event/bytes-equal-across-transports", "event/no-mutation-leak"}, cases.Interceptors{Source: func(s listwatch.Source) listwatch.Source {
		var padding atomic.Int64
		return onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			return []listwatch.Event{withData(e, append(bytes.Repeat([]byte(" "), int(padding.Add(1))), e.Object.Data...))}
		})(s)
	}}},
	{"passes-over-unknown-types", []string{"event/unknown-type"}, cases.Interceptors{Client: func(r *client.Remote) listwatch.Source {
		return &deaf{r}
	}}},
}

// onData replaces text in every object.
func onData(old, text string) func(listwatch.Source) listwatch.Source {
	return onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
		return []listwatch.Event{withData(e, bytes.Replace(e.Object.Data, []byte(old), []byte(text), 1))}
	})
}

// withData returns e with other bytes, which nobody shares.
func withData(e listwatch.Event, data []byte) listwatch.Event {
	o := &listwatch.Object{Key: e.Object.Key, Version: e.Object.Version, Labels: e.Object.Labels, Data: data}
	return listwatch.Event{Type: e.Type, Initial: e.Initial, Object: o, Version: e.Version}
}

// deaf is a client that tells an event it does not understand as no error of the protocol.
type deaf struct{ *client.Remote }

// Watch hides the error's code.
func (d *deaf) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := d.Remote.Watch(ctx, q)
	return &deafWatcher{w}, err
}

type deafWatcher struct{ listwatch.Watcher }

// Next hides the error's code.
func (w *deafWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	n, err := w.Watcher.Next(ctx, dst)
	if err != nil {
		err = errors.New("something went wrong")
	}
	return n, err
}
