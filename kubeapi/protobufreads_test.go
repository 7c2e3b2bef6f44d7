package kubeapi

import (
	"io"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/kubeapi/kubeproto"
	"github.com/listwatch/listwatch/kubeapi/protobody"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/websocket"
)

// typedAccept is the Accept header of client-go's typed clients, and partialAccept that of its
// clients of metadata.
const (
	typedAccept   = protobody.MediaType + ",application/json"
	partialAccept = protobody.MediaType + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;" +
		"as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
)

// fromProtobuf returns the JSON of an object in Protocol Buffers, as a typed client would send it.
func fromProtobuf(t *testing.T, body string) string {
	t.Helper()
	data, err := protobody.ToJSON([]byte(body), 1<<20)
	if err != nil {
		t.Fatalf("%v: %q", err, body)
	}
	return string(data)
}

// A typed client gets what a Kubernetes API server would send it: the object as Kubernetes' Go
// packages decode and encode it.
func TestObjectsAreSentInProtobuf(t *testing.T) {
	a := startServer(t, nil)
	created := a.want(t, 201, "POST", pods, `{"metadata":{"name":"a"},"spec":{"nodeSelector":{},"fromTheFuture":1,`+
		`"containers":[{"name":"c","image":"i","ports":[],"resources":{"requests":{"cpu":"1000m"}}}]}}`,
		"Accept", typedAccept)
	got := fromProtobuf(t, created)
	for _, part := range []string{`"requests":{"cpu":"1"}`, `"name":"a"`, `"image":"i"`} {
		if !strings.Contains(got, part) {
			t.Errorf("got %s, want %s in it", got, part)
		}
	}
	for _, part := range []string{"fromTheFuture", "ports", "nodeSelector"} {
		if strings.Contains(got, part) {
			t.Errorf("got %s, want no %s in it", got, part)
		}
	}
	if read := a.want(t, 200, "GET", pods+"/a", "", "Accept", typedAccept); read != created {
		t.Errorf("a get has other bytes than the create:\n%q\n%q", read, created)
	}
	merge := []string{"Accept", typedAccept, "Content-Type", "application/merge-patch+json"}
	patched := fromProtobuf(t, a.want(t, 200, "PATCH", pods+"/a", `{"metadata":{"labels":{"x":"y"}}}`, merge...))
	if !strings.Contains(patched, `"labels":{"x":"y"}`) {
		t.Errorf("got %s, want the label", patched)
	}
	partial := a.want(t, 200, "GET", pods+"/a", "", "Accept", partialAccept)
	if !strings.HasPrefix(partial, "k8s\x00") || strings.Contains(partial, "image") ||
		!strings.Contains(partial, "PartialObjectMetadata") {
		t.Errorf("got %q, want metadata in Protocol Buffers", partial)
	}
	scale := fromProtobuf(t, a.want(t, 201, "POST", deployments, `{"metadata":{"name":"d"},"spec":{"replicas":2}}`,
		"Accept", typedAccept))
	if !strings.Contains(scale, `"replicas":2`) {
		t.Errorf("got %s, want two replicas", scale)
	}
	scale = fromProtobuf(t, a.want(t, 200, "GET", deployments+"/d/scale", "", "Accept", typedAccept))
	if !strings.Contains(scale, `"kind":"Scale"`) || !strings.Contains(scale, `"spec":{"replicas":2}`) {
		t.Errorf("got %s, want a Scale", scale)
	}
}

// The first range of Accept that the server can satisfy decides.
func TestProtobufIsSentOnlyOnRequest(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, `{"metadata":{"name":"a"}}`)
	a.want(t, 201, "POST", gadgets, `{"metadata":{"name":"a"}}`)
	const table = ";as=Table;g=meta.k8s.io;v=v1"
	for _, c := range []struct {
		path, accept string
		code         int
		want         string // the start of the body
	}{
		{pods, "*/*", 200, "{"},
		{pods, "", 200, "{"},
		{pods, "application/json," + protobody.MediaType, 200, "{"},
		{pods, protobody.MediaType, 200, "k8s\x00"},
		{pods, protobody.MediaType + ";q=0.5,application/json;q=0.4", 200, "k8s\x00"},
		{pods, protobody.MediaType + table + ",application/json" + table, 200, `{"kind":"Table"`},
		{pods, protobody.MediaType + table + "," + typedAccept, 200, "k8s\x00"},
		{pods + "?fields=metadata.name", typedAccept, 200, "{"},
		{pods, "text/event-stream," + protobody.MediaType, 200, "k8s\x00"}, // no list is a stream
		{pods, "application/cbor," + protobody.MediaType, 200, "\xd9\xd9\xf7"},
		{gadgets, typedAccept, 200, "{"},
		{gadgets, protobody.MediaType, 406, "{"},
	} {
		body := a.want(t, c.code, "GET", c.path, "", "Accept", c.accept)
		if !strings.HasPrefix(body, c.want) {
			t.Errorf("%s, Accept: %s: got %.40q, want %q first", c.path, c.accept, body, c.want)
		}
	}
}

// A watch has the bytes of a get, also for objects that leave a selection.
func TestWatchesAreSentInProtobuf(t *testing.T) {
	for name, newTransport := range map[string]func() transport.Client{
		"chunked":   func() transport.Client { return &chunked.Client{} },
		"websocket": func() transport.Client { return &websocket.Client{} },
	} {
		t.Run(name, func(t *testing.T) {
			a := startServer(t, nil)
			a.want(t, 201, "POST", pods, `{"metadata":{"name":"a","labels":{"x":"y"}}}`)
			r := &client.Remote{
				URL: a.url + pods, Framings: []framing.Framer{kubeproto.Framing{}},
				Transports: []transport.Client{newTransport()},
			}
			selector, err := listwatch.ParseLabelSelector("x=y")
			if err != nil {
				t.Fatal(err)
			}
			w, err := r.Watch(t.Context(), listwatch.Query{
				Selection:     listwatch.Selection{Labels: selector},
				InitialEvents: listwatch.InitialEventsYes, Bookmarks: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			get := func() string { return a.want(t, 200, "GET", pods+"/a", "", "Accept", typedAccept) }
			next := func(want listwatch.EventType) *listwatch.Object {
				t.Helper()
				for events := make([]listwatch.Event, 1); ; {
					if _, err := w.Next(t.Context(), events); err != nil {
						t.Fatal(err)
					}
					if e := events[0]; e.Type == want {
						return e.Object
					}
				}
			}
			if o := next(listwatch.Added); string(o.Data) != get() {
				t.Errorf("the initial event has other bytes than a get")
			}
			next(listwatch.Synced)
			a.want(t, 200, "PATCH", pods+"/a", `{"metadata":{"annotations":{"b":"c"}}}`,
				"Content-Type", "application/merge-patch+json")
			if o := next(listwatch.Modified); string(o.Data) != get() {
				t.Errorf("the event has other bytes than a get")
			}
			a.want(t, 200, "PATCH", pods+"/a", `{"metadata":{"labels":{"x":"z"}}}`,
				"Content-Type", "application/merge-patch+json")
			o := next(listwatch.Deleted)
			if text := fromProtobuf(t, string(o.Data)); !strings.Contains(text, `"x":"y"`) {
				t.Errorf("got %s, want the last state that matched", text)
			}
			a.want(t, 404, "GET", pods+"/b", "", "Accept", typedAccept)
		})
	}
}

// A program can write an object past the checks of the handler. A list or a watch cannot omit it.
func TestMisfitIsNamed(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, `{"metadata":{"name":"good"}}`)
	r, err := ParseResource("pods.v1=Pod")
	if err != nil {
		t.Fatal(err)
	}
	misfit := []byte(`{"metadata":{"name":"misfit","namespace":"default"},"spec":"none"}`)
	if _, err := a.Collection(r).Create(t.Context(), misfit); err != nil {
		t.Fatal(err)
	}
	if got := a.want(t, 200, "GET", pods+"/misfit", "", "Accept", typedAccept); !strings.HasPrefix(got, "{") {
		t.Errorf("got %q, want JSON, which has the object as it is", got)
	}
	message := a.wantError(t, 500, "InternalError", "GET", pods, "", "Accept", typedAccept).Message
	if !strings.Contains(message, "default/misfit: the object is not a Pod") {
		t.Errorf("got %q, want the name of the object", message)
	}
	resp := a.do(t, "GET", pods+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"+
		"allowWatchBookmarks=true", "", "Accept", typedAccept)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(body), "good") || !strings.Contains(string(body), "ERROR") ||
		!strings.Contains(string(body), "default/misfit") {
		t.Errorf("got %q, %v; want the good pod and an error that names the other one", body, err)
	}
}

// A client must not be able to take memory that the limits do not see.
func TestConvertedObjectsCountAgainstMemory(t *testing.T) {
	var stored func() int64
	a := startServer(t, func(h *Handler) {
		stored = func() (n int64) {
			for _, s := range h.Server.Limits.Stored {
				n += s.Stats().ObjectBytes
			}
			return n
		}
	})
	a.want(t, 201, "POST", pods, `{"metadata":{"name":"a"}}`)
	before := stored()
	body := a.want(t, 200, "GET", pods+"/a", "", "Accept", typedAccept)
	if got := stored() - before; got != int64(len(body)) {
		t.Errorf("a response of %d bytes counts as %d", len(body), got)
	}
}
