package slicesource

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
)

// The test suite for sources runs in package mapstore, because the suite needs a store to write to.

func object(t testing.TB, name string, v listwatch.Version) *listwatch.Object {
	t.Helper()
	o, err := listwatch.ParseObject(fmt.Appendf(nil, `{"metadata":{"name":%q,"resourceVersion":"%d"}}`, name, v))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestFutureVersionsAreNotYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(listwatch.Description{}, 1)
		future := listwatch.Query{Start: listwatch.StartAt, Version: 2}
		start := time.Now()
		if _, err := s.List(t.Context(), future); listwatch.CodeOf(err) != listwatch.NotYet ||
			time.Since(start) != versionTimeout {
			t.Errorf("list: got %v after %v, want NotYet after %v", err, time.Since(start), versionTimeout)
		}
		w, err := s.Watch(t.Context(), future)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(versionTimeout - 1)
		s.Append(Write{Version: 2, New: object(t, "a", 2)})
		s.Append(Write{Version: 3, New: object(t, "b", 3)})
		time.Sleep(time.Minute)
		events := make([]listwatch.Event, 8)
		if n, err := w.Next(t.Context(), events); n != 1 || events[0].Version != 3 {
			t.Errorf("watch from version 2: got %d events, %v, want version 3", n, err)
		}
	})
}

func TestCompactKeepsTheStateAndTheRest(t *testing.T) {
	s := New(listwatch.Description{}, 1)
	a, b := object(t, "a", 2), object(t, "b", 3)
	s.Append(Write{Version: 2, New: a})
	s.Append(Write{Version: 3, New: b})
	s.Append(Write{Version: 4, Old: a})
	s.Append(Write{Version: 5, Old: b, New: object(t, "b", 5)})
	s.Compact(4)
	for v, want := range map[listwatch.Version]listwatch.Code{3: listwatch.Expired, 4: listwatch.Unknown} {
		q := listwatch.Query{Start: listwatch.StartAt, Version: v, Match: listwatch.MatchExact}
		if p, err := s.List(t.Context(), q); listwatch.CodeOf(err) != want ||
			err == nil && (len(p.Items) != 1 || p.Items[0] != b) {
			t.Errorf("list at %d: got %v, %v, want object b or code %v", v, p.Items, err, want)
		}
		w, err := s.Watch(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		events := make([]listwatch.Event, 8)
		if n, err := w.Next(t.Context(), events); listwatch.CodeOf(err) != want ||
			err == nil && (n != 1 || events[0].Version != 5) {
			t.Errorf("watch from %d: got %d events, %v, want version 5 or code %v", v, n, err, want)
		}
	}
}

func ExampleSource() {
	releases := New(listwatch.Description{Kind: "Release"}, 1)
	first, err := listwatch.ParseObject([]byte(`{"kind":"Release","metadata":{"name":"v1.0.0","resourceVersion":"2"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	releases.Append(Write{Version: 2, New: first})
	releases.Append(Write{Version: 3, Old: first})
	w, err := releases.Watch(context.Background(), listwatch.Query{Start: listwatch.StartAt, Version: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	events := make([]listwatch.Event, 8)
	n, err := w.Next(context.Background(), events)
	for _, e := range events[:n] {
		fmt.Println(e.Type, string(e.Object.Data))
	}
	fmt.Println(err)
	// Output:
	// ADDED {"kind":"Release","metadata":{"name":"v1.0.0","resourceVersion":"2"}}
	// DELETED {"kind":"Release","metadata":{"name":"v1.0.0","resourceVersion":"3"}}
	// <nil>
}
