package wire

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/internal/wire/frames"
	"github.com/listwatch/listwatch/transport"
)

// nameOnly represents an object by its name. In the first event it adds a title.
type nameOnly struct{ titled, timed bool }

func (n nameOnly) AppendObject(dst []byte, e listwatch.Event) []byte {
	return fmt.Appendf(dst, `{"title":%t,"name":%q}`, n.titled, e.Object.Key.Name)
}

func (n nameOnly) AfterFirst() transport.Representation { return nameOnly{timed: n.timed} }
func (n nameOnly) DependsOnTime() bool                  { return n.timed }

// event returns an event and its caches.
func event(t *testing.T) (listwatch.Event, frames.Ref) {
	t.Helper()
	o, err := listwatch.ParseObject([]byte(`{"metadata":{"name":"a","resourceVersion":"7"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return listwatch.Event{Type: listwatch.Added, Object: o, Version: 7}, frames.Ref{Frames: new(frames.Frames)}
}

var plainEnvelope = &transport.Envelope{}

// open returns the StreamEncoder of a new stream, with the given coding unless it is empty.
func open(t *testing.T, coding string, envelope *transport.Envelope, r transport.Representation) StreamEncoder {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.Header.Set("Accept-Encoding", coding)
	c, err := transport.Negotiate(httptest.NewRecorder(), request, transport.Options{}, envelope)
	if err != nil {
		t.Fatal(err)
	}
	return NewStreamEncoder(&transport.Stream{Encoder: c}, r, nil)
}

func frame(t *testing.T, e StreamEncoder, ev listwatch.Event, ref frames.Ref) []byte {
	t.Helper()
	return testkit.Must(e.Encode(ev, ref))(t)
}

func TestEqualFormsShareFrames(t *testing.T) {
	other := &transport.Envelope{Wrap: func(dst, p []byte, _ bool) []byte { return append(append(dst, '<'), p...) }}
	type variant struct {
		coding         string
		envelope       *transport.Envelope
		representation transport.Representation
	}
	e, ref := event(t)
	owners := make(map[*byte]variant)
	for _, v := range []variant{
		{"", plainEnvelope, nil},
		{"gzip", plainEnvelope, nil},
		{"zstd", plainEnvelope, nil},
		{"gzip", other, nil},
		{"gzip", plainEnvelope, nameOnly{}},
		{"", plainEnvelope, nameOnly{titled: true}},
	} {
		one := frame(t, open(t, v.coding, v.envelope, v.representation), e, ref)
		two := frame(t, open(t, v.coding, v.envelope, v.representation), e, ref)
		if &one[0] != &two[0] {
			t.Errorf("%+v: two streams of one form have different frames", v)
		}
		if owner, ok := owners[&one[0]]; ok {
			t.Errorf("%+v has the frames of %+v", v, owner)
		}
		owners[&one[0]] = v
	}
}

func TestFirstEventHasItsOwnRepresentation(t *testing.T) {
	e, ref := event(t)
	stream := open(t, "", plainEnvelope, nameOnly{titled: true})
	for i, titled := range []bool{true, false, false} {
		got, err := stream.Encode(e, ref)
		if want := fmt.Sprintf(`{"type":"ADDED","object":{"title":%t,"name":"a"}}`, titled); err != nil ||
			string(got) != want+"\n" {
			t.Errorf("event %d: got %s, %v, want %s", i, got, err, want)
		}
		shared := frame(t, open(t, "", plainEnvelope, nameOnly{titled: titled}), e, ref)
		if &shared[0] != &got[0] {
			t.Errorf("event %d was encoded twice", i)
		}
	}
	plain := frame(t, open(t, "", plainEnvelope, nil), e, ref)
	if want := `{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"7"}}}`; string(plain) != want+"\n" {
		t.Errorf("without a representation: got %s, want %s", plain, want)
	}
}

func TestTimedInitialEventsAreNotCached(t *testing.T) {
	e, ref := event(t)
	e.Initial = true
	for _, timed := range []bool{true, false} {
		c := open(t, "", plainEnvelope, nameOnly{timed: timed})
		one, two := frame(t, c, e, ref), frame(t, c, e, ref)
		if cached := &one[0] == &two[0]; cached == timed {
			t.Errorf("timed %t: cached %t", timed, cached)
		}
	}
}

func TestErrorsIgnoreTheRepresentation(t *testing.T) {
	plain, represented := open(t, "", plainEnvelope, nil), open(t, "", plainEnvelope, nameOnly{})
	want, _ := plain.Error(listwatch.Expired)
	got, err := represented.Error(listwatch.Expired)
	if err != nil || string(got) != string(want) {
		t.Errorf("got %s %v, want %s", got, err, want)
	}
}
