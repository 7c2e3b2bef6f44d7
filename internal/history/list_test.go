package history

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unique"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// newColorLog returns a log of five objects. The second one is red, and the others are
// blue.
func newColorLog(t *testing.T) *Log {
	t.Helper()
	l := New(Options{})
	for i, color := range []string{"blue", "red", "blue", "blue", "blue"} {
		put(l, listwatch.Key{Namespace: "n", Name: fmt.Sprint("o", i)}, map[string]string{"color": color})
	}
	return l
}

func list(t *testing.T, l *Log, q listwatch.Query) listwatch.Page {
	t.Helper()
	return testkit.Must(l.List(t.Context(), q))(t)
}

func TestFullPageContinuesIfItsNamespaceDoes(t *testing.T) {
	l := newColorLog(t)
	put(l, listwatch.Key{Namespace: "o", Name: "o0"}, map[string]string{"color": "blue"})
	red := listwatch.Query{Selection: listwatch.Selection{Labels: testkit.Labels(t, "color=red")}, Limit: 1}
	p := list(t, l, red)
	if len(p.Items) != 1 || p.Continue == "" || p.Remaining != -1 {
		t.Errorf(
			"a full page before objects that are not selected: %+v, want a continue token and an unknown number of objects", p)
	}
	red.Continue = p.Continue
	if p = list(t, l, red); len(p.Items) != 0 || p.Continue != "" || p.Remaining != 0 {
		t.Errorf("the next page: %+v, want an empty last page", p)
	}
	red.Continue, red.Limit = "", 2
	if p = list(t, l, red); len(p.Items) != 1 || p.Continue != "" {
		t.Errorf("a page that is not full: %+v, want the last page", p)
	}
	if p = list(t, l, listwatch.Query{
		Selection: listwatch.Selection{Namespace: "n", Labels: testkit.Labels(t, "color=blue")}, Limit: 4,
	}); len(p.Items) != 4 || p.Continue != "" {
		t.Errorf("a full page at the end of its namespace: %+v, want the last page", p)
	}
}

func TestRemainingIsCountedIfTheTokenLacksIt(t *testing.T) {
	l := newColorLog(t)
	p := list(t, l, listwatch.Query{Limit: 1})
	l.Compact()
	put(l, listwatch.Key{Namespace: "n", Name: "o9"}, nil)
	l.Compact()
	_, err := l.List(t.Context(), listwatch.Query{Limit: 1, Continue: p.Continue})
	fresh := listwatch.AsError(err)
	if !errors.Is(err, listwatch.Expired) || fresh.Continue == "" {
		t.Fatalf("got %v with token %q, want Expired with a fresh token", err, fresh.Continue)
	}
	for token, want := fresh.Continue, 4; token != ""; want-- {
		p = list(t, l, listwatch.Query{Limit: 1, Continue: token})
		if len(p.Items) != 1 || p.Remaining != want || p.Version != 6 {
			t.Fatalf("got %+v, want one object at version 6 and %d remaining", p, want)
		}
		token = p.Continue
	}
}

func TestTokensSayWhereEtcdHasAnotherOrder(t *testing.T) {
	l := New(Options{})
	for _, namespace := range []string{"a", "prod", "prod-eu", "prod-eu-1", "product", "test-1"} {
		put(l, listwatch.Key{Namespace: namespace, Name: "x"}, nil)
		put(l, listwatch.Key{Namespace: namespace, Name: "y"}, nil)
	}
	for key, want := range map[listwatch.Key]bool{
		{Namespace: "a", Name: "x"}:         true,
		{Namespace: "prod", Name: "x"}:      false, // prod-eu is before prod in etcd
		{Namespace: "prod-eu", Name: "y"}:   false,
		{Namespace: "prod-eu-1", Name: "x"}: false,
		{Namespace: "product", Name: "y"}:   true,
		{Namespace: "test-1", Name: "x"}:    true,
	} {
		p := list(t, l, listwatch.Query{Limit: 1, Continue: ContinueToken{Key: before(key)}.Encode()})
		if token, err := ParseContinueToken(p.Continue); err != nil || token.Key != key || token.Bytewise != want {
			t.Errorf("got the token %+v, %v, want %t after %v", token, err, want, key)
		}
	}
	p := list(t, l, listwatch.Query{Selection: listwatch.Selection{Namespace: "prod"}, Limit: 1})
	if token, err := ParseContinueToken(p.Continue); err != nil || !token.Bytewise {
		t.Errorf("in one namespace: got the token %+v, %v", token, err)
	}
}

// before returns a key that sorts right before k.
func before(k listwatch.Key) listwatch.Key {
	k.Name = string(rune(k.Name[0]-1)) + "~"
	return k
}

func TestListBeforeTheFloorFailsLikeKubernetes(t *testing.T) {
	l := newColorLog(t)
	l.CompactTo(3)
	_, err := l.List(t.Context(), listwatch.Query{Start: listwatch.StartAt, Match: listwatch.MatchExact, Version: 2})
	if !errors.Is(err, listwatch.Expired) ||
		!strings.HasSuffix(err.Error(), "The resourceVersion for the provided list is too old.") {
		t.Errorf("got error %v, want Expired with the message of Kubernetes", err)
	}
}

func TestCompactToKeepsTheStateAtItsVersion(t *testing.T) {
	l := newColorLog(t)
	l.CompactTo(3)
	l.CompactTo(2)
	if s := l.Stats(); s.Oldest != 3 || l.records.len != 2 {
		t.Errorf("floor %d, %d records, want floor 3 and the 2 records after it", s.Oldest, l.records.len)
	}
	for v := range listwatch.Version(6) {
		_, err := l.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: v})
		if (v < 3) != errors.Is(err, listwatch.Expired) {
			t.Errorf("watch from %d: %v", v, err)
		}
	}
	if p := list(t, l, listwatch.Query{
		Start: listwatch.StartAt, Match: listwatch.MatchExact,
		Version: 3,
	}); len(p.Items) != 3 {
		t.Errorf("%d objects at version 3, want 3", len(p.Items))
	}
	l.CompactTo(99)
	if s := l.Stats(); s.Oldest != 5 || l.records.len != 0 {
		t.Errorf("floor %d, %d records, want the newest version and no records", s.Oldest, l.records.len)
	}
}

func TestStatsCountRecordsFramesAndWakeups(t *testing.T) {
	l := New(Options{})
	if s := l.Stats(); s.Records != 0 || !s.Window.OldestAt.IsZero() || s.Wakeups != 0 || s.Frames.Built != 0 {
		t.Errorf("an empty log: got %+v, want no records, wake-ups or frames", s)
	}
	w, err := l.Watch(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	events := make([]listwatch.Event, 4)
	if n, err := w.(listwatch.Poller).Poll(events); n != 0 || err != nil {
		t.Fatalf("got %d events, %v, want none", n, err)
	}
	woken := make(chan struct{})
	w.(listwatch.Poller).Wake(func() { close(woken) })
	start := time.Now()
	put(l, listwatch.Key{Name: "a"}, nil)
	<-woken
	refs := make([]frames.Ref, len(events))
	if n, err := w.(*Cursor).PollFrames(events, refs); n != 1 || err != nil {
		t.Fatalf("got %d events, %v, want one", n, err)
	}
	form := unique.Make[any]("form")
	for range 3 {
		if _, err := refs[0].Frames.GetOrBuild(form,
			func() ([]byte, error) { return []byte("frame"), nil }); err != nil {
			t.Fatal(err)
		}
	}
	s := l.Stats()
	for s.Wakeups == 0 { // a wake-up is counted after its function has returned
		runtime.Gosched()
		s = l.Stats()
	}
	if s.Records != 1 || s.Window.OldestAt.Before(start) || s.Wakeups != 1 || s.Frames.Built != 1 ||
		s.Frames.Bytes != 5 {
		t.Errorf("got %+v, want 1 record, 1 wake-up, and 1 frame of 5 bytes", s)
	}
}
