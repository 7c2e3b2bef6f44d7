package meter

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
	"github.com/listwatch/listwatch/internal/rest"
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

// The amounts must be the same as the amounts that watches with the parameters save.
func TestWasteIsWhatTheParametersSave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		things, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{Kind: "Thing"})
		if err != nil {
			t.Fatal(err)
		}
		put := func(n, beats, phase int) {
			t.Helper()
			name := fmt.Sprint("t", n)
			data := fmt.Appendf(nil,
				`{"metadata":{"name":%q,"labels":{"app":"a%d"},"managedFields":[{"manager":"m%d"}]},"spec":{"image":"i%d"},"status":{"beat":%d,"phase":"p%d"}}`,
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
		meter, measured := &Meter{EachMember: true}, make(chan error)
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
		for _, want := range []string{
			"initial events: 10, ", "changes: 501, ",
			"fields=-metadata.managedFields,-status.beat\n", " fields=-metadata.managedFields\n", "conflate=5s\n",
			"labelSelector=app=a0\n",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the report lacks %q:\n%s", want, out.String())
			}
		}
	})
}

// saved returns what m claims that parameter saves.
func (m *Meter) saved(parameter string) Amount {
	for _, p := range m.projections {
		if p.parameter == parameter {
			return p.changes
		}
	}
	for _, p := range m.paces {
		if parameter == "conflate="+rest.FormatConflation(p.interval) {
			return p.saved
		}
	}
	i := strings.LastIndex(parameter, "=")
	got := m.selectors[parameter[:i]][parameter[i+1:]]
	return Amount{m.changes.Events - got.Events, m.changes.Bytes - got.Bytes}
}

func TestParametersQuoteUnusualNames(t *testing.T) {
	m := Meter{EachMember: true}
	m.begin()
	m.addProjections([]byte(`{"kind":"Thing","a.b":1,"spec":{"example.com/c":{},"it's":1}}`))
	var got []string
	for _, p := range m.projections {
		got = append(got, p.parameter)
	}
	slices.Sort(got)
	if want := []string{"fields=-['a.b']", "fields=-spec", "fields=-spec['example.com/c']"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// measure returns the report about a watch of one object that changes from before to each of after.
func measure(t *testing.T, before string, after ...string) Report {
	t.Helper()
	object := func(data string) *listwatch.Object {
		return &listwatch.Object{Key: listwatch.Key{Name: "a"}, Data: []byte(data)}
	}
	var m Meter
	m.begin()
	objects := map[listwatch.Key]*listwatch.Object{}
	m.add(objects, listwatch.Event{Type: listwatch.Added, Object: object(before), Initial: true}, time.Time{})
	for _, data := range after {
		m.add(objects, listwatch.Event{Type: listwatch.Modified, Object: object(data)}, time.Time{}.Add(time.Hour))
	}
	return m.Report()
}

// The projections that every report has tell apart the changes that few clients need.
func TestCommonProjectionsHideChanges(t *testing.T) {
	object := func(managed, beat, phase, spec string) string {
		return fmt.Sprintf(`{"metadata":{"name":"a","resourceVersion":%q,"managedFields":[{"manager":%q}]},"spec":%q,`+
			`"status":{"conditions":[{"lastHeartbeatTime":%q}],"phase":%q}}`, managed+beat+phase+spec, managed, spec,
			beat, phase)
	}
	before := object("a", "a", "a", "a")
	for _, test := range []struct {
		name, after string
		hidden      []string // the first names of the projections that hide the change
	}{
		{"managedFields", object("b", "a", "a", "a"), []string{"managedFields", "heartbeats", "status", "metadata"}},
		{"a heartbeat", object("b", "b", "a", "a"), []string{"heartbeats", "status", "metadata"}},
		{"the status", object("b", "b", "b", "a"), []string{"status", "metadata"}},
		{"the spec", object("b", "b", "b", "b"), []string{"metadata"}},
		{"a label", strings.Replace(before, `"name"`, `"labels":{},"name"`, 1), nil},
	} {
		report := measure(t, before, test.after)
		var hidden []string
		for _, name := range []string{"managedFields", "heartbeats", "status", "metadata"} {
			parameter := map[string]string{
				"managedFields": "fields=-metadata.managedFields", "status": "fields=-metadata.managedFields,-status",
				"metadata": "fields=metadata,-metadata.managedFields",
				"heartbeats": "fields=-metadata.managedFields,-spec.renewTime,-status.conditions.lastHeartbeatTime," +
					"-status.conditions.lastProbeTime,-status.conditions.lastTransitionTime,-status.conditions.lastUpdateTime",
			}[name]
			i := slices.IndexFunc(report.Savings, func(s Saving) bool { return s.Parameter == parameter })
			if i < 0 {
				t.Fatalf("%s: got %+v, want a saving by %s", test.name, report.Savings, parameter)
			}
			if report.Savings[i].Changes.Events == 1 {
				hidden = append(hidden, name)
			}
		}
		if !slices.Equal(hidden, test.hidden) {
			t.Errorf("%s: hidden by %q, want %q", test.name, hidden, test.hidden)
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	object := func(beat int) *listwatch.Object {
		return &listwatch.Object{Key: listwatch.Key{Name: "a"}, Data: fmt.Appendf(nil,
			`{"metadata":{"name":"a","managedFields":[{"manager":"m%d"}]},"spec":{"data":"%01500d"},"status":{"beat":%[1]d}}`, beat, 0)}
	}
	var m Meter
	m.begin()
	objects := map[listwatch.Key]*listwatch.Object{}
	changes := [...]*listwatch.Object{object(1), object(2)}
	b.SetBytes(int64(len(changes[0].Data)))
	for i := 0; b.Loop(); i++ {
		m.add(objects, listwatch.Event{Type: listwatch.Modified, Object: changes[i%2]}, time.Time{})
	}
}
