package departures

import (
	"fmt"
	"testing"

	"github.com/listwatch/listwatch"
)

func TestAttributesRoundTrip(t *testing.T) {
	o := &listwatch.Object{
		Key:    listwatch.Key{Namespace: "n", Name: "o"},
		Labels: map[string]string{"": "", "a": "b\x00c", "z": string(make([]byte, 300))},
		Fields: map[string]string{"spec.node": "n1"},
	}
	var l List
	a := l.intern(o)
	got := a.Object("o")
	if got.Key != o.Key || !equalAttributes(got, o) {
		t.Errorf("got %+v, want %+v", got, o)
	}
	if a.Namespace() != "n" {
		t.Errorf("got namespace %q, want n", a.Namespace())
	}
	if l.intern(got) != a || a.users != 2 {
		t.Errorf("equal attributes are not shared: the first have %d users, want 2", a.users)
	}
}

func TestDroppedDeparturesTakeNoMemory(t *testing.T) {
	l := List{MaxBytes: -1}
	for i := range 3 * ChunkSize {
		l.Add(listwatch.Version(i+1), &listwatch.Object{
			Key: listwatch.Key{Name: fmt.Sprint(i)}, Labels: map[string]string{"app": fmt.Sprint(i / 4)},
		})
	}
	for len(l.Chunks) > 0 {
		l.dropChunk()
	}
	if l.Bytes != 0 {
		t.Errorf("%d bytes remain without departures", l.Bytes)
	}
	if len(l.interned) != 0 {
		t.Errorf("%d attributes remain without departures", len(l.interned))
	}
	if l.Horizon != 3*ChunkSize {
		t.Errorf("got the horizon %d, want %d", l.Horizon, 3*ChunkSize)
	}
}
