package relay_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/encodingtest"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/persist"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// serveEncoded serves s, whose objects are not JSON, and returns a client of the server.
func serveEncoded(t *testing.T, s listwatch.Source, transportName string) *client.Remote {
	t.Helper()
	server := servertest.Start(t, s, servertest.Options{
		Configure: func(ws *watchserver.Server) { ws.Framings = encodingtest.Framings },
		TLS:       transportName == "h2",
	})
	return &client.Remote{
		URL: server.URL("/things"), Network: server.Network, Compress: true,
		Transports: []transport.Client{server.Client(transportName)},
		Framings:   []framing.Framer{encodingtest.Framing{}},
	}
}

// texts formats the next n events of w.
func texts(t *testing.T, w listwatch.Watcher, n int) (lines []string) {
	t.Helper()
	for _, e := range testkit.Read(t, w, n) {
		lines = append(lines, text(e))
	}
	return lines
}

func text(e listwatch.Event) string {
	return fmt.Sprint(e.Type, e.Initial, e.Version, e.Object.Key, e.Object.Labels, encodingtest.Text(e.Object))
}

// The bytes of objects pass a server, a client, a relay, and another server and client unchanged,
// also where the relay makes events itself.
func TestRelayCarriesAnEncoding(t *testing.T) {
	for _, name := range servertest.TransportNames {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := openOrigin(t)
				o.put("a", "red")
				o.put("b", "red")
				upstream := serveEncoded(t, encodingtest.Source{Source: o}, name)
				options := relay.Options{Fields: []string{"spec.color"}, BackfillVersions: -1}
				r := awaitReady(t, openRelay(t, upstream, options))
				remote := serveEncoded(t, r, name)
				checkEvents(t, o, remote)
				checkLists(t, o, remote)
				has := stateOf(t, r)
				o.put("d", "red")
				o.remove("a")
				time.Sleep(time.Second) // until the relay has both
				checkDifference(t, remote, has)
			})
		})
	}
}

// checkEvents compares the events of remote with those of o.
func checkEvents(t *testing.T, o *origin, remote *client.Remote) {
	t.Helper()
	var pairs [][2]listwatch.Watcher
	for _, selector := range []string{"", "spec.color=red", "spec.color!=red", "metadata.name=b"} {
		for _, pace := range []time.Duration{0, -1} {
			q := listwatch.Query{Conflate: pace}
			q.Fields = testkit.Fields(t, selector)
			pairs = append(pairs, [2]listwatch.Watcher{testkit.Watch(t, o, q), testkit.Watch(t, remote, q)})
		}
	}
	synctest.Wait()
	o.put("a", "blue") // it leaves a selection
	o.remove("b")
	o.put("b", "red")
	o.put("c", "red")
	for i, p := range pairs {
		w := p[0].(listwatch.Poller)
		var batch [64]listwatch.Event
		n, err := w.Poll(batch[:])
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, e := range batch[:n] {
			want = append(want, text(e))
		}
		if diff := cmp.Diff(want, texts(t, p[1], n)); diff != "" {
			t.Errorf("watch %d (-store +relay):\n%s", i, diff)
		}
	}
}

// checkLists compares a list in pages with the list of o.
func checkLists(t *testing.T, o *origin, remote *client.Remote) {
	t.Helper()
	want := mustList(t, o, listwatch.Query{}).Items
	q := listwatch.Query{Limit: 2}
	var got []*listwatch.Object
	for {
		page := mustList(t, remote, q)
		got = append(got, page.Items...)
		if page.Remaining != len(want)-len(got) {
			t.Errorf("after %d objects, %d remain, want %d", len(got), page.Remaining, len(want)-len(got))
		}
		if page.Continue == "" {
			break
		}
		q = listwatch.Query{Limit: 2, Continue: page.Continue}
	}
	if len(got) != len(want) {
		t.Fatalf("got %d objects, want %d", len(got), len(want))
	}
	for i, o := range got {
		if encodingtest.Text(o) != string(want[i].Data) || o.Version != want[i].Version || o.Data[0] == '{' {
			t.Errorf("got %s at %d, want %s", encodingtest.Text(o), o.Version, want[i].Data)
		}
	}
	if d := remote.Describe(); d.Kind != "Thing" || d.Encoding != (encodingtest.Encoding{}) {
		t.Errorf("the client describes %+v, want Thing with its encoding", d)
	}
}

// checkDifference checks that the client receives the difference to an earlier state.
func checkDifference(t *testing.T, remote *client.Remote, has listwatch.State) {
	t.Helper()
	q := everything
	q.Start, q.Version, q.InitialEvents, q.Since = listwatch.StartAt, has.Version, listwatch.InitialEventsYes, has
	events := testkit.Read(t, testkit.Watch(t, remote, q), 3)
	if since, ok := events[2].Since(); !ok || since != has.Version {
		t.Errorf("got events up to %v, want a difference since %d", events[2], has.Version)
	}
	gone := events[1]
	const want = `{"kind":"Thing","apiVersion":"v1","metadata":{"name":"a","namespace":"default","resourceVersion":"%d"}}`
	if got := encodingtest.Text(gone.Object); gone.Type != listwatch.Deleted || gone.Object.Data[0] == '{' ||
		got != fmt.Sprintf(want, gone.Version) {
		t.Errorf("got %v of %s, want the key of the deleted object, encoded", gone.Type, got)
	}
}

func TestEncodedCollectionRefusesJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		remote := serveEncoded(t, encodingtest.Source{Source: o}, "chunked")
		projection := listwatch.Query{Selection: listwatch.Selection{Projection: testkit.Projection(t, "spec")}}
		wantUnsupported := func(what string, err error, named string) {
			t.Helper()
			if e := listwatch.AsError(err); e == nil || e.Code != listwatch.Unsupported {
				t.Errorf("%s: got %v, want Unsupported", what, err)
			} else if text := e.Error(); !strings.Contains(text, named) {
				t.Errorf("%s: got %q, want %s in it", what, text, named)
			}
		}
		_, err := remote.List(t.Context(), projection)
		wantUnsupported("a projection of a client", err, "Object.v1")
		r := awaitReady(t, openRelay(t, remote, relay.Options{}))
		_, err = r.Watch(t.Context(), projection)
		wantUnsupported("a projection of a relay", err, "Thing.v1")
		plain := serveEncoded(t, r, "chunked")
		plain.Framings = nil
		_, err = plain.List(t.Context(), listwatch.Query{})
		wantUnsupported("a list of a client of JSON", err, "")
		_, err = plain.Watch(t.Context(), listwatch.Query{})
		wantUnsupported("a watch of a client of JSON", err, "")
	})
}

// A saved copy keeps the bytes, and a relay with another encoding does not use it.
func TestSavedCopyKeepsTheEncoding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		want := mustList(t, o, listwatch.Query{}).Items[0]
		file := persist.File{Path: filepath.Join(t.TempDir(), "copy")}
		remote := serveEncoded(t, encodingtest.Source{Source: o}, "chunked")
		first := awaitReady(t, openRelay(t, remote, relay.Options{Persist: file, BackfillVersions: -1}))
		o.remove("a")
		o.put("a", "blue")
		synctest.Wait()
		first.Close()
		var why []string
		trace := &relay.Trace{Replaced: func(_ listwatch.Version, _ int, reason string) { why = append(why, reason) }}
		second := awaitReady(t, openRelay(t, remote, relay.Options{Persist: file, Trace: trace}))
		q := listwatch.Query{Start: listwatch.StartAt, Version: want.Version, InitialEvents: listwatch.InitialEventsNo}
		direct := texts(t, testkit.Watch(t, o, q), 2)
		if diff := cmp.Diff(direct, texts(t, testkit.Watch(t, second, q), 2)); diff != "" {
			t.Errorf("the history of the copy (-store +copy):\n%s", diff)
		}
		if fmt.Sprint(why) != "[saved]" {
			t.Errorf("the state comes from %v, want the copy", why)
		}
	})
}
