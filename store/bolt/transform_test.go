package bolt_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/bolt"
)

// backwards is a Transformer for tests: it keeps text backwards, behind the place where it belongs.
type backwards struct {
	key  string
	fail func(bolt.Location) error // of Write; may be nil
}

func (b backwards) prefix(at bolt.Location) []byte {
	return fmt.Appendf(nil, "%s|%s|%v|%d|", b.key, at.Collection, at.Key, at.Version)
}

func (b backwards) ToStorage(at bolt.Location, plain []byte) ([]byte, error) {
	if b.fail != nil {
		if err := b.fail(at); err != nil {
			return nil, err
		}
	}
	text := bytes.Clone(plain)
	slices.Reverse(text)
	return append(b.prefix(at), text...), nil
}

func (b backwards) FromStorage(at bolt.Location, kept []byte) ([]byte, error) {
	text, ok := bytes.CutPrefix(kept, b.prefix(at))
	if !ok {
		return nil, errors.New("it belongs to another place")
	}
	text = bytes.Clone(text)
	slices.Reverse(text)
	return text, nil
}

func TestTransformerStandsBetweenObjectsAndFile(t *testing.T) {
	s := open(t, bolt.Options{Transformer: backwards{key: "k"}})
	start := s.db.Version()
	if _, err := s.pods.Create(t.Context(), []byte(`{"metadata":{"name":"a","namespace":"n","labels":{"app":"web"}},"password":"swordfish"}`)); err != nil {
		t.Fatal(err)
	}
	s.someWrites()
	want := append(s.after(start, listwatch.Query{}), s.state(listwatch.Query{})...)
	s.reopen()
	if diff := cmp.Diff(want, append(s.after(start, listwatch.Query{}), s.state(listwatch.Query{})...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.close()
	if data := readFile(t, s.path); bytes.Contains(data, []byte("swordfish")) || !bytes.Contains(data, []byte("hsifdrows")) {
		t.Error("the file has the text as it is")
	}
}

func TestFileOfAnotherTransformerIsRefused(t *testing.T) {
	s := open(t, bolt.Options{Transformer: backwards{key: "k"}})
	s.close()
	plain := open(t, bolt.Options{})
	plain.close()
	for path, transformer := range map[string]bolt.Transformer{s.path: nil, plain.path: backwards{key: "k"}} {
		_, err := bolt.Open(path, bolt.Options{Transformer: transformer})
		if !errors.Is(err, listwatch.Invalid) || !strings.Contains(fmt.Sprint(err), "another Transformer") {
			t.Errorf("%v: got %v, want code Invalid", transformer, err)
		}
	}
}

func TestTransformerThatFailsFailsThatWriteAlone(t *testing.T) {
	broken := errors.New("the key is locked away")
	s := open(t, bolt.Options{Transformer: backwards{fail: func(at bolt.Location) error {
		if at.Key.Name == "secret" {
			return broken
		}
		return nil
	}}})
	g := s.hold()
	first := s.goCreate(t.Context(), "a")
	<-g.entered
	refused, good := s.goCreate(t.Context(), "secret"), s.goCreate(t.Context(), "b")
	s.waiting(2)
	g.leave <- struct{}{}
	<-g.entered
	g.leave <- struct{}{}
	if r := <-refused; !errors.Is(r.err, broken) || !errors.Is(r.err, listwatch.Unavailable) {
		t.Errorf("got %v, want code Unavailable and its own error", r.err)
	}
	a, b := <-first, <-good
	if a.err != nil || b.err != nil || b.object.Version != a.object.Version+1 {
		t.Errorf("the writes beside it: %v and %v, want both, one after the other", a, b)
	}
}
