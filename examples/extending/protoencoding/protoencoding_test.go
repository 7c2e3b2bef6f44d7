package protoencoding

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/watchserver"
)

// framings are those of a server that serves both encodings. It offers a request the framings of
// its Source's encoding.
var framings = func() *framing.Registry {
	r, err := framing.NewRegistry(append(framing.Default().Framers(), Framing{})...)
	if err != nil {
		panic(err)
	}
	return r
}()

// start serves a collection in Protocol Buffers at /readings.pb, in JSON at /readings, and the
// first one through a relay at /relayed.
func start(t *testing.T) (*Readings, *httptest.Server) {
	t.Helper()
	readings, err := New()
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	server := httptest.NewUnstartedServer(mux)
	h2.Configure(server.Config, h2.Config{})
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	relayed := relay.Open(remote(server, "/readings.pb", nil), relay.Options{})
	t.Cleanup(func() { relayed.Close() })
	for path, source := range map[string]listwatch.Source{
		"/readings.pb": readings.Protobuf, "/readings": readings.JSON, "/relayed": relayed,
	} {
		mux.Handle(path, &watchserver.Server{Source: source, Framings: framings})
	}
	return readings, server
}

// remote returns a client of a collection in Protocol Buffers.
func remote(s *httptest.Server, path string, newTransport func(transport.Network) transport.Client) *client.Remote {
	r := &client.Remote{
		URL: s.URL + path, Framings: []framing.Framer{Framing{}},
		Network: transport.Network{TLS: s.Client().Transport.(*http.Transport).TLSClientConfig},
	}
	if newTransport != nil {
		r.Transports = []transport.Client{newTransport(r.Network)}
	}
	return r
}

// put writes a reading of the sensor in the kitchen.
func put(t *testing.T, r *Readings, sensor string, celsius float64) {
	t.Helper()
	m := &Reading{Room: "kitchen", Sensor: sensor, Celsius: celsius, Labels: map[string]string{"floor": "1", "a": "b"}}
	if err := r.Put(m); err != nil {
		t.Fatal(err)
	}
}

// next returns the next event that is no bookmark, as text.
func next(t *testing.T, w listwatch.Watcher) string {
	t.Helper()
	for events := make([]listwatch.Event, 1); ; {
		if _, err := w.Next(t.Context(), events); err != nil {
			t.Fatal(err)
		}
		e := events[0]
		if e.Type == listwatch.Bookmark || e.Type == listwatch.Synced {
			continue
		}
		m, err := Value(e.Object)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(e.Type, " ", e.Object.Key, " ", m.GetCelsius(), " ", m.GetVersion())
	}
}

// A Go client receives the messages over every transport, and through a relay.
func TestClientsReceiveMessages(t *testing.T) {
	for name, newTransport := range map[string]func(transport.Network) transport.Client{
		"chunked":   func(n transport.Network) transport.Client { return &chunked.Client{Network: n} },
		"h2":        func(n transport.Network) transport.Client { return &h2.Client{Network: n} },
		"websocket": func(n transport.Network) transport.Client { return &websocket.Client{Network: n} },
	} {
		for _, path := range []string{"/readings.pb", "/relayed"} {
			t.Run(name+path, func(t *testing.T) {
				readings, server := start(t)
				put(t, readings, "door", 18.5)
				r := remote(server, path, newTransport)
				page, err := r.List(t.Context(), listwatch.Query{})
				if err != nil || len(page.Items) != 1 || !bytes.Equal(page.Items[0].Data, stored(t, readings)) {
					t.Fatalf("list: got %v, %v; want the bytes of the collection", page.Items, err)
				}
				w, err := r.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: page.Version})
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				put(t, readings, "door", 19)
				if err := readings.Delete(page.Items[0].Key); err != nil {
					t.Fatal(err)
				}
				for _, want := range []string{"MODIFIED kitchen/door 19 3", "DELETED kitchen/door 19 4"} {
					if got := next(t, w); got != want {
						t.Errorf("got %s, want %s", got, want)
					}
				}
			})
		}
	}
}

// stored returns the bytes of the only object.
func stored(t *testing.T, r *Readings) []byte {
	t.Helper()
	all := r.Protobuf.Objects()
	if len(all) != 1 {
		t.Fatalf("got %d objects, want one", len(all))
	}
	return all[0].Data
}

// A page reads the same collection, at the same versions, as JSON.
func TestPagesReceiveJSON(t *testing.T) {
	readings, server := start(t)
	put(t, readings, "door", 18.5)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/readings?watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		for _, part := range []string{`"type":"ADDED"`, `"name":"door"`, `"resourceVersion":"2"`, `"celsius":18.5`} {
			if !strings.Contains(data, part) {
				t.Errorf("got %s, want %s in it", data, part)
			}
		}
		return
	}
	t.Fatal("no event")
}

// A client of JSON gets an error that names the problem instead of bytes it cannot read.
func TestJSONIsNotAcceptable(t *testing.T) {
	_, server := start(t)
	r := remote(server, "/readings.pb", nil)
	r.Framings = nil
	if _, err := r.List(t.Context(), listwatch.Query{}); listwatch.AsError(err) == nil ||
		listwatch.AsError(err).Status != http.StatusNotAcceptable {
		t.Errorf("got %v, want status 406", err)
	}
}

// The key of an object that a difference deletes is a message as well.
func TestDifferencesHaveMessages(t *testing.T) {
	o, err := listwatch.ParseObject([]byte(
		`{"metadata":{"name":"door","namespace":"kitchen","resourceVersion":"7"}}`))
	if err != nil {
		t.Fatal(err)
	}
	message, err := Framing{}.AppendMessage(nil, framing.WatchEvent{Type: "DELETED", Object: o.Data})
	if err != nil {
		t.Fatal(err)
	}
	e, err := Framing{}.DecodeMessage(message)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Encoding{}.Read(e.Object)
	if err != nil || got.Key != o.Key || got.Version != o.Version {
		t.Errorf("got %v, %v; want %v at %d", got, err, o.Key, o.Version)
	}
}

func TestInvalidStringIsRefused(t *testing.T) {
	readings, _ := start(t)
	if err := readings.Put(&Reading{Sensor: "\xff"}); listwatch.CodeOf(err) != listwatch.Invalid {
		t.Errorf("got %v, want code Invalid", err)
	}
	put(t, readings, "door", 1)
	if v := readings.JSON.Version(); v != 2 || readings.Protobuf.Version() != v {
		t.Errorf("the versions are %d and %d, want 2", v, readings.Protobuf.Version())
	}
}

func FuzzRead(f *testing.F) {
	f.Add(marshal(&Reading{Room: "kitchen", Sensor: "door", Version: 1, Labels: map[string]string{"a": "b"}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := Encoding{}.Read(data)
		if err != nil {
			return
		}
		again, err := Encoding{}.Read(Encoding{}.WithVersion(data, 9))
		if err != nil || again.Version != 9 || again.Key != o.Key {
			t.Errorf("got %v, %v; want %v at 9", again, err, o.Key)
		}
	})
}

func FuzzMessage(f *testing.F) {
	f.Add(marshal(&ReadingEvent{Type: "ADDED", Reading: []byte{1}}))
	f.Fuzz(func(t *testing.T, message []byte) {
		e, err := Framing{}.DecodeMessage(message)
		if (err == nil) != (e.Type != "" && len(e.Object) > 0) {
			t.Errorf("got %v, %v", e, err)
		}
	})
}
