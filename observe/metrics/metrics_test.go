package metrics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/controller"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
	"github.com/listwatch/listwatch/workqueue"
)

type note struct {
	listwatch.Metadata `json:"metadata"`
}

// A fixture is a server of one collection, with the Metrics that measure it.
type fixture struct {
	*Metrics
	server   watchserver.Server
	notes    *store.Collection
	resource watchserver.Resource
	create   func(name string)

	watches sync.WaitGroup
	opened  chan struct{} // receives a value for each open watch
	// writeTime is the time that a write to a client takes.
	writeTime time.Duration
}

func newFixture(t *testing.T) *fixture {
	notes := memory.New[note]()
	f := &fixture{
		Metrics: New(), notes: store.CollectionOf(notes),
		resource: watchserver.Resource{Group: "demo", Version: "v1", Name: "notes"},
		opened:   make(chan struct{}, 10_000),
	}
	f.create = func(name string) {
		if _, err := notes.Create(t.Context(), note{listwatch.Metadata{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	f.server.Source = notes
	opened := &watchserver.Trace{Opened: func(context.Context, watchserver.Watch) { f.opened <- struct{}{} }}
	f.server.Trace = watchserver.JoinTraces(f.Trace(), opened)
	f.AddServer(&f.server)
	f.AddCollection(f.resource, f.notes)
	t.Cleanup(func() {
		if err := f.server.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		f.watches.Wait()
	})
	return f
}

func (f *fixture) request(ctx context.Context, target string, resource watchserver.Resource) *http.Request {
	return httptest.NewRequest("GET", target, nil).WithContext(context.WithValue(ctx, resourceKey{}, resource))
}

type resourceKey struct{}

// serve serves r, which must come from f.request.
func (f *fixture) serve(w http.ResponseWriter, r *http.Request) {
	resource := r.Context().Value(resourceKey{}).(watchserver.Resource)
	f.server.Serve(w, r, watchserver.Endpoint{Source: f.server.Source, Resource: resource})
}

// watch serves a watch on another goroutine until it ends, and returns when it is open.
func (f *fixture) watch(r *http.Request) {
	f.watches.Go(func() {
		// Recover as net/http does, because on a slow machine a watch may be aborted.
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				panic(p)
			}
		}()
		f.serve(&recorder{httptest.NewRecorder(), f.writeTime}, r)
	})
	<-f.opened
}

// A recorder is a ResponseWriter whose writes take writeTime.
type recorder struct {
	*httptest.ResponseRecorder
	writeTime time.Duration
}

func (r *recorder) Write(p []byte) (int, error) {
	<-time.After(r.writeTime)
	return r.ResponseRecorder.Write(p)
}

func TestAtMost2000SeriesWith10000Watches(t *testing.T) {
	f := newFixture(t)
	framings := []string{"application/json", "text/event-stream", "application/json-seq", "application/cbor-seq"}
	for i := range 10_000 {
		resource := watchserver.Resource{
			Group: fmt.Sprintf("g%d.example.com", i%300), Version: "v1",
			Name: fmt.Sprint("r", i%300),
		}
		if i < 200 {
			f.AddCollection(resource, f.notes)
		}
		user := watchserver.User{Name: fmt.Sprint("user", i)}
		target := fmt.Sprintf("/?watch=true&namespace=n%d&labelSelector=app%%3Da%d", i, i)
		r := f.request(watchserver.WithUser(t.Context(), user), target, resource)
		r.Header.Set("Accept", framings[i%len(framings)])
		f.watch(r)
	}
	for i := range 1000 {
		f.serve(httptest.NewRecorder(), f.request(t.Context(), fmt.Sprintf("/?limit=x%d", i), f.resource))
	}
	text := scrapeText(f.Metrics)
	if n := countSeries(text); n > 2000 || n < 500 {
		t.Errorf("got %d series, want at most 2000", n)
	}
	open := 0.0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "listwatch_watches{") {
			open += value(t, text, line[:strings.LastIndex(line, " ")])
		}
	}
	if open != 10_000 {
		t.Errorf("the gauge of open watches: got %v in all, want 10000", open)
	}
	for _, secret := range []string{"user1", "n17", "a17"} {
		if strings.Contains(text, `"`+secret) {
			t.Errorf("a label contains %s", secret)
		}
	}
}

func TestMetricsCountWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.writeTime = time.Millisecond // otherwise the lag would be zero, which means unknown
		f.server.Limits.Watches = 2
		f.create("before")
		const of = `{group="demo",resource="notes",version="v1"}`
		f.serve(httptest.NewRecorder(), f.request(t.Context(), "/", f.resource))
		f.watch(f.request(t.Context(), "/?watch=true", f.resource))
		ctx, cancel := context.WithCancelCause(t.Context())
		f.watch(f.request(ctx, "/?watch=true", f.resource))
		f.serve(httptest.NewRecorder(), f.request(t.Context(), "/?watch=true", f.resource))
		// Wait until the watches sleep, because only then does an event count as a wakeup.
		<-time.After(time.Second)
		f.create("after")
		<-time.After(time.Second)
		await(t, f, "listwatch_watch_events_total"+of, 4)
		cancel(errors.New("gone"))
		await(t, f,
			`listwatch_watches{framing="application/json",group="demo",resource="notes",transport="chunked",version="v1"}`, 1)
		text := scrapeText(f.Metrics)
		horizon := f.notes.Stats().Horizon
		for series, want := range map[string]float64{
			`listwatch_watches_opened_total{framing="application/json",transport="chunked"}`: 2,
			`listwatch_requests_refused_total{code="429",reason="watches"}`:                  1,
			`listwatch_watches_limit`:                   2,
			`listwatch_draining`:                        0,
			`listwatch_watch_lag_seconds_count`:         2,
			`listwatch_lists_total` + of:                1,
			`listwatch_list_objects_total` + of:         1,
			`listwatch_objects` + of:                    2,
			`listwatch_objects_expiring` + of:           0,
			`listwatch_objects_expired_total` + of:      0,
			`listwatch_history_writes` + of:             2,
			`listwatch_difference_horizon_version` + of: float64(horizon),
			`listwatch_frames_built_total` + of:         2,
			`listwatch_watch_wakeups_total` + of:        2,
			`listwatch_watches_behind` + of:             0,
			`listwatch_watch_projections` + of:          0,
			`listwatch_watch_lag_versions` + of:         0,
			`listwatch_store_commit_writes_count`:       0,
			`listwatch_list_duration_seconds_count`:     1,
			`listwatch_write_duration_seconds_count`:    0,
			`listwatch_watches_stalled` + of:            0,
		} {
			if got := value(t, text, series); got != want {
				t.Errorf("%s: got %v, want %v", series, got, want)
			}
		}
	})
}

func TestMetricsCountDifferentProjections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		for _, fields := range []string{"", "&fields=metadata", "&fields=metadata", "&fields=spec"} {
			f.watch(f.request(t.Context(), "/?watch=true"+fields, f.resource))
		}
		await(t, f,
			`listwatch_watches{framing="application/json",group="demo",resource="notes",transport="chunked",version="v1"}`, 4)
		if got := value(t, scrapeText(f.Metrics),
			`listwatch_watch_projections{group="demo",resource="notes",version="v1"}`); got != 2 {
			t.Errorf("got %v projections, want 2", got)
		}
	})
}

// hangTimeout ends a test that hangs. It is long because a busy machine must not make a test fail.
const hangTimeout = 3 * time.Minute

// await scrapes until series has the value want.
func await(t *testing.T, f *fixture, series string, want float64) {
	t.Helper()
	for late := time.After(hangTimeout); ; {
		if text := scrapeText(f.Metrics); strings.Contains(text, fmt.Sprintf("%s %v\n", series, want)) {
			return
		}
		select {
		case <-late:
			t.Fatalf("%s is not %v in:\n%s", series, want, scrapeText(f.Metrics))
		case <-time.After(time.Millisecond):
		}
	}
}

func TestPromtoolFindsNothing(t *testing.T) {
	text := everything(t)
	if out, err := promtool(t, strings.NewReader(text), "check", "metrics"); err != nil || out != "" {
		t.Errorf("promtool: %v: %s", err, out)
	}
}

// everything returns a scrape in which every metric occurs.
func everything(t *testing.T) string {
	f := newFixture(t)
	f.server.Limits.Watches = 10
	f.create("one")
	f.serve(httptest.NewRecorder(), f.request(t.Context(), "/", f.resource))
	f.serve(httptest.NewRecorder(), f.request(t.Context(), "/?limit=x", f.resource))
	f.watch(f.request(t.Context(), "/?watch=true", f.resource))
	ctx, cancel := context.WithCancel(t.Context())
	f.watch(f.request(ctx, "/?watch=true", f.resource))
	await(t, f, `listwatch_watch_events_total{group="demo",resource="notes",version="v1"}`, 2)
	cancel()
	f.server.Trace.Changed(t.Context(),
		watchserver.Change{Request: watchserver.Request{Resource: f.resource}, Took: time.Millisecond})
	f.Committed(3, time.Millisecond, nil)
	f.Committed(0, time.Millisecond, errors.New("disk full"))
	f.AddListener(func() (open, limit int64) { return 1, 2 })
	limited, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{MaxObjects: 1, MaxBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	f.AddCollection(watchserver.Resource{Version: "v1", Name: "limited"}, limited)
	f.AddStore(func() StoreStats {
		return StoreStats{FileBytes: 1, FreeBytes: 1, Members: 3, HealthyMembers: 2, Lost: 1, Lag: 5}
	})
	f.AddPostgres(func() PostgresStats { return PostgresStats{Following: true, Loads: 1} })

	replaced := make(chan struct{}, 1)
	r := relay.Open(f.notes, relay.Options{Trace: f.RelayTrace(f.resource, "", &relay.Trace{
		Replaced: func(listwatch.Version, int, string) { replaced <- struct{}{} },
	})})
	t.Cleanup(func() { r.Close() })
	f.AddRelay(f.resource, "protobuf", r)
	<-replaced
	await(t, f, `listwatch_relay_ready{encoding="protobuf",group="demo",resource="notes",version="v1"}`, 1)
	f.RelayTrace(f.resource, "", nil).UpstreamLost(nil, 0, false)
	f.RelayTrace(f.resource, "", nil).Patched(1, 2)

	i := &informer.Informer[note]{Source: f.notes, Trace: f.InformerTrace(f.resource), MaxLag: time.Minute}
	f.AddInformer(f.resource, i)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = i.Run(ctx) // until stop is called
	}()
	t.Cleanup(func() { stop(); <-done })
	if err := i.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	i.Trace.Lost(nil, 0, false)
	i.Trace.Received(informer.StateChange{Since: 1})

	var q workqueue.Queue[listwatch.Key]
	called := f.AddController("scaler", &q)
	called(controller.Call{
		Took: time.Millisecond, Err: errors.New("busy"),
		Retry: q.AddRateLimited(listwatch.Key{Name: "a"}, time.Hour),
	})
	called(controller.Call{Took: time.Millisecond})
	await(t, f, `listwatch_controller_calls_total{controller="scaler",result="error"}`, 1)
	await(t, f, `listwatch_controller_delayed_keys{controller="scaler"}`, 1)
	await(t, f, `listwatch_controller_retries_total{controller="scaler"}`, 1)
	i.Trace.DecodeFailed(nil, nil)
	await(t, f, `listwatch_watches_ended_total{reason="client_gone",transport="chunked"}`, 1)
	for late := time.After(hangTimeout); ; {
		text := scrapeText(f.Metrics)
		missing := missingMetrics(f.Metrics, text)
		if len(missing) == 0 {
			return text
		}
		select {
		case <-late:
			t.Fatalf("metrics are missing: %q in\n%s", missing, text)
		default:
		}
	}
}
