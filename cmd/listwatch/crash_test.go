package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/checker"
	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
)

var (
	crashFor   = flag.Duration("crash.for", 4*time.Second, "how long the server is killed again and again")
	crashEvery = flag.Duration("crash.every", 500*time.Millisecond,
		"how long a server lives between it serves and is killed")
)

const crashWriters = 8

// crashTest kills a server repeatedly while writers and watchers use it.
type crashTest struct {
	*testing.T
	url      string // URL of all pods
	recorder *checker.Recorder

	mu sync.Mutex
	// Guarded by mu.
	up      chan struct{} // closed while the server is running
	acked   []acknowledgement
	unknown int // writes whose response was lost
	resumed int // streams that resumed from a version
	lists   int // lists that succeeded
}

// observedChange is one change of an object, as a writer or a watcher saw it. The response
// to a delete contains only the UID of the object. If a writer saw a delete, version is
// therefore zero and data is the UID.
type observedChange struct {
	kind    listwatch.EventType
	key     listwatch.Key
	version listwatch.Version
	data    string
}

// acknowledgement is the response to a write. began and acked are the recorder's times
// before the request and after the response.
type acknowledgement struct {
	observedChange
	began, acked time.Duration
}

func changeOf(kind listwatch.EventType, o *listwatch.Object) observedChange {
	return observedChange{kind, o.Key, o.Version, string(o.Data)}
}

// The server is killed repeatedly while writers write and watchers watch over all
// transports. Afterwards every acknowledged write must exist, no two writes may have the
// same version, and every watcher must have seen every event exactly once.
func TestKilledServerKeepsAcknowledgedWrites(t *testing.T) {
	if testing.Short() {
		t.Skip("slow; make test runs it")
	}
	t.Parallel()
	address := ports.Address(t)
	c := &crashTest{T: t, url: "http://" + address + "/api/v1/pods", up: make(chan struct{})}
	args := []string{
		"serve", "--addr", address, "--data", filepath.Join(t.TempDir(), "crash.db"), "--history-age",
		"-1s",
	}
	server := startProcess(t, nil, args...)
	server.awaitURL(t)
	c.setUp(true)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writers, watchers sync.WaitGroup
	start := c.list().Version
	c.recorder = checker.NewRecorder(checker.Meta{
		Name: "kill -9", Base: start, AllCompactionsRecorded: true,
		Requirements: checker.Requirements{
			Writes: 100, Events: 400, Lists: 2, Faults: map[string]int{"kill": 2},
		},
	})
	selected, err := listwatch.ParseLabelSelector("app=a1")
	if err != nil {
		t.Fatal(err)
	}
	all := listwatch.Query{Start: listwatch.StartAt, Version: start}
	some := all
	some.Labels = selected
	watchers.Go(func() { c.listRepeatedly(ctx) })
	var seen []*watchedChanges
	for i, w := range []struct {
		transport transport.Client
		query     listwatch.Query
	}{{&chunked.Client{}, all}, {&chunked.Client{}, some}, {&h2.Client{}, all}, {&websocket.Client{}, all}} {
		s := &watchedChanges{query: w.query, changed: make(chan struct{}, 1)}
		seen = append(seen, s)
		watch := c.watch(ctx, fmt.Sprint("w", i), w.transport, s) // open before the first kill
		watchers.Go(func() { s.read(ctx, watch) })
	}
	writing, stopWriting := context.WithCancel(ctx)
	for i := range crashWriters {
		writers.Go(func() { c.write(writing, i) })
	}

	kills := 0
	for begin := time.Now(); time.Since(begin) < *crashFor || !c.hasCovered(kills); kills++ {
		for i, s := range seen {
			if err := s.failure(); err != nil {
				t.Fatalf("watcher %d ended with %v", i, err)
			}
		}
		<-time.After(*crashEvery)
		c.setUp(false)
		server.kill()
		c.recorder.RecordFault(checker.Fault{Kind: "kill", At: c.recorder.Elapsed()})
		server = startProcess(t, nil, args...)
		server.awaitURL(t)
		c.setUp(true)
	}
	stopWriting()
	writers.Wait()

	truth := c.storedHistory(start)
	c.verifyWrites(truth)
	for i, s := range seen {
		c.verifyWatcher(i, s, truth)
	}
	cancel()
	watchers.Wait()
	c.checkGuarantees(truth)
	t.Logf(
		"%d kills, %d acknowledged writes, %d writes with a lost response, %d events in the history, %d streams resumed",
		kills, len(c.acked), c.unknown, len(truth), c.resumed)
}

// hasCovered reports whether the test has seen enough kills, writes, resumed streams and lists. On
// a loaded machine this may take longer than crashFor.
func (c *crashTest) hasCovered(kills int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return kills >= 2 && len(c.acked) >= 200 && c.resumed >= kills && c.lists >= 2
}

func (c *crashTest) setUp(up bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if up {
		close(c.up)
	} else {
		c.up = make(chan struct{})
	}
}

// awaitUp waits until the server is running or ctx ends.
func (c *crashTest) awaitUp(ctx context.Context) {
	c.mu.Lock()
	up := c.up
	c.mu.Unlock()
	select {
	case <-up:
	case <-ctx.Done():
	}
}

func (c *crashTest) list() listwatch.Page {
	c.Helper()
	return testkit.Must((&client.Remote{URL: c.url}).List(c.Context(), listwatch.Query{}))(c)
}

// write changes three objects, one write after another, until ctx ends. Their names contain the
// number of the writer, so no other writer changes these objects.
func (c *crashTest) write(ctx context.Context, writer int) {
	exists := make(map[string]bool)
	h := &http.Client{Transport: &http.Transport{}}
	defer h.CloseIdleConnections()
	for i := 0; ctx.Err() == nil; i++ {
		c.awaitUp(ctx)
		name := fmt.Sprintf("w%d-%d", writer, rand.IntN(3))
		pods := strings.Replace(c.url, "/pods", "/namespaces/default/pods", 1)
		kind, method, url := listwatch.Added, http.MethodPost, pods
		switch known := exists[name]; {
		case known && rand.IntN(4) == 0:
			kind, method, url = listwatch.Deleted, http.MethodDelete, pods+"/"+name
		case known:
			kind, method, url = listwatch.Modified, http.MethodPut, pods+"/"+name
		}
		body := fmt.Appendf(nil, `{"metadata":{"name":%q,"labels":{"app":"a%d"}},"n":%d}`, name, rand.IntN(2), i)
		began := c.recorder.Elapsed()
		code, response, err := send(h, method, url, body)
		switch {
		case err != nil || code >= 500:
			c.mu.Lock()
			c.unknown++
			c.mu.Unlock()
			c.awaitUp(ctx)
			if code, _, err = send(h, http.MethodGet, pods+"/"+name, nil); err == nil {
				exists[name] = code == http.StatusOK
			}
		case code == http.StatusConflict || code == http.StatusNotFound:
			// 409 means that the object exists, and 404 that it does not.
			exists[name] = code == http.StatusConflict
		case code > 299:
			c.Errorf("%s %s: %d %s", method, url, code, response)
			return
		default:
			exists[name] = kind != listwatch.Deleted
			c.recordAcknowledgement(kind, listwatch.Key{Namespace: "default", Name: name}, response, began)
		}
	}
}

// recordAcknowledgement records the response to a write.
func (c *crashTest) recordAcknowledgement(kind listwatch.EventType, key listwatch.Key, response []byte,
	began time.Duration,
) {
	acked := c.recorder.Elapsed()
	f := observedChange{kind: kind, key: key}
	if kind == listwatch.Deleted {
		f.data = string(rawjson.Lookup(response, "details", "uid"))
	} else if o, err := listwatch.ParseObject(response); err == nil {
		f = changeOf(kind, o)
	}
	if f.data == "" {
		c.Errorf("%v of %v: cannot parse the response %s", kind, key, response)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked = append(c.acked, acknowledgement{f, began, acked})
}

// send sends a request without a context, because the outcome of every write must be known.
func send(h *http.Client, method, url string, body []byte) (code int, response []byte, err error) {
	r, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := h.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	response, err = io.ReadAll(res.Body)
	return res.StatusCode, response, err
}

// listRepeatedly lists the pods until ctx ends. The checker verifies the recorded lists.
func (c *crashTest) listRepeatedly(ctx context.Context) {
	source := c.recorder.Watcher("lister").Source(&client.Remote{URL: c.url}, "h1")
	pace := time.NewTicker(5 * time.Millisecond) // leaves CPU time for the writers and watchers
	defer pace.Stop()
	for ctx.Err() == nil {
		<-pace.C
		c.awaitUp(ctx)
		_, err := source.List(ctx, listwatch.Query{})
		if errors.Is(err, listwatch.Expired) {
			c.Error(err)
		}
		if err == nil {
			c.mu.Lock()
			c.lists++
			c.mu.Unlock()
		}
	}
}

// watchedChanges holds the changes that one watcher has seen.
type watchedChanges struct {
	query   listwatch.Query
	changed chan struct{} // receives a token when watchedChanges.changes may have grown

	mu sync.Mutex
	// Guarded by mu.
	changes []observedChange
	err     error
}

// failure returns the error that ended the watch, or nil.
func (s *watchedChanges) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// watch opens a watch of the pods that resumes after each kill.
func (c *crashTest) watch(
	ctx context.Context, name string, over transport.Client, s *watchedChanges,
) listwatch.Watcher {
	c.Helper()
	recorder := c.recorder.Watcher(name)
	trace := recorder.Trace()
	opened := trace.Opened
	trace.Opened = func(transport string, from listwatch.Version) {
		opened(transport, from)
		c.mu.Lock()
		defer c.mu.Unlock()
		if from > s.query.Version {
			c.resumed++
		}
	}
	remote := &client.Remote{
		URL: c.url, Transports: []transport.Client{over}, Trace: trace,
		Backoff: listwatch.Backoff{Min: 20 * time.Millisecond, Max: 100 * time.Millisecond},
	}
	w, err := recorder.Source(remote, name).Watch(ctx, s.query)
	if err != nil {
		c.Fatal(err)
	}
	return w
}

// read records the events of w until ctx ends.
func (s *watchedChanges) read(ctx context.Context, w listwatch.Watcher) {
	defer w.Close()
	for e, err := range listwatch.All(ctx, w) {
		s.mu.Lock()
		if err != nil && !errors.Is(err, context.Canceled) {
			s.err = err
		}
		if err == nil && e.Object != nil {
			s.changes = append(s.changes, changeOf(e.Type, e.Object))
		}
		s.mu.Unlock()
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
}
