package store_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

type flag struct {
	listwatch.Metadata `json:"metadata"`
	Text               string `json:"text,omitempty"`
	On                 bool   `json:"on"`
}

func flags(t testing.TB) (*store.Typed[flag], *mapBackend) {
	t.Helper()
	c, backend := newCollection(store.SpecOf[flag]())
	typed, err := store.NewTyped[flag](c)
	if err != nil {
		t.Fatal(err)
	}
	return typed, backend
}

func TestTypedReturnsServerSetMetadata(t *testing.T) {
	flags, backend := flags(t)
	f, err := flags.Create(t.Context(), flag{Metadata: listwatch.Metadata{Name: "a"}, Text: "<&>"})
	if err != nil || f.UID == "" || f.Generation != 1 || f.CreationTimestamp == nil || f.Metadata.Version() != 1 || f.Text != "<&>" {
		t.Fatalf("got %+v, %v, want the metadata that the server sets", f, err)
	}
	raw, err := flags.Untyped().Get(t.Context(), f.Key())
	if err != nil || !strings.Contains(string(raw.Data), `"text":"<&>"`) || !strings.HasPrefix(string(raw.Data), `{"kind":"flag","apiVersion":"v1",`) {
		t.Errorf("got %s, %v, want the text unescaped and the name of the type as the kind", raw.Data, err)
	}
	got, err := flags.Get(t.Context(), f.Key())
	if err != nil || got.UID != f.UID {
		t.Errorf("got %+v, %v, want %+v", got, err, f)
	}
	same, err := flags.Update(t.Context(), f.Key(), func(*flag) error { return nil })
	if err != nil || same.ResourceVersion != "1" || backend.commits != 1 {
		t.Errorf("an update without a change: got %+v, %v after %d commits", same, err, backend.commits)
	}
	on, err := flags.Update(t.Context(), f.Key(), func(f *flag) error { f.On = true; return nil })
	if err != nil || !on.On || on.Generation != 2 || on.UID != f.UID || !on.CreationTimestamp.Equal(*f.CreationTimestamp) {
		t.Errorf("got %+v, %v, want it on, at generation 2", on, err)
	}
	last, err := flags.Delete(t.Context(), f.Key())
	if err != nil || !last.On || last.ResourceVersion != "3" {
		t.Errorf("got %+v, %v, want the last state at version 3", last, err)
	}
	_, err = flags.Get(t.Context(), f.Key())
	wantCode(t, err, listwatch.NotFound, `flags "a" not found`)
}

func TestTypedReturnsTheZeroValueWithAnError(t *testing.T) {
	flags, _ := flags(t)
	if f, err := flags.Create(t.Context(), flag{Text: "t"}); !errors.Is(err, listwatch.Invalid) || f.Text != "" {
		t.Errorf("got %+v, %v, want code Invalid and the zero value", f, err)
	}
	f, err := flags.Create(t.Context(), flag{Metadata: listwatch.Metadata{GenerateName: "a-"}})
	if err != nil {
		t.Fatal(err)
	}
	no := errors.New("no")
	if _, err := flags.Update(t.Context(), f.Key(), func(*flag) error { return no }); err != no {
		t.Errorf("got %v, want the error that the change returned", err)
	}
	if _, err := flags.Update(t.Context(), f.Key(), func(f *flag) error { f.Name = "b"; return nil }); !errors.Is(err, listwatch.Invalid) {
		t.Errorf("got %v, want code Invalid for another name", err)
	}
	// Another writer of the collection may write an object that cannot be decoded as a
	// flag.
	foreign := mustCreate(t, flags.Untyped(), `{"metadata":{"name":"f"},"on":"yes"}`)
	if _, err := flags.Get(t.Context(), foreign.Key); !errors.Is(err, listwatch.Corrupt) {
		t.Errorf("got %v, want code Corrupt", err)
	}
}

type untagged struct {
	listwatch.Metadata
}

type misplaced struct {
	listwatch.Metadata `json:"meta"`
}

type unencodable struct {
	listwatch.Metadata `json:"metadata"`
	F                  func() `json:"f"`
}

type undecodable struct {
	listwatch.Metadata `json:"metadata"`
}

func (*undecodable) UnmarshalJSON([]byte) error { return errors.New("no") }

type forgetful struct {
	listwatch.Metadata `json:"metadata"`
}

func (forgetful) MarshalJSON() ([]byte, error) { return []byte(`{"metadata":{}}`), nil }

var (
	_ json.Unmarshaler = (*undecodable)(nil)
	_ json.Marshaler   = forgetful{}
)

func TestNewTypedRejectsTypesWithoutMetadata(t *testing.T) {
	c, _ := newCollection(store.CollectionSpec{})
	errs := make(map[string]error)
	_, errs["untagged"] = store.NewTyped[untagged](c)
	_, errs["misplaced"] = store.NewTyped[misplaced](c)
	_, errs["unencodable"] = store.NewTyped[unencodable](c)
	_, errs["undecodable"] = store.NewTyped[undecodable](c)
	_, errs["forgetful"] = store.NewTyped[forgetful](c)
	for name, err := range errs {
		if !errors.Is(err, listwatch.Invalid) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), `json:"metadata"`) {
			t.Errorf("%s: got %v, want an error of code Invalid that names the type and the tag", name, err)
		}
	}
}
