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
	"github.com/listwatch/listwatch/internal/testkit"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A scriptedSource responds to each request with the next part of its script. After the
// last part, watches stay silent and lists return an error.
type scriptedSource struct {
	watches []scriptedWatch
	lists   []scriptedPage

	mu       sync.Mutex
	requests []request
}

// A scriptedWatch either fails immediately, or sends events and ends after some time. If
// end is nil, it stays open.
type scriptedWatch struct {
	refuse error
	events []listwatch.Event
	lives  time.Duration // the time between the last event and the end
	end    error
}

type scriptedPage struct {
	page listwatch.Page
	err  error
}

type request struct {
	isList bool
	query  listwatch.Query
	at     time.Time
}

func (s *scriptedSource) record(list bool, q listwatch.Query) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, request{list, q, time.Now()})
}

func (s *scriptedSource) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	s.record(true, q)
	if len(s.lists) == 0 {
		return listwatch.Page{}, &listwatch.Error{Code: listwatch.Unavailable, Message: "the script has no more pages"}
	}
	p := s.lists[0]
	s.lists = s.lists[1:]
	return p.page, p.err
}

func (s *scriptedSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	s.record(false, q)
	if len(s.watches) == 0 {
		return &scriptedWatcher{}, nil
	}
	script := s.watches[0]
	s.watches = s.watches[1:]
	if script.refuse != nil {
		return nil, script.refuse
	}
	return &scriptedWatcher{script: script}, nil
}

type scriptedWatcher struct{ script scriptedWatch }

func (w *scriptedWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	if n := copy(dst, w.script.events); n > 0 {
		w.script.events = w.script.events[n:]
		return n, nil
	}
	if w.script.end == nil {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	if !Sleep(ctx, w.script.lives) {
		return 0, ctx.Err()
	}
	return 0, w.script.end
}

func (w *scriptedWatcher) Close() error { return nil }

// A recordingSink records the received events.
type recordingSink struct {
	received []string
	reject   string // the event that Take rejects once
}

func (s *recordingSink) Begin(string) { s.received = append(s.received, "begin") }

func (s *recordingSink) Take(events []listwatch.Event) error {
	for _, e := range events {
		line := format(e)
		if line == s.reject {
			s.reject = ""
			return &listwatch.Error{Code: listwatch.Corrupt, Message: "refused"}
		}
		s.received = append(s.received, line)
	}
	return nil
}

// format formats an event as +a@5 (added), *a@6 (modified) or -a@7 (deleted), an initial
// event as (a@5), a bookmark as !8, and Synced as =9.
func format(e listwatch.Event) string {
	at := "@" + e.Version.String()
	switch {
	case e.Type == listwatch.Bookmark:
		return "!" + e.Version.String()
	case e.Type == listwatch.Synced:
		return "=" + e.Version.String()
	case e.Initial:
		return "(" + e.Object.Key.Name + at + ")"
	}
	return map[listwatch.EventType]string{
		listwatch.Added: "+", listwatch.Modified: "*",
		listwatch.Deleted: "-",
	}[e.Type] + e.Object.Key.Name + at
}

// parseEvents parses events in the notation of format, separated by spaces.
func parseEvents(t testing.TB, text string) (all []listwatch.Event) {
	t.Helper()
	types := map[byte]listwatch.EventType{
		'+': listwatch.Added, '*': listwatch.Modified, '-': listwatch.Deleted,
		'(': listwatch.Added,
	}
	for _, word := range strings.Fields(text) {
		switch word[0] {
		case '!':
			all = append(all, listwatch.NewBookmark(listwatch.Description{},
				listwatch.State{Version: parseVersion(t, word[1:])}))
		case '=':
			all = append(all, listwatch.NewSynced(listwatch.Description{},
				listwatch.State{Version: parseVersion(t, word[1:])}, 0))
		default:
			name, at, _ := strings.Cut(strings.TrimSuffix(word[1:], ")"), "@")
			o := &listwatch.Object{Key: listwatch.Key{Name: name}, Version: parseVersion(t, at)}
			all = append(all, listwatch.Event{
				Type: types[word[0]], Initial: word[0] == '(', Object: o,
				Version: o.Version,
			})
		}
	}
	return all
}

func parseVersion(t testing.TB, text string) listwatch.Version {
	t.Helper()
	return testkit.Must(listwatch.ParseVersion(text))(t)
}

// sends returns a watch that sends the events in text and, a minute later, ends with the
// given error.
func sends(t testing.TB, text string, end error) scriptedWatch {
	return scriptedWatch{events: parseEvents(t, text), lives: time.Minute, end: end}
}

func refuses(code listwatch.Code) scriptedWatch {
	return scriptedWatch{refuse: &listwatch.Error{Code: code}}
}

func failsWith(code listwatch.Code) error { return &listwatch.Error{Code: code} }

var clean = io.EOF
