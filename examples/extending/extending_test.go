package extending_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/examples/extending/longpoll"
	"github.com/listwatch/listwatch/examples/extending/mapstore"
	"github.com/listwatch/listwatch/examples/extending/msgpackframing"
	"github.com/listwatch/listwatch/examples/extending/slicesource"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/transporttest"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/watchserver"
)

var framers = append(framing.Default().Framers(), msgpackframing.Framer{})

var transports = map[string]func(transport.Network) transport.Client{
	"chunked":   func(n transport.Network) transport.Client { return &chunked.Client{Network: n} },
	"h2":        func(n transport.Network) transport.Client { return &h2.Client{Network: n} },
	"websocket": func(n transport.Network) transport.Client { return &websocket.Client{Network: n} },
	"longpoll":  func(n transport.Network) transport.Client { return &longpoll.Client{Network: n} },
}

// collections holds functions that create a collection with one object. Each call of the returned
// function write makes 20 changes (the constant writes).
var collections = map[string]func(t *testing.T) (source listwatch.Source, write func()){
	"mapstore": newMapStore, "slicesource": newSliceSource,
}

const writes = 20

func newMapStore(t *testing.T) (listwatch.Source, func()) {
	things, _ := mapstore.New(store.CollectionSpec{Kind: "Thing"}, 0)
	create := func(name string) *listwatch.Object {
		o, err := things.Create(t.Context(),
			fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"n":9007199254740993}}`, name))
		if err != nil {
			t.Error(err)
		}
		return o
	}
	create("first")
	return things, func() {
		for i := range writes / 2 {
			o := create(fmt.Sprint("thing-", i))
			if _, err := things.Delete(t.Context(), o.Key, listwatch.Preconditions{}); err != nil {
				t.Error(err)
			}
		}
	}
}

// A plainSource returns watchers that are not Pollers, because a Source need not return Pollers.
type plainSource struct{ *slicesource.Source }

type plainWatcher struct{ listwatch.Watcher }

func (s plainSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := s.Source.Watch(ctx, q)
	return plainWatcher{w}, err
}

func newSliceSource(t *testing.T) (listwatch.Source, func()) {
	s := slicesource.New(listwatch.Description{Kind: "Thing"}, 1)
	var newest *listwatch.Object
	write := func(v listwatch.Version) {
		o, err := listwatch.ParseObject(fmt.Appendf(nil, `{"metadata":{"name":"first","resourceVersion":"%d"}}`, v))
		if err != nil {
			t.Error(err)
		}
		s.Append(slicesource.Write{Version: v, Old: newest, New: o})
		newest = o
	}
	write(2)
	return plainSource{s}, func() {
		for v := range listwatch.Version(writes) {
			write(3 + v)
		}
	}
}

// A client receives the events of every collection unchanged, over every transport and in every
// framing.
func TestEveryCombination(t *testing.T) {
	for collection, open := range collections {
		for transport, dial := range transports {
			for _, f := range framers {
				if _, ok := f.(framing.MessageFramer); transport == "websocket" && !ok {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%T", collection, transport, f), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						source, write := open(t)
						remote := &client.Remote{Framings: []framing.Framer{f}}
						serve(t, source, remote, dial)
						testWatch(t, source, remote, write)
					})
				})
			}
		}
	}
}

// serve serves source on an in-memory network, and connects remote to the server.
func serve(t *testing.T, source listwatch.Source, remote *client.Remote,
	dial func(transport.Network) transport.Client,
) {
	t.Helper()
	offer, err := framing.NewRegistry(framers...)
	if err != nil {
		t.Fatal(err)
	}
	handler := &watchserver.Server{
		Source: source, Framings: offer,
		Transports: []transport.Server{&longpoll.Server{}, &websocket.Server{}, h2.Server{}, chunked.Server{}},
	}
	s := transporttest.StartServer(t, transporttest.ServerConfig{
		Handler:   func(http.Handler) http.Handler { return handler },
		Configure: func(s *http.Server) { h2.Configure(s, h2.Config{}) },
	})
	s.URL.RawQuery = ""
	remote.URL, remote.Network = s.URL.String(), s.Network
	remote.Transports = []transport.Client{dial(s.Network)}
	remote.Backoff.Min = -1 // send the next long poll at once
	t.Cleanup(func() { remote.Close() })
}

// testWatch opens the same watch of source and of remote, calls write, and checks that both watches
// return the same events.
func testWatch(t *testing.T, source, remote listwatch.Source, write func()) {
	t.Helper()
	var watchers [2]listwatch.Watcher
	for i, s := range []listwatch.Source{source, remote} {
		w, err := s.Watch(t.Context(), listwatch.Query{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			w.Close()
			synctest.Wait() // until the server has noticed the end of the watch
		})
		watchers[i] = w
	}
	synctest.Wait() // until the watches have started
	write()
	want, got := read(t, watchers[0]), read(t, watchers[1])
	for i, w := range want {
		g := got[i]
		if g.Type != w.Type || g.Version != w.Version || g.Object.Key != w.Object.Key {
			t.Errorf("event %d: got %s %v at %d, want %s %v at %d",
				i, g.Type, g.Object.Key, g.Version, w.Type, w.Object.Key, w.Version)
		}
		if !bytes.Equal(g.Object.Data, w.Object.Data) {
			t.Errorf("event %d: got %s, want %s", i, g.Object.Data, w.Object.Data)
		}
	}
}

// read reads the event of the first object and the events of the writes.
func read(t *testing.T, w listwatch.Watcher) []listwatch.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var events []listwatch.Event
	for len(events) < 1+writes {
		batch := make([]listwatch.Event, 1+writes-len(events))
		n, err := w.Next(ctx, batch)
		if err != nil {
			t.Fatalf("after %d events: %v", len(events), err)
		}
		events = slices.Concat(events, batch[:n])
	}
	return events
}
