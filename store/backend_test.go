package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

func TestDraftSealsOneObjectPerVersion(t *testing.T) {
	d := store.Draft{
		Key: listwatch.Key{Name: "a"}, Labels: map[string]string{"l": "v"}, Fields: map[string]string{"f": "w"},
		Before: []byte(`{"metadata":{"name":"a","resourceVersion":`), After: []byte(`}}`),
	}
	one, two := d.Seal(9), d.Seal(10)
	for want, o := range map[string]*listwatch.Object{
		`{"metadata":{"name":"a","resourceVersion":"9"}}`:  one,
		`{"metadata":{"name":"a","resourceVersion":"10"}}`: two,
		`{"metadata":{"name":"a","resourceVersion":"11"}}`: two.At(11),
	} {
		if string(o.Data) != want || o.Key != d.Key || o.Labels["l"] != "v" || o.Fields["f"] != "w" {
			t.Errorf("got %s, key %v, labels %v, fields %v, want %s and the attributes of the draft", o.Data, o.Key,
				o.Labels, o.Fields, want)
		}
	}
}

// A backend may choose the name of a new object, refuse a write with causes, and accept versions of
// another server.
func TestBackendHasOptionalRules(t *testing.T) {
	b := &generous{mapBackend: &mapBackend{objects: map[listwatch.Key]*listwatch.Object{}}}
	c := store.New(store.CollectionSpec{GeneratedNames: true}, b)
	for _, data := range []string{`{"spec":{}}`, `{"metadata":{"name":"a"}}`} {
		if _, err := c.Create(t.Context(), []byte(data)); err != nil {
			t.Fatalf("create %s: %v", data, err)
		}
	}
	key, data := listwatch.Key{Name: "a"}, []byte(`{"metadata":{"name":"a"},"spec":{"x":1}}`)
	if _, err := c.ReplaceIf(t.Context(), key, listwatch.Preconditions{Version: 100}, data); err != nil {
		t.Errorf("replace with a version at which the object was the same: %v", err)
	}
	_, err := c.ReplaceIf(t.Context(), key, listwatch.Preconditions{Version: 1}, data)
	if !errors.Is(err, listwatch.Conflict) {
		t.Errorf("replace with an older version: %v, want Conflict", err)
	}
	b.refusal = listwatch.Cause{Field: "spec.x", Message: "no"}
	_, err = c.Replace(t.Context(), key, []byte(`{"metadata":{"name":"a"},"spec":{"x":2}}`))
	e := listwatch.AsError(err)
	if e.HTTPStatus() != 422 || len(e.Details.Causes) != 1 || e.Details.Causes[0].Field != "spec.x" {
		t.Errorf("a refused commit: got %v, want status 422 with the cause", err)
	}
}

type generous struct {
	*mapBackend
	refusal error
}

func (b *generous) UnchangedSince(o *listwatch.Object, v listwatch.Version) bool {
	return o.Version < v
}

func (b *generous) Commit(ctx context.Context, c store.Change) (*listwatch.Object, error) {
	if b.refusal != nil {
		return nil, b.refusal
	}
	return b.mapBackend.Commit(ctx, c)
}

// The version is @ in the text of a draft.
func TestUnversionedDraftsLackTheVersion(t *testing.T) {
	for in, want := range map[string]string{
		`{"metadata":{"name":"a","resourceVersion":@,"uid":"u"}}`:         `{"metadata":{"name":"a","uid":"u"}}`,
		`{"metadata":{"resourceVersion":@,"name":"a"}}`:                   `{"metadata":{"name":"a"}}`,
		`{"metadata":{"name":"a","resourceVersion":@}}`:                   `{"metadata":{"name":"a"}}`,
		`{"metadata":{"resourceVersion":@}}`:                              `{"metadata":{}}`,
		`{"metadata":{"name":"a","r\u0065sourceVersion":@},"x":"@not\""}`: `{"metadata":{"name":"a"},"x":"@not\""}`,
	} {
		before, after, _ := strings.Cut(in, "@")
		d := store.Draft{Before: []byte(before), After: []byte(after)}
		if got := string(d.Unversioned().Data); got != want {
			t.Errorf("%s is stored as %s, want %s", in, got, want)
		}
	}
}
