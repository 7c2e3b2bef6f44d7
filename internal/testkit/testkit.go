// Package testkit has the helpers that the tests of many packages share. It imports only the root
// package, so the tests of any package but the root's own can use it.
//
// For servers, see packages testhttp and servertest; for a Source that fails on command, see
// package listwatchtest.
package testkit

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/listwatch/listwatch"
)

// Must is called as Must(f())(t). It returns the value that f returns, and fails the test if f
// returns an error.
func Must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Labels parses a label selector.
func Labels(t testing.TB, text string) listwatch.LabelSelector {
	t.Helper()
	return Must(listwatch.ParseLabelSelector(text))(t)
}

// Fields parses a field selector.
func Fields(t testing.TB, text string) listwatch.FieldSelector {
	t.Helper()
	return Must(listwatch.ParseFieldSelector(text))(t)
}

// Projection parses a projection.
func Projection(t testing.TB, text string) listwatch.Projection {
	t.Helper()
	return Must(listwatch.ParseProjection(text))(t)
}

// Watch opens a watch of s, and closes it when the test has finished.
func Watch(t testing.TB, s listwatch.Source, q listwatch.Query) listwatch.Watcher {
	t.Helper()
	w := Must(s.Watch(t.Context(), q))(t)
	t.Cleanup(func() { w.Close() })
	return w
}

// Read returns the next n events of w.
func Read(t testing.TB, w listwatch.Watcher, n int) []listwatch.Event {
	t.Helper()
	events := make([]listwatch.Event, n)
	for got := 0; got < n; {
		k, err := w.Next(t.Context(), events[got:])
		if err != nil {
			t.Fatalf("Next after %d of %d events: %v", got, n, err)
		}
		got += k
	}
	return events
}

// Put creates an object, or replaces the object with the same namespace and name.
func Put(t testing.TB, s listwatch.Store, data []byte) *listwatch.Object {
	t.Helper()
	o, err := s.Create(t.Context(), data)
	if listwatch.CodeOf(err) == listwatch.AlreadyExists {
		var named struct {
			Metadata listwatch.Metadata `json:"metadata"`
		}
		if err := json.Unmarshal(data, &named); err != nil {
			t.Fatal(err)
		}
		o, err = s.Replace(t.Context(), named.Metadata.Key(), data)
	}
	return Must(o, err)(t)
}

// WantStatus fails the test unless err is an error that a server reports with this HTTP status. The
// message of the failure begins with what. WantStatus returns err as an Error; it returns the zero
// Error if err is nil.
func WantStatus(t testing.TB, what string, err error, status int) *listwatch.Error {
	t.Helper()
	e := listwatch.AsError(err)
	if e == nil {
		e = &listwatch.Error{}
	}
	if got := e.HTTPStatus(); err == nil || got != status {
		t.Errorf("%s: got %v, status %d, want status %d", what, err, got, status)
	}
	return e
}

// HeapBytes returns the size of the live objects on the heap.
func HeapBytes() int64 {
	runtime.GC()
	runtime.GC() // the first one may only have begun to sweep
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
