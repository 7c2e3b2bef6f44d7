package transport

import (
	"fmt"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/framecache"
)

// nameOnly represents an object by its name. In the first event it adds a title.
type nameOnly struct{ titled, timed bool }

func (n nameOnly) AppendObject(dst []byte, e listwatch.Event) []byte {
	return fmt.Appendf(dst, `{"title":%t,"name":%q}`, n.titled, e.Object.Key.Name)
}

func (n nameOnly) AfterFirst() Representation { return nameOnly{timed: n.timed} }
func (n nameOnly) DependsOnTime() bool        { return n.timed }

func event(t *testing.T) listwatch.Event {
	t.Helper()
	o, err := listwatch.ParseObject([]byte(`{"metadata":{"name":"a","resourceVersion":"7"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return listwatch.Event{Type: listwatch.Added, Object: o, Version: 7}.WithFrames(new(framecache.Frames))
}

func frame(t *testing.T, c *Encoder, e listwatch.Event) []byte {
	t.Helper()
	data, err := c.Event(e)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func jsonEncoder(t *testing.T) *Encoder {
	t.Helper()
	c, err := EncoderFor(framing.JSON{}, new(Envelope))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEqualRepresentationsShareFrames(t *testing.T) {
	plain, e := jsonEncoder(t), event(t)
	first := plain.WithRepresentation(nameOnly{titled: true})
	if first != plain.WithRepresentation(nameOnly{titled: true}) || first.AfterFirst() != plain.WithRepresentation(nameOnly{}) || first.AfterFirst().AfterFirst() != first.AfterFirst() {
		t.Error("equal representations have different encoders")
	}
	if plain.WithRepresentation(nil) != plain || plain.AfterFirst() != plain {
		t.Error("there is more than one encoder without a representation")
	}
	for _, c := range []struct {
		encoder *Encoder
		want    string
	}{
		{plain, `{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"7"}}}`},
		{first, `{"type":"ADDED","object":{"title":true,"name":"a"}}`},
		{first.AfterFirst(), `{"type":"ADDED","object":{"title":false,"name":"a"}}`},
	} {
		one, two := frame(t, c.encoder, e), frame(t, c.encoder, e)
		if string(one) != c.want+"\n" || &one[0] != &two[0] {
			t.Errorf("got %s, want %s, encoded once", one, c.want)
		}
	}
}

func TestTimedInitialEventsAreNotCached(t *testing.T) {
	e := event(t)
	e.Initial = true
	for _, timed := range []bool{true, false} {
		c := jsonEncoder(t).WithRepresentation(nameOnly{timed: timed})
		one, two := frame(t, c, e), frame(t, c, e)
		if cached := &one[0] == &two[0]; cached == timed {
			t.Errorf("timed %t: cached %t", timed, cached)
		}
	}
}

func TestErrorsIgnoreTheRepresentation(t *testing.T) {
	plain := jsonEncoder(t)
	want, _ := plain.Error(listwatch.Expired)
	got, err := plain.WithRepresentation(nameOnly{}).Error(listwatch.Expired)
	if err != nil || string(got) != string(want) {
		t.Errorf("got %s %v, want %s", got, err, want)
	}
}
