//go:build unix

package js_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

// A nodeUnion is a program of Node.js that follows two collections of a server as one watch.
type nodeUnion struct {
	*testing.T
	watch       watchserver.Server
	nodes, pods *store.Collection
	lines       <-chan string

	hold sync.Mutex // a new watch waits for it

	mu sync.Mutex
	// Guarded by mu.
	requests []url.Values
	events   []int64 // of each watch that has ended
}

func startNodeUnion(t *testing.T) *nodeUnion {
	t.Helper()
	u := &nodeUnion{T: t}
	db, mux := memory.Open(memory.Options{}), http.NewServeMux()
	u.watch.Trace = &watchserver.Trace{Closed: func(_ context.Context, w watchserver.Watch, _ watchserver.EndReason,
		_ error,
	) {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.events = append(u.events, w.Events)
	}}
	serve := func(kind, path string) *store.Collection {
		c, err := db.Collection(store.CollectionSpec{Kind: kind})
		if err != nil {
			t.Fatal(err)
		}
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			u.watch.Serve(w, r, watchserver.Endpoint{Source: c})
		})
		return c
	}
	u.nodes, u.pods = serve("Node", "/nodes"), serve("Pod", "/pods")
	union := u.watch.Union(mux)
	mux.HandleFunc("/watch", func(w http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		u.requests = append(u.requests, r.URL.Query())
		u.mu.Unlock()
		func() {
			u.hold.Lock()
			defer u.hold.Unlock()
		}()
		union.ServeHTTP(w, r)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	program := exec.CommandContext(t.Context(), lookPath(t, "node"), "test/union/node.js", server.URL)
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1000)
	u.lines = lines
	go func() { // ends with the program
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
		close(lines)
	}()
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = program.Process.Kill() // it ends with an error then
		_ = program.Wait()
		u.watch.End(func(watchserver.Watch) bool { return true }, nil)
	})
	return u
}

func (u *nodeUnion) put(c *store.Collection, name string, value int) {
	u.Helper()
	data := fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"value":%d}}`, name, value)
	testkit.Put(u, c, data)
}

// await waits until the program has written the line.
func (u *nodeUnion) await(want string) {
	u.Helper()
	late, last := time.After(time.Minute), ""
	for {
		select {
		case line, ok := <-u.lines:
			if line == want {
				return
			}
			if last = line; !ok {
				u.Fatal("the program has ended")
			}
		case <-late:
			u.Fatalf("the last line is %q, want %q", last, want)
		}
	}
}

// After a 410, a union receives what has changed in its collections.
func TestNodeUnionReceivesTheDifference(t *testing.T) {
	u := startNodeUnion(t)
	for i := range 50 {
		u.put(u.pods, fmt.Sprint("p", i), 0)
	}
	u.put(u.nodes, "n0", 0)
	var pods []string
	for i := range 50 {
		pods = append(pods, fmt.Sprint("p", i))
	}
	slices.Sort(pods)
	before := strings.Join(pods, "=0 ") + "=0"
	after := strings.Replace(before, "p0=0", "p0=1", 1)
	u.await("n0=0 | " + before)

	u.hold.Lock()
	u.watch.End(func(watchserver.Watch) bool { return true }, &listwatch.Error{Code: listwatch.Expired})
	if _, err := u.nodes.Delete(t.Context(), listwatch.Key{Name: "n0"}, listwatch.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	u.put(u.nodes, "n1", 1)
	u.put(u.pods, "p0", 1)
	u.hold.Unlock()
	u.await("n1=1 | " + after)
	u.watch.End(func(watchserver.Watch) bool { return true }, nil)
	u.put(u.nodes, "n2", 2) // after which the watch has resumed
	u.await("n1=1 n2=2 | " + after)

	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.requests) != 3 || u.requests[1].Get("initialEventsSince") == "" ||
		u.requests[2].Get("resourceVersion") == "" {
		t.Errorf("got the requests %v, want a state, a difference and a resume", u.requests)
	}
	// The difference has three objects and the bookmark. The last event is the bookmark at the end.
	if len(u.events) < 2 || u.events[1] > 5 {
		t.Errorf("the watches had %d events, want at most 5 in the second one", u.events)
	}
}

// A union skips the states of objects that are out of date.
func TestNodeUnionIsConflated(t *testing.T) {
	u := startNodeUnion(t)
	u.put(u.nodes, "n", 0)
	u.put(u.pods, "p", 0)
	u.await("n=0 | p=0")
	const writes = 500
	for i := 1; i <= writes; i++ {
		u.put(u.nodes, "n", i)
		u.put(u.pods, "p", i)
	}
	u.await(fmt.Sprintf("n=%d | p=%d", writes, writes))
	u.watch.End(func(watchserver.Watch) bool { return true }, nil)
	u.put(u.nodes, "end", 0)
	u.await(fmt.Sprintf("n=%d end=0 | p=%d", writes, writes))
	u.mu.Lock()
	defer u.mu.Unlock()
	if got := u.requests[0].Get("conflate"); got != "200ms" {
		t.Errorf("the request has conflate=%s, want 200ms", got)
	}
	if len(u.events) == 0 || u.events[0] > writes {
		t.Errorf("the watches had %d events of %d writes, want a part of them", u.events, 2*writes)
	}
}
