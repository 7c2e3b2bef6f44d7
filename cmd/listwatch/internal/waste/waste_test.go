package waste

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

// receive returns a function that returns the amount of the changes that a watch with q has
// received so far.
func receive(t *testing.T, source listwatch.Source, q listwatch.Query) (changes func() Amount) {
	t.Helper()
	q.Bookmarks = true
	w, err := source.Watch(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var got Amount
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		for e, err := range listwatch.All(ctx, w) {
			if err == nil && !e.Initial && e.Type != listwatch.Synced && e.Type != listwatch.Bookmark {
				got.add(len(e.Object.Data))
			}
		}
	}()
	return func() Amount {
		cancel()
		<-done
		_ = w.Close() // its error does not concern the events
		return got
	}
}

// The amounts must be those that watches with the parameters save.
func TestWasteIsWhatTheParametersSave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		things, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{Kind: "Thing"})
		if err != nil {
			t.Fatal(err)
		}
		put := func(n, beats, phase int) {
			t.Helper()
			name := fmt.Sprint("t", n)
			data := fmt.Appendf(nil, `{"metadata":{"name":%q,"labels":{"app":"a%d"},"managedFields":[{"manager":"m%d"}]},"spec":{"image":"i%d"},"status":{"beat":%d,"phase":"p%d"}}`,
				name, n%2, beats, n, beats, phase)
			_, err := things.Replace(t.Context(), listwatch.Key{Name: name}, data)
			if errors.Is(err, listwatch.NotFound) {
				_, err = things.Create(t.Context(), data)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for n := range 10 {
			put(n, 0, 0)
		}
		server := servertest.Start(t, things, servertest.Options{})
		source := &client.Remote{URL: server.WatchURL("/things", "").String(), Transports: server.Clients("chunked")}
		defer source.Close()
		labels, err := listwatch.ParseLabelSelector("app=a1")
		if err != nil {
			t.Fatal(err)
		}
		real := map[string]func() Amount{
			"conflate=1s":          receive(t, source, listwatch.Query{Conflate: time.Second}),
			"conflate=5s":          receive(t, source, listwatch.Query{Conflate: 5 * time.Second}),
			"labelSelector=app=a1": receive(t, source, listwatch.Query{Selection: listwatch.Selection{Labels: labels}}),
		}
		for _, path := range []string{"status", "status.beat", "status.phase", "spec", "metadata.labels"} {
			p, err := listwatch.ParseProjection("-metadata.managedFields,-" + path)
			if err != nil {
				t.Fatal(err)
			}
			real["fields="+p.String()] = receive(t, source, listwatch.Query{
				Selection: listwatch.Selection{Projection: p},
			})
		}
		w, err := source.Watch(t.Context(), listwatch.Query{Bookmarks: true})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		meter, measured := New(), make(chan error)
		go func() { measured <- meter.Measure(t.Context(), w, time.Minute) }() // ends by itself
		time.Sleep(10 * time.Second)
		random := rand.New(rand.NewPCG(1, 2))
		for i := range 500 {
			put(random.IntN(12), i+1, i/100)
			time.Sleep(time.Duration(random.IntN(1+random.IntN(200))) * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		if _, err := things.Delete(t.Context(), listwatch.Key{Name: "t1"}, listwatch.Preconditions{}); err != nil {
			t.Fatal(err)
		}
		if err := <-measured; err != nil {
			t.Fatal(err)
		}
		for parameter, received := range real {
			got := received()
			saved := Amount{meter.changes.Events - got.Events, meter.changes.Bytes - got.Bytes}
			if claimed := meter.saved(parameter); claimed != saved {
				t.Errorf("%s: the meter claims %+v, but it saved %+v of %+v", parameter, claimed, saved, meter.changes)
			}
		}
		var out strings.Builder
		if err := meter.Report().Print(&out); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"initial events: 10, ", "changes: 501, ", "fields=-metadata.managedFields,-status.beat\n", " fields=-metadata.managedFields\n", "conflate=5s\n", "labelSelector=app=a0\n"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the report lacks %q:\n%s", want, out.String())
			}
		}
	})
}

// saved returns what m claims that parameter saves.
func (m *Meter) saved(parameter string) Amount {
	for _, omitted := range m.members {
		if omitted.parameter == parameter {
			return omitted.changes
		}
	}
	for _, p := range m.paces {
		if parameter == "conflate="+listwatch.FormatConflation(p.interval) {
			return p.saved
		}
	}
	got := m.labels[parameter]
	return Amount{m.changes.Events - got.Events, m.changes.Bytes - got.Bytes}
}

func TestParametersQuoteUnusualNames(t *testing.T) {
	m := New()
	m.addMembers([]byte(`{"kind":"Thing","a.b":1,"spec":{"example.com/c":{},"it's":1}}`))
	var got []string
	for _, omitted := range m.members {
		got = append(got, omitted.parameter)
	}
	slices.Sort(got)
	if want := []string{"fields=-['a.b']", "fields=-spec", "fields=-spec['example.com/c']"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
