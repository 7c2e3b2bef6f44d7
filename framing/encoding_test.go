package framing_test

import (
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/encodingtest"
)

func TestRegistryOffersFramingsOfOneEncoding(t *testing.T) {
	all := encodingtest.Framings
	if framing.Default().For(nil) != framing.Default() {
		t.Error("the framings of JSON were copied")
	}
	if got := len(all.For(nil).Framers()); got != len(framing.Default().Framers()) {
		t.Errorf("%d framings for JSON, want the default framings", got)
	}
	encoded := all.For(encodingtest.Encoding{})
	f, err := encoded.Negotiate(nil, true)
	if err != nil || f != framing.Framer(encodingtest.Framing{}) {
		t.Errorf("got %v, %v, want the framing of the encoding", f, err)
	}
	accept, _ := framing.ParseAccept([]string{"application/json"})
	for _, r := range []*framing.Registry{encoded, framing.Default().For(encodingtest.Encoding{})} {
		if _, err := r.Negotiate(accept, false); listwatch.CodeOf(err) != listwatch.Unsupported {
			t.Errorf("got %v, want Unsupported", err)
		}
	}
	if got := framing.ContentTypeOf(encodingtest.Framing{}); got != "application/vnd.listwatch.flipped;stream=watch" {
		t.Errorf("got Content-Type %s", got)
	}
	if got := framing.ContentTypeOf(framing.SSE{}); got != "text/event-stream" {
		t.Errorf("got Content-Type %s of SSE", got)
	}
}

func TestEventOfChecksEncodedObjects(t *testing.T) {
	event := func(eventType, object string) (listwatch.Event, error) {
		e := framing.WatchEvent{Type: eventType, Object: encodingtest.Flip([]byte(object))}
		return e.EventOf(encodingtest.Encoding{})
	}
	e, err := event("MODIFIED", `{"metadata":{"name":"a","resourceVersion":"7","labels":{"l":"v"}}}`)
	if err != nil || e.Type != listwatch.Modified || e.Version != 7 || e.Object.Labels["l"] != "v" {
		t.Errorf("got %+v, %v", e, err)
	}
	for object, code := range map[string]listwatch.Code{
		`{"metadata":{"name":"a"}}`:            listwatch.Corrupt,
		`{"metadata":{"resourceVersion":"7"}}`: listwatch.Corrupt,
		`[]`:                                   listwatch.Corrupt,
	} {
		if _, err := event("ADDED", object); listwatch.CodeOf(err) != code {
			t.Errorf("%s: got %v, want %v", object, err, code)
		}
	}
	if _, err := event("MOVED", `{}`); listwatch.CodeOf(err) != listwatch.Unsupported {
		t.Errorf("an unknown type: got %v, want Unsupported", err)
	}
}
