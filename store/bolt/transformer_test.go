package bolt_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/aesgcm"
	"github.com/listwatch/listwatch/store/bolt"
)

// A reverser is a Transformer that reverses the text and prepends its location.
type reverser struct {
	key  string
	fail func(store.Location) error // ToStorage calls it if it is not nil
}

func (r reverser) prefix(at store.Location) []byte {
	return fmt.Appendf(nil, "%s|%s|%v|%d|", r.key, at.Collection, at.Key, at.Version)
}

func (r reverser) ToStorage(at store.Location, plain []byte) ([]byte, error) {
	if r.fail != nil {
		if err := r.fail(at); err != nil {
			return nil, err
		}
	}
	text := bytes.Clone(plain)
	slices.Reverse(text)
	return append(r.prefix(at), text...), nil
}

func (r reverser) FromStorage(at store.Location, stored []byte) ([]byte, error) {
	text, ok := bytes.CutPrefix(stored, r.prefix(at))
	if !ok {
		return nil, errors.New("it belongs to another location")
	}
	text = bytes.Clone(text)
	slices.Reverse(text)
	return text, nil
}

func TestTransformerChangesAllStoredObjects(t *testing.T) {
	s := open(t, bolt.Options{Transformer: reverser{key: "k"}})
	start := s.db.Version()
	if _, err := s.pods.Create(t.Context(),
		[]byte(`{"metadata":{"name":"a","namespace":"n","labels":{"app":"web"}},"password":"swordfish"}`)); err != nil {
		t.Fatal(err)
	}
	s.writeSome()
	want := append(s.eventsAfter(start, listwatch.Query{}), s.list(listwatch.Query{})...)
	s.reopen()
	if diff := cmp.Diff(want,
		append(s.eventsAfter(start, listwatch.Query{}), s.list(listwatch.Query{})...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.close()
	data := readFile(t, s.path)
	if bytes.Contains(data, []byte("swordfish")) {
		t.Error("the file has the untransformed text")
	}
	if !bytes.Contains(data, []byte("hsifdrows")) {
		t.Error("the file does not have the transformed text")
	}
}

func TestReadyReportsAStuckTransformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proceed := make(chan struct{})
		s := open(t, bolt.Options{Transformer: reverser{fail: func(at store.Location) error {
			if at.Version > 0 {
				<-proceed
			}
			return nil
		}}})
		done := s.startCreate(t.Context(), "a")
		time.Sleep(bolt.StuckAfter + time.Second)
		if err := s.db.Ready(t.Context()); err == nil || kubestatus.Of(err).Code != 503 {
			t.Errorf("got %v, want an error of status 503", err)
		}
		close(proceed)
		if r := <-done; r.err != nil {
			t.Error(r.err)
		}
		if err := s.db.Ready(t.Context()); err != nil {
			t.Errorf("after the write: got %v", err)
		}
	})
}

func TestAnotherTransformerIsRejected(t *testing.T) {
	s := open(t, bolt.Options{Transformer: reverser{key: "k"}})
	s.close()
	plain := open(t, bolt.Options{})
	plain.close()
	for path, transformer := range map[string]store.Transformer{s.path: nil, plain.path: reverser{key: "k"}} {
		_, err := bolt.Open(path, bolt.Options{Transformer: transformer})
		if !errors.Is(err, listwatch.Invalid) || !strings.Contains(fmt.Sprint(err), "another Transformer") {
			t.Errorf("%v: got %v, want code Invalid", transformer, err)
		}
	}
}

func TestTransformerErrorFailsOnlyItsWrite(t *testing.T) {
	broken := errors.New("the key is not available")
	s := open(t, bolt.Options{Transformer: reverser{fail: func(at store.Location) error {
		if at.Key.Name == "secret" {
			return broken
		}
		return nil
	}}})
	hook := s.blockTransactions()
	first := s.startCreate(t.Context(), "a")
	<-hook.entered
	failing, good := s.startCreate(t.Context(), "secret"), s.startCreate(t.Context(), "b")
	s.awaitQueued(2)
	hook.proceed <- struct{}{}
	<-hook.entered
	hook.proceed <- struct{}{}
	if r := <-failing; !errors.Is(r.err, broken) || !errors.Is(r.err, listwatch.Unavailable) {
		t.Errorf("got %v, want code Unavailable and the error of the Transformer", r.err)
	}
	a, b := <-first, <-good
	if a.err != nil || b.err != nil || b.object.Version != a.object.Version+1 {
		t.Errorf("the other writes: %v and %v, want consecutive versions", a, b)
	}
}

// After Rewrite, the file has nothing that the old key encrypted: objects, history, departures, and
// the text with which Open checks the Transformer. A transaction rewrites 4 MiB, so there are
// several.
func TestRewriteMakesTheOldKeyUnnecessary(t *testing.T) {
	first, second := bytes.Repeat([]byte{1}, aesgcm.KeyBytes), bytes.Repeat([]byte{2}, aesgcm.KeyBytes)
	before, err1 := aesgcm.New(first)
	both, err2 := aesgcm.New(second, first)
	after, err3 := aesgcm.New(second)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	s := open(t, bolt.Options{Transformer: before, History: listwatch.Retention{Bytes: 1}})
	s.writeSome()
	for i := range 9 {
		object := fmt.Sprintf(`{"metadata":{"name":"large-%d","namespace":"n"},"text":%q}`, i,
			strings.Repeat("x", 1<<20))
		if _, err := s.pods.Create(t.Context(), []byte(object)); err != nil {
			t.Fatal(err)
		}
	}
	s.options.Transformer = both
	s.reopen()
	for range 2 {
		s.delete(s.create("gone").Key.Name)
		if err := s.db.Rewrite(); err != nil {
			t.Fatal(err)
		}
	}
	want := s.list(listwatch.Query{})
	s.options.Transformer = after
	s.reopen() // reads the departures, too
	if diff := cmp.Diff(want, s.list(listwatch.Query{})); diff != "" {
		t.Errorf("with the new key alone: (-want +got):\n%s", diff)
	}
	s.close()
	if _, err := bolt.Open(s.path, bolt.Options{Transformer: before}); !errors.Is(err, listwatch.Invalid) {
		t.Errorf("with the old key: got %v, want code Invalid", err)
	}
}

// The last record of a collection may be the one that fills a transaction.
func TestRewriteEndsAfterAFullTransaction(t *testing.T) {
	s := open(t, bolt.Options{Transformer: reverser{key: "k"}})
	object := fmt.Sprintf(`{"metadata":{"name":"large","namespace":"n"},"text":%q}`, strings.Repeat("x", 5<<20))
	if _, err := s.pods.Create(t.Context(), []byte(object)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.db.Rewrite() }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Rewrite does not end")
	}
}
