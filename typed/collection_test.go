package typed_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/typed"
)

type flag struct {
	listwatch.Metadata `json:"metadata"`
	Text               string `json:"text,omitempty"`
	On                 bool   `json:"on"`
}

// newFlags returns a Collection and the store under it. The empty store has version 1, so the
// first write has version 2.
func newFlags(t testing.TB) (typed.Collection[flag], *store.Collection) {
	t.Helper()
	c, err := memory.Open(memory.Options{StartVersion: 1}).Collection(store.SpecOf[flag]())
	if err != nil {
		t.Fatal(err)
	}
	return typed.Collection[flag]{Store: c}, c
}

func TestCreateReturnsServerSetMetadata(t *testing.T) {
	flags, c := newFlags(t)
	f, err := flags.Create(t.Context(), flag{Metadata: listwatch.Metadata{Name: "a"}, Text: "<&>"})
	if err != nil || f.UID == "" || f.CreationTimestamp == nil {
		t.Fatalf("got %+v, %v, want a uid and a time of creation", f, err)
	}
	if f.Generation != 1 || f.Metadata.Version() != 2 || f.Text != "<&>" {
		t.Errorf("got %+v, want generation 1, version 2 and the text", f)
	}
	raw, err := c.Get(t.Context(), f.Key())
	if err != nil || !strings.Contains(string(raw.Data), `"text":"<&>"`) ||
		!strings.HasPrefix(string(raw.Data), `{"kind":"flag","apiVersion":"v1",`) {
		t.Errorf("got %s, %v, want the text unescaped and the name of the type as the kind", raw.Data, err)
	}
	got, err := flags.Get(t.Context(), f.Key())
	if err != nil || got.UID != f.UID {
		t.Errorf("got %+v, %v, want %+v", got, err, f)
	}
	same, err := flags.Update(t.Context(), f.Key(), func(*flag) error { return nil })
	if err != nil || same.ResourceVersion != "2" || c.Stats().Newest != 2 {
		t.Errorf("an update without a change: got %+v, %v, and the store has version %d", same, err, c.Stats().Newest)
	}
	on, err := flags.Update(t.Context(), f.Key(), func(f *flag) error { f.On = true; return nil })
	if err != nil || !on.On || on.Generation != 2 || on.UID != f.UID ||
		!on.CreationTimestamp.Equal(*f.CreationTimestamp) {
		t.Errorf("got %+v, %v, want it on, at generation 2", on, err)
	}
	last, err := flags.Delete(t.Context(), f.Key(), 0)
	if err != nil || !last.On || last.ResourceVersion != "4" {
		t.Errorf("got %+v, %v, want the last state at version 4", last, err)
	}
	if _, err = flags.Get(t.Context(), f.Key()); !errors.Is(err, listwatch.NotFound) ||
		!strings.Contains(err.Error(), `flags "a" not found`) {
		t.Errorf("got %v, want NotFound", err)
	}
}

func TestZeroValueIsReturnedWithAnError(t *testing.T) {
	flags, c := newFlags(t)
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
	if _, err := flags.Update(t.Context(), f.Key(), func(f *flag) error { f.Name = "b"; return nil }); !errors.Is(err,
		listwatch.Invalid) {
		t.Errorf("got %v, want code Invalid for another name", err)
	}
	// Another writer of the collection may write an object that cannot be decoded as a
	// flag.
	foreign, err := c.Create(t.Context(), []byte(`{"metadata":{"name":"f"},"on":"yes"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := flags.Get(t.Context(), foreign.Key); !errors.Is(err, listwatch.Corrupt) {
		t.Errorf("got %v, want code Corrupt", err)
	}
	functions := typed.Collection[func()]{Store: c}
	if _, err := functions.Create(t.Context(), nil); !errors.Is(err, listwatch.Invalid) {
		t.Errorf("got %v, want code Invalid for a value without JSON", err)
	}
}

// After a program is rolled back to a type that lacks a new member, Update keeps this member, and
// the metadata that listwatch.Metadata lacks.
func TestUpdateKeepsMembersThatTypeLacks(t *testing.T) {
	flags, c := newFlags(t)
	const owners = `"ownerReferences":[{"apiVersion":"v1","kind":"Team","name":"t","uid":"u"}]`
	const since = `"since":{"b":1.0,"a":"\u00e9"}`
	o, err := c.Create(t.Context(), []byte(`{"metadata":{"name":"a",`+owners+`},"on":false,`+since+`}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := flags.Update(t.Context(), o.Key,
		func(f *flag) error { f.On, f.Labels = true, map[string]string{"x": "y"}; return nil }); err != nil {
		t.Fatal(err)
	}
	if o, err = c.Get(t.Context(), o.Key); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{owners, since, `"on":true`, `"labels":{"x":"y"}`} {
		if !strings.Contains(string(o.Data), want) {
			t.Errorf("got %s, want %s in it", o.Data, want)
		}
	}
}

// A struct with the option omitzero is absent from the JSON of a value in which it is zero.
func TestUpdateKeepsMembersOfOmittedStructs(t *testing.T) {
	_, c := newFlags(t)
	type scaled struct {
		listwatch.Metadata `json:"metadata"`
		Spec               struct {
			Replicas int `json:"replicas,omitempty"`
		} `json:"spec,omitzero"`
	}
	o, err := c.Create(t.Context(), []byte(`{"metadata":{"name":"a"},"spec":{"image":"nginx"}}`))
	if err != nil {
		t.Fatal(err)
	}
	all := typed.Collection[scaled]{Store: c}
	if _, err := all.Update(t.Context(), o.Key, func(s *scaled) error { s.Spec.Replicas = 3; return nil }); err != nil {
		t.Fatal(err)
	}
	if o, err = c.Get(t.Context(), o.Key); err != nil ||
		!strings.Contains(string(o.Data), `"spec":{"image":"nginx","replicas":3}`) {
		t.Errorf("got %s, %v, want the image and three replicas", o.Data, err)
	}
}

// The function passed to Update may assign a whole value, with the metadata of another object.
func TestUpdateIgnoresChangesOfTheIdentity(t *testing.T) {
	flags, _ := newFlags(t)
	var all []flag
	for _, name := range []string{"a", "b"} {
		f, err := flags.Create(t.Context(), flag{Metadata: listwatch.Metadata{Name: name}, Text: name})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	got, err := flags.Update(t.Context(), all[0].Key(), func(f *flag) error { *f = all[1]; f.Name = "a"; return nil })
	if err != nil || got.Text != "b" || got.UID != all[0].UID {
		t.Errorf("got %+v, error %v, want the text of b in the object %s", got, err, all[0].UID)
	}
}

// owned has metadata with a member that listwatch.Metadata lacks.
type owned struct {
	ownedMetadata `json:"metadata"`
}

type ownedMetadata struct {
	listwatch.Metadata
	OwnerReferences []map[string]string `json:"ownerReferences,omitempty"`
}

func TestMetadataCanBeExtended(t *testing.T) {
	_, c := newFlags(t)
	things := typed.Collection[owned]{Store: c}
	var o owned
	o.Name, o.OwnerReferences = "a", []map[string]string{{"apiVersion": "v1", "kind": "Team", "name": "t", "uid": "u"}}
	got, err := things.Create(t.Context(), o)
	if err != nil || got.UID == "" || len(got.OwnerReferences) != 1 || got.Key() != o.Key() {
		t.Errorf("got %+v, error %v, want an owner and a uid", got, err)
	}
	if err := typed.Check[owned](); err != nil {
		t.Errorf("Check: %v", err)
	}
}

// A fixedStore has one object and accepts no write.
type fixedStore struct {
	listwatch.Store
	object *listwatch.Object
}

func (s fixedStore) Get(context.Context, listwatch.Key) (*listwatch.Object, error) {
	return s.object, nil
}

func TestUpdateReportsUnusableObjects(t *testing.T) {
	for name, data := range map[string]string{
		"a duplicate member": `{"text":"a","text":"b","metadata":{"name":"a","resourceVersion":"1"}}`,
		"another type":       `{"on":"x","metadata":{"name":"a","resourceVersion":"1"}}`,
	} {
		o, err := listwatch.ParseObject([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		flags := typed.Collection[flag]{Store: fixedStore{object: o}}
		if _, err := flags.Update(t.Context(), o.Key, func(f *flag) error { f.Text = "c"; return nil }); !errors.Is(err,
			listwatch.Corrupt) {
			t.Errorf("%s: got error %v, want %v", name, err, listwatch.Corrupt)
		}
	}
}

func TestNewObjectSetsTheVersion(t *testing.T) {
	o, err := typed.NewObject(flag{Metadata: listwatch.Metadata{Name: "a", ResourceVersion: "3"}, Text: "<&>"}, 7)
	const want = `{"metadata":{"name":"a","resourceVersion":"7"},"text":"<&>","on":false}`
	if err != nil || o.Version != 7 || string(o.Data) != want {
		t.Errorf("got %v, error %v, want %s", o, err, want)
	}
	_, errFunc := typed.NewObject(func() {}, 1)
	_, errMetadata := typed.NewObject(struct{ N int }{}, 1)
	_, errVersion := typed.NewObject(flag{Metadata: listwatch.Metadata{Name: "a"}}, 0)
	for _, err := range []error{errFunc, errMetadata, errVersion} {
		if !errors.Is(err, listwatch.Invalid) {
			t.Errorf("got error %v, want %v", err, listwatch.Invalid)
		}
	}
}

// A conflictStore responds to every write with a conflict.
type conflictStore struct {
	listwatch.Store
	writes int
}

func (s *conflictStore) Replace(context.Context, listwatch.Key, []byte) (*listwatch.Object, error) {
	s.writes++
	return nil, &listwatch.Error{Code: listwatch.Conflict}
}

func TestUpdateGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const maxTries = 100
		flags, c := newFlags(t)
		f, err := flags.Create(t.Context(), flag{Metadata: listwatch.Metadata{Name: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		s := &conflictStore{Store: c}
		flags.Store = s
		change := func(f *flag) error { f.On = !f.On; return nil }
		got, err := flags.Update(t.Context(), f.Key(), func(*flag) error { return nil })
		if err != nil || got.ResourceVersion != f.ResourceVersion || s.writes != 0 {
			t.Errorf("an update without a change: got %+v, error %v after %d writes", got, err, s.writes)
		}
		start := time.Now()
		_, err = flags.Update(t.Context(), f.Key(), change)
		if !errors.Is(err, listwatch.Conflict) || s.writes != maxTries || time.Since(start) > maxTries*time.Second {
			t.Errorf("got error %v after %d tries in %v, want %v after %d", err, s.writes, time.Since(start),
				listwatch.Conflict, maxTries)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := flags.Update(ctx, f.Key(), change); err != context.DeadlineExceeded {
			t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
		}
		own := fmt.Errorf("mine: %w", listwatch.Conflict)
		if _, err := flags.Update(t.Context(), f.Key(), func(*flag) error { return own }); err != own {
			t.Errorf("got error %v, want that of the function", err)
		}
	})
}

func TestReadOnlyReadsAndRefusesWrites(t *testing.T) {
	flags, c := newFlags(t)
	f, err := flags.Create(t.Context(), flag{Metadata: listwatch.Metadata{Name: "a"}, On: true})
	if err != nil {
		t.Fatal(err)
	}
	flags.Store = typed.ReadOnly(c)
	if got, err := flags.Get(t.Context(), f.Key()); err != nil || got.UID != f.UID {
		t.Errorf("got %+v, error %v, want %+v", got, err, f)
	}
	for _, key := range []listwatch.Key{{Name: "b"}, {Namespace: "n", Name: "a"}} {
		if _, err := flags.Get(t.Context(), key); !errors.Is(err, listwatch.NotFound) {
			t.Errorf("%s: got error %v, want NotFound", key, err)
		}
	}
	_, errCreate := flags.Create(t.Context(), flag{Metadata: listwatch.Metadata{Name: "b"}})
	_, errUpdate := flags.Update(t.Context(), f.Key(), func(f *flag) error { f.On = false; return nil })
	_, errDelete := flags.Delete(t.Context(), f.Key(), 0)
	for _, err := range []error{errCreate, errUpdate, errDelete} {
		if !errors.Is(err, listwatch.Unsupported) ||
			!strings.Contains(err.Error(), "the *store.Collection is read-only") {
			t.Errorf("got error %v, want that the collection is read-only", err)
		}
	}
	if d := listwatch.Describe(flags); d.Kind != "flag" || d.Epoch == "" {
		t.Errorf("got %+v, want the description of the collection", d)
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

func TestCheckRejectsTypesWithoutMetadata(t *testing.T) {
	if err := cmp.Or(typed.Check[flag](), typed.Check[json.RawMessage]()); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"untagged": typed.Check[untagged](), "misplaced": typed.Check[misplaced](),
		"unencodable": typed.Check[unencodable](),
		"undecodable": typed.Check[undecodable](), "forgetful": typed.Check[forgetful](), "int": typed.Check[int](),
	} {
		if !errors.Is(err, listwatch.Invalid) || !strings.Contains(err.Error(), name) ||
			!strings.Contains(err.Error(), `json:"metadata"`) {
			t.Errorf("%s: got %v, want an error of code Invalid that names the type and the tag", name, err)
		}
	}
}
