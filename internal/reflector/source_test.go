package reflector

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A played source answers as a script says, call by call, and then not at all.
type played struct {
	watches []answer
	lists   []page

	mu    sync.Mutex
	calls []call
}

// An answer is what a watch is: an error at once, or events and then an error; nil: it stays open.
type answer struct {
	refused error
	events  []listwatch.Event
	after   time.Duration // how long it lives behind the events
	end     error
}

type page struct {
	page listwatch.Page
	err  error
}

// A call is one that the source was asked.
type call struct {
	list  bool
	query listwatch.Query
	at    time.Time
}

func (s *played) note(list bool, q listwatch.Query) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call{list, q, time.Now()})
}

func (s *played) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	s.note(true, q)
	if len(s.lists) == 0 {
		return listwatch.Page{}, &listwatch.Error{Code: listwatch.Unavailable, Message: "the script has no more pages"}
	}
	p := s.lists[0]
	s.lists = s.lists[1:]
	return p.page, p.err
}

func (s *played) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	s.note(false, q)
	if len(s.watches) == 0 {
		return &playedWatcher{}, nil
	}
	a := s.watches[0]
	s.watches = s.watches[1:]
	if a.refused != nil {
		return nil, a.refused
	}
	return &playedWatcher{answer: a}, nil
}

type playedWatcher struct{ answer answer }

func (w *playedWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	if n := copy(dst, w.answer.events); n > 0 {
		w.answer.events = w.answer.events[n:]
		return n, nil
	}
	if w.answer.end == nil {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	if !Sleep(ctx, w.answer.after) {
		return 0, ctx.Err()
	}
	return 0, w.answer.end
}

func (w *playedWatcher) Close() error { return nil }

// A taken sink writes down what it gets.
type taken struct {
	lines  []string
	refuse string // the line that can't be taken, once
}

func (s *taken) Begin() { s.lines = append(s.lines, "begin") }

func (s *taken) Take(events []listwatch.Event) error {
	for _, e := range events {
		line := spell(e)
		if line == s.refuse {
			s.refuse = ""
			return &listwatch.Error{Code: listwatch.Corrupt, Message: "refused"}
		}
		s.lines = append(s.lines, line)
	}
	return nil
}

// spell returns "+a@5", "*a@6", "-a@7", "!8" for a bookmark, "=9" for Synced; an initial object is "(a@5)".
func spell(e listwatch.Event) string {
	at := "@" + e.Version.String()
	switch {
	case e.Type == listwatch.Bookmark:
		return "!" + e.Version.String()
	case e.Type == listwatch.Synced:
		return "=" + e.Version.String()
	case e.Initial:
		return "(" + e.Object.Key.Name + at + ")"
	}
	return map[listwatch.EventType]string{listwatch.Added: "+", listwatch.Modified: "*", listwatch.Deleted: "-"}[e.Type] + e.Object.Key.Name + at
}

// events reads what spell writes, with spaces between.
func events(t testing.TB, text string) (all []listwatch.Event) {
	t.Helper()
	types := map[byte]listwatch.EventType{'+': listwatch.Added, '*': listwatch.Modified, '-': listwatch.Deleted, '(': listwatch.Added}
	for _, word := range strings.Fields(text) {
		switch word[0] {
		case '!', '=':
			all = append(all, listwatch.NewBookmark(listwatch.Description{}, version(t, word[1:]), word[0] == '='))
		default:
			name, at, _ := strings.Cut(strings.TrimSuffix(word[1:], ")"), "@")
			o := &listwatch.Object{Key: listwatch.Key{Name: name}, Version: version(t, at)}
			all = append(all, listwatch.Event{Type: types[word[0]], Initial: word[0] == '(', Object: o, Version: o.Version})
		}
	}
	return all
}

func version(t testing.TB, text string) listwatch.Version {
	t.Helper()
	v, err := listwatch.ParseVersion(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// streams is a watch that brings events and then ends.
func streams(t testing.TB, text string, end error) answer {
	return answer{events: events(t, text), after: time.Minute, end: end}
}

func refuses(code listwatch.Code) answer { return answer{refused: &listwatch.Error{Code: code}} }

func ends(code listwatch.Code) error { return &listwatch.Error{Code: code} }

var clean = io.EOF
