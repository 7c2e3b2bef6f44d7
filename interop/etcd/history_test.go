package etcd

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/checker"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/etcd"
	"github.com/listwatch/listwatch/watchserver"
)

// readEvents returns the next n events of w in the form "TYPE name version".
func readEvents(t testing.TB, w listwatch.Watcher, n int) []string {
	t.Helper()
	var got []string
	batch := make([]listwatch.Event, n)
	for len(got) < n {
		k, err := w.Next(t.Context(), batch[:n-len(got)])
		if err != nil {
			t.Fatalf("after %v: %v", got, err)
		}
		for _, e := range batch[:k] {
			got = append(got, fmt.Sprintf("%v %s %d", e.Type, e.Object.Key.Name, e.Version))
		}
	}
	return got
}

func watchAt(t testing.TB, s listwatch.Source, v listwatch.Version) listwatch.Watcher {
	t.Helper()
	return testkit.Watch(t, s, listwatch.Query{Start: listwatch.StartAt, Version: v})
}

// logTrace returns a Trace that logs the calls.
func logTrace(t testing.TB) *etcd.Trace {
	return &etcd.Trace{
		Loaded: func(c string, n int, floor, version int64,
			_ time.Duration,
		) {
			t.Log("loaded", c, n, floor, version)
		},
		WatchLost:         func(c string, err error) { t.Log("watch lost", c, err) },
		WatchResumed:      func(c string, v int64) { t.Log("watch resumed", c, v) },
		Relisted:          func(c string, err error) { t.Log("relisted", c, err) },
		DuplicatesDropped: func(c string, v int64) { t.Log("duplicates dropped", c, v) },
	}
}

// serveOverHTTP serves c and returns a client of it.
func serveOverHTTP(t testing.TB, c *store.Collection) (*client.Remote, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(&watchserver.Server{Source: c})
	t.Cleanup(server.Close)
	return &client.Remote{URL: server.URL}, server
}

func TestClientsUseSeveralServers(t *testing.T) {
	t.Parallel()
	server := etcdtest.StartProcess(t)
	o := etcd.Options{Endpoints: []string{server.URL}, Prefix: "/three"}
	first, second := openThings(t, openDB(t, o)), openThings(t, openDB(t, o))
	remote, _ := serveOverHTTP(t, second)
	base := list(t, remote, listwatch.Query{}).Version
	w := watchAt(t, remote, base)
	rec := checker.NewRecorder(checker.Meta{Base: base})
	wr := &recordedWriter{t: t, recorder: rec, to: rec.Collection(first)}
	a := wr.create("a")
	b := wr.create("b")
	a2 := wr.update("a")
	deleted := wr.delete("b")
	// Another server also has the writes, both in a list at their version and in a list of
	// the newest state.
	for _, q := range []listwatch.Query{{Start: listwatch.StartAt, Version: deleted.Version}, {}} {
		page := list(t, remote, q)
		if page.Version < deleted.Version || len(page.Items) != 1 || string(page.Items[0].Data) != string(a2.Data) {
			t.Errorf("list at another server: got %+v, want a at version %d", page, a2.Version)
		}
	}
	want := []string{
		fmt.Sprint("ADDED a ", a.Version), fmt.Sprint("ADDED b ", b.Version), fmt.Sprint("MODIFIED a ", a2.Version),
		fmt.Sprint("DELETED b ", deleted.Version),
	}
	if got := readEvents(t, w, 2); strings.Join(got, ", ") != strings.Join(want[:2], ", ") {
		t.Errorf("got %v, want %v", got, want[:2])
	}
	// A server that starts later has the history as well.
	third, _ := serveOverHTTP(t, openThings(t, openDB(t, o)))
	if got := readEvents(t, watchAt(t, third, b.Version), 2); strings.Join(got, ", ") != strings.Join(want[2:], ", ") {
		t.Errorf("watch resumed at a third server: got %v, want %v", got, want[2:])
	}
	page, err := third.List(t.Context(),
		listwatch.Query{Start: listwatch.StartAt, Match: listwatch.MatchExact, Version: b.Version})
	if err != nil || len(page.Items) != 2 {
		t.Errorf("list of version %d at a third server: got %+v, error %v; want a and b", b.Version, page, err)
	}
}

func TestListContinuesAtAnotherServer(t *testing.T) {
	t.Parallel()
	server := etcdtest.StartProcess(t)
	o := etcd.Options{Endpoints: []string{server.URL}, Prefix: "/shared", Trace: logTrace(t)}
	first, second := openThings(t, openDB(t, o)), openThings(t, openDB(t, o))
	for i := range 5 {
		if _, err := first.Create(t.Context(), thing(fmt.Sprint("a-", i), i)); err != nil {
			t.Fatal(err)
		}
	}
	page := list(t, first, listwatch.Query{Limit: 2})
	rest := list(t, second, listwatch.Query{Continue: page.Continue})
	if rest.Version != page.Version || len(rest.Items) != 3 {
		t.Errorf("continued list at another server: got %+v, want 3 objects at %d", rest, page.Version)
	}
}

func TestCompactionExpiresHistory(t *testing.T) {
	t.Parallel()
	server := etcdtest.StartProcess(t)
	raw := etcdtest.Dial(t, server.URL)
	o := etcd.Options{Endpoints: []string{server.URL}, Prefix: "/shared", Trace: logTrace(t)}
	first := openThings(t, openDB(t, o))
	var versions []listwatch.Version
	for i := range 10 {
		obj, err := first.Create(t.Context(), thing(fmt.Sprint("a-", i), i))
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, obj.Version)
	}
	if _, err := raw.Compact(t.Context(), int64(versions[4])); err != nil {
		t.Fatal(err)
	}
	second := openThings(t, openDB(t, o))
	if _, err := second.Watch(t.Context(),
		listwatch.Query{Start: listwatch.StartAt, Version: versions[3]}); !errors.Is(err, listwatch.Expired) {
		t.Errorf("watch of a version before the compaction: got %v, want Expired", err)
	}
	got := readEvents(t, watchAt(t, second, versions[4]), 5)
	if want := fmt.Sprint("ADDED a-5 ", versions[5]); got[0] != want {
		t.Errorf("got %v, want %v first", got, want)
	}
	// A store that was open before the compaction still has the history in memory.
	readEvents(t, watchAt(t, first, versions[0]), 9)
}

func TestKeysOfATransactionStayTogether(t *testing.T) {
	t.Parallel()
	server := etcdtest.StartProcess(t)
	raw := etcdtest.Dial(t, server.URL)
	c := openThings(t, openDB(t, etcd.Options{Endpoints: []string{server.URL}, Prefix: "/txn"}))
	before, err := c.Create(t.Context(), thing("m", 0))
	if err != nil {
		t.Fatal(err)
	}
	w := watchAt(t, c, before.Version)
	var ops []clientv3.Op
	for i := 99; i >= 0; i-- {
		name := fmt.Sprintf("a-%02d", i)
		// etcd sends such large values in fragments.
		value := fmt.Sprintf(`{"kind":"Thing","metadata":{"namespace":"default","name":%q},"x":%q}`, name,
			strings.Repeat("x", 100<<10))
		ops = append(ops, clientv3.OpPut("/txn/things.example.com/default/"+name, value))
	}
	ops = append(ops, clientv3.OpDelete("/txn/things.example.com/default/m"))
	if _, err := raw.Txn(t.Context()).Then(ops[:70]...).Commit(); err != nil {
		t.Fatal(err)
	}
	got, err := raw.Txn(t.Context()).Then(ops[70:]...).Commit()
	if err != nil {
		t.Fatal(err)
	}
	batch := make([]listwatch.Event, 80)
	for i, want := range []int{70, 31} {
		n, err := w.Next(t.Context(), batch)
		if err != nil || n != want {
			t.Fatalf("transaction %d: got %d events in a batch, error %v; want %d", i, n, err, want)
		}
		for j := range n - 1 {
			if batch[j].Version != batch[j+1].Version || batch[j].Object.Key.Compare(batch[j+1].Object.Key) >= 0 {
				t.Errorf("event %d is %v at %d and the next is %v at %d, want one version and ascending keys", j,
					batch[j].Object.Key, batch[j].Version, batch[j+1].Object.Key, batch[j+1].Version)
			}
		}
	}
	if last := batch[30]; last.Version != listwatch.Version(got.Header.Revision) || last.Type != listwatch.Deleted {
		t.Errorf("the last event is %v at %d, want DELETED at %d", last.Type, last.Version, got.Header.Revision)
	}
}

func TestKubernetesKeysAreServedReadOnly(t *testing.T) {
	t.Parallel()
	server := etcdtest.StartProcess(t)
	raw := etcdtest.Dial(t, server.URL)
	put := func(key, value string) listwatch.Version {
		got, err := raw.Put(t.Context(), key, value)
		if err != nil {
			t.Fatal(err)
		}
		return listwatch.Version(got.Header.Revision)
	}
	v := put("/registry/example.com/things/default/a",
		`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a","namespace":"default","uid":"u","generation":1},"spec":{"n":1}}`+"\n")
	o := etcd.Options{
		Endpoints: []string{server.URL}, Prefix: "/registry", Layout: etcd.KubernetesLayout,
		ReadOnly: true,
	}
	c := openThings(t, openDB(t, o))
	page := list(t, c, listwatch.Query{})
	if len(page.Items) != 1 {
		t.Fatalf("list: got %+v, want one object", page)
	}
	want := fmt.Sprintf(
		`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"%d","generation":1},"spec":{"n":1}}`, v)
	if got := string(page.Items[0].Data); got != want || page.Items[0].Fields["spec.n"] != "1" {
		t.Errorf("got %s with fields %v, want %s with spec.n=1", got, page.Items[0].Fields, want)
	}
	if _, err := c.Create(t.Context(),
		thing("b", 1)); listwatch.AsError(err).HTTPStatus() != http.StatusMethodNotAllowed {
		t.Errorf("create: got %v, want status 405", err)
	}
	w := watchAt(t, c, page.Version)
	put("/registry/example.com/things/default/a", "k8s\x00\x0a\x0b")
	if got := readEvents(t, w, 1); !strings.HasPrefix(got[0], "DELETED a") {
		t.Errorf("event of an unreadable value: got %v, want DELETED a", got)
	}
	readable := put("/registry/example.com/things/default/a", `{"kind":"Thing","metadata":{}}`)
	if got, want := readEvents(t, w, 1)[0], fmt.Sprint("ADDED a ", readable); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// An event that the history has dropped is also dropped from memory, even if a stalled reader has
// not read it. The test limits the history to 1 MiB and writes much more.
func TestStalledReadersUseNoExtraMemory(t *testing.T) {
	server := etcdtest.StartProcess(t)
	c := openThings(t, openDB(t,
		etcd.Options{Endpoints: []string{server.URL}, History: listwatch.Retention{Bytes: 1 << 20}}))
	padding := strings.Repeat("x", 64<<10)
	write := func(i int) *listwatch.Object {
		o, err := c.Replace(t.Context(), key("a"),
			fmt.Appendf(nil, `{"metadata":{"namespace":"default","name":"a"},"x":"%d%s"}`, i, padding))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	first, err := c.Create(t.Context(), thing("a", 0))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		watchAt(t, c, first.Version)
	}
	for i := range 64 { // fill the history and gRPC's buffers
		write(i)
	}
	// The store may lag behind its writes. The list returns when the store has received all of
	// them.
	list(t, c, listwatch.Query{Limit: 1})
	before := testkit.HeapBytes()
	const writes, limit = 256, 4 << 20
	for i := range writes {
		write(i)
	}
	list(t, c, listwatch.Query{Limit: 1})
	if grown := testkit.HeapBytes() - before; grown > limit {
		t.Errorf("the heap grew by %d KiB during writes of %d KiB, want at most %d KiB", grown>>10, writes*64,
			limit>>10)
	}
}

func TestWatchersShareOneWatchOfEtcd(t *testing.T) {
	t.Parallel()
	server := etcdtest.StartProcess(t)
	proxy := etcdtest.StartProxy(t, server.URL)
	var counts traceCounts
	c := openThings(t, openDB(t,
		etcd.Options{Endpoints: []string{proxy.URL}, HistoryRevisions: -1, Trace: counts.trace()}))
	first, err := c.Create(t.Context(), thing("a", 0))
	if err != nil {
		t.Fatal(err)
	}
	watchers := make([]listwatch.Watcher, 1000)
	for i := range watchers {
		watchers[i] = watchAt(t, c, first.Version)
	}
	second, err := c.Create(t.Context(), thing("b", 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range watchers {
		if got, want := readEvents(t, w, 1)[0], fmt.Sprint("ADDED b ", second.Version); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	// On a busy machine the watch may be lost and opened again.
	if n, lost := proxy.Watches.Load(), counts.lost.Load(); n == 0 || n > 1+lost {
		t.Errorf("got %d watches of etcd, %d of which were lost, want 1 more", n, lost)
	}
}
