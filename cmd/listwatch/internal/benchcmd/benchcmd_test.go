package benchcmd

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/crudserver"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

type flag struct {
	listwatch.Metadata `json:"metadata"`
	Spec               map[string]string `json:"spec"`
}

// A faultySource changes the events of its watches.
type faultySource struct {
	listwatch.Source
	change func([]listwatch.Event) []listwatch.Event
}

func (s faultySource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := s.Source.Watch(ctx, q)
	return &faultyWatcher{Watcher: w, change: s.change}, err
}

// A faultyWatcher collects four updates, passes them to change, and returns the result.
type faultyWatcher struct {
	listwatch.Watcher
	change  func([]listwatch.Event) []listwatch.Event
	updates []listwatch.Event
}

func (w *faultyWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	for {
		if len(w.updates) == 4 {
			n := copy(dst, w.change(w.updates))
			w.updates = nil
			return n, nil
		}
		n, err := w.Watcher.Next(ctx, dst[:1])
		if n == 0 || dst[0].Type != listwatch.Modified {
			return n, err
		}
		w.updates = append(w.updates, dst[0])
	}
}

// runBench runs the command against a server. If change is not nil, it changes the events of
// watches.
func runBench(t *testing.T, change func([]listwatch.Event) []listwatch.Event, args ...string) (code int, stdout,
	stderr string,
) {
	t.Helper()
	flags := memory.New[flag]()
	crud := &crudserver.Handler{Path: "/flags", Collection: store.CollectionOf(flags)}
	watch := &watchserver.Server{Source: faultySource{flags, change}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if change != nil && r.URL.Query().Has("watch") {
			watch.ServeHTTP(w, r)
			return
		}
		crud.ServeHTTP(w, r)
	}))
	defer s.Close()
	var out, notes bytes.Buffer
	args = append([]string{
		s.URL + "/flags", "--watchers", "1", "--duration", "500ms", "--timeout", "2m", "--transport",
		"chunked",
	}, args...)
	code = cli.Execute(t.Context(), New(), args, strings.NewReader(""), &out, &notes)
	if page, err := store.CollectionOf(flags).List(t.Context(), listwatch.Query{}); err != nil || len(page.Items) != 0 {
		t.Errorf("got objects %v, error %v; want none", page.Items, err)
	}
	return code, out.String(), notes.String()
}

// repeatThird replaces the object of the fourth event with a copy of the object of the third. The
// copy gets the version of the fourth event, because a client drops an event whose version is not
// newer than the last.
func repeatThird(e []listwatch.Event) []listwatch.Event {
	version := func(e listwatch.Event) []byte { return fmt.Appendf(nil, `"resourceVersion":"%d"`, e.Version) }
	again, err := listwatch.ParseObject(bytes.Replace(e[2].Object.Data, version(e[2]), version(e[3]), 1))
	if err != nil {
		panic(err)
	}
	e[3].Object = again
	return e
}

func TestBenchReportsFaultyServers(t *testing.T) {
	if testing.Short() {
		t.Skip("slow; make test runs it")
	}
	for _, c := range []struct {
		name   string
		change func([]listwatch.Event) []listwatch.Event
		want   string
	}{
		{
			"lost", func(e []listwatch.Event) []listwatch.Event { return e[1:] },
			"[1-9][0-9]* events missed, 0 received twice, 0 out of order",
		},
		{"repeated", repeatThird, "[1-9][0-9]* received twice, 0 out of order"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // slow, because the command waits for the events that never arrive
			code, out, notes := runBench(t, c.change, "--duration", "5s", "--timeout", "20s")
			if code != cli.ExitFailure || !regexp.MustCompile(c.want).MatchString(notes) ||
				!strings.Contains(out, "missed") {
				t.Errorf("exit code %d, stdout %s, stderr %s; want code 1 and %q", code, out, notes, c.want)
			}
		})
	}
}

func TestBenchWritesTheTemplate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "flag.json")
	if err := os.WriteFile(file, []byte(`{"metadata":{"name":"ignored"},"spec":{"a":"b"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, notes := runBench(t, nil, "--template", file); code != cli.ExitOK {
		t.Errorf("exit code %d, stderr %s; want 0", code, notes)
	}
	for text, want := range map[string]string{"[]": "must be a JSON object", "{": "unexpected end"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, notes := runBench(t, nil, "--template", file); code == cli.ExitOK ||
			!strings.Contains(notes, want) {
			t.Errorf("%s: exit code %d, stderr %s; want %q", text, code, notes, want)
		}
	}
}

func TestWatcherCountsFaults(t *testing.T) {
	w := &writer{id: "1"}
	for range 4 {
		w.log.done(w.log.next(), nil)
	}
	watch := &watcher{writer: w, recorder: new(recorder)}
	event := func(sequence string, version listwatch.Version) listwatch.Event {
		data := `{"metadata":{"annotations":{"` + sequenceAnnotation + `":"1-` + sequence + `"}}}`
		return listwatch.Event{
			Type: listwatch.Modified, Version: version,
			Object: &listwatch.Object{Data: []byte(data)},
		}
	}
	start, _ := w.log.sentAt(0)
	watch.receive([]listwatch.Event{event("0", 5), event("2", 7), event("1", 6), event("2", 7)}, start, start)
	acknowledged, _ := w.log.snapshot()
	if missed := watch.missed(acknowledged); missed != 1 || watch.duplicates != 1 || watch.outOfOrder != 1 {
		t.Errorf("got %d missed, %d received twice, %d out of order; want one of each", missed, watch.duplicates,
			watch.outOfOrder)
	}
}
