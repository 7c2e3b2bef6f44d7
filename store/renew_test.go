package store_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// A renewable is a mapBackend that counts the renewals of each object.
type renewable struct {
	*mapBackend
	renewed map[string]int
	drafts  []time.Duration // the TTL of each draft
}

func (b *renewable) Commit(ctx context.Context, c store.Change) (*listwatch.Object, error) {
	if c.New != nil {
		b.drafts = append(b.drafts, c.New.TTL)
	}
	return b.mapBackend.Commit(ctx, c)
}

func (b *renewable) Renew(_ context.Context, o *listwatch.Object) error {
	if b.objects[o.Key] != o {
		return &listwatch.Error{Code: listwatch.Conflict}
	}
	b.renewed[o.Key.Name]++
	return nil
}

type lease struct {
	listwatch.Metadata `json:"metadata"`
	Seconds            int `json:"seconds"`
}

var leaseSpec = store.CollectionSpec{Kind: "Lease", TTL: func(data []byte) time.Duration {
	l, _ := listwatch.Decode[lease](&listwatch.Object{Data: data}) // zero if it cannot be decoded
	return time.Duration(l.Seconds) * time.Second
}}

func newLeases() (*store.Collection, *renewable) {
	b := &renewable{
		mapBackend: &mapBackend{objects: map[listwatch.Key]*listwatch.Object{}}, renewed: map[string]int{},
	}
	return store.New(leaseSpec, b), b
}

func TestDraftsHaveTheTTLOfTheObject(t *testing.T) {
	c, b := newLeases()
	for _, data := range []string{
		`{"metadata":{"name":"a"},"seconds":10}`,
		`{"metadata":{"name":"b"},"seconds":-10}`,
		`{"metadata":{"name":"c"},"seconds":"ten"}`,
		`{"metadata":{"name":"d","finalizers":["example.com/f"]},"seconds":10}`,
	} {
		mustCreate(t, c, data)
	}
	// The finalizer is removed, and then the object is deleted with another one.
	key := listwatch.Key{Name: "d"}
	for _, finalizers := range []string{`null`, `["example.com/g"]`} {
		p := listwatch.Patch{Type: listwatch.MergePatch, Data: []byte(`{"metadata":{"finalizers":` + finalizers + `}}`)}
		if _, err := c.Patch(t.Context(), key, p); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Delete(t.Context(), key, listwatch.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	want := []time.Duration{10 * time.Second, 0, 0, 0, 10 * time.Second, 0, 0}
	got, _ := json.Marshal(b.drafts)
	if w, _ := json.Marshal(want); string(got) != string(w) {
		t.Errorf("the drafts have the TTLs %v, want %v", b.drafts, want)
	}
}

// Each write that changes nothing is a renewal, and writes nothing.
func TestWritesWithoutAChangeRenew(t *testing.T) {
	c, b := newLeases()
	o := mustCreate(t, c, `{"metadata":{"name":"a"},"seconds":10}`)
	l, err := listwatch.Decode[lease](o)
	if err != nil {
		t.Fatal(err)
	}
	uid, version := l.UID, o.Version.String()
	patch := func(c *store.Collection, data string) (*listwatch.Object, error) {
		return c.Patch(t.Context(), o.Key, listwatch.Patch{Type: listwatch.MergePatch, Data: []byte(data)})
	}
	for name, write := range map[string]func() (*listwatch.Object, error){
		"renew":       func() (*listwatch.Object, error) { return c.Renew(t.Context(), o.Key, listwatch.Preconditions{}) },
		"empty patch": func() (*listwatch.Object, error) { return patch(c, `{}`) },
		"uid":         func() (*listwatch.Object, error) { return patch(c, `{ "metadata": {"uid":"`+uid+`"} }`) },
		"version": func() (*listwatch.Object, error) {
			return patch(c, `{"metadata":{"resourceVersion":"`+version+`"}}`)
		},
		"same value": func() (*listwatch.Object, error) { return patch(c, `{"seconds":10}`) },
		"replace":    func() (*listwatch.Object, error) { return c.Replace(t.Context(), o.Key, o.Data) },
		"within a view": func() (*listwatch.Object, error) {
			return patch(c.Within(listwatch.Selection{Name: "a"}), `{}`)
		},
		"update": func() (*listwatch.Object, error) {
			return c.Update(t.Context(), o.Key, listwatch.Preconditions{}, func(o *listwatch.Object) ([]byte, error) {
				return o.Data, nil
			})
		},
	} {
		before := b.renewed["a"]
		got, err := write()
		if err != nil || got != o || b.renewed["a"] != before+1 || b.commits != 1 {
			t.Errorf("%s: got %v, %v, %d renewals and %d commits, want the old object and one renewal", name, got, err,
				b.renewed["a"]-before, b.commits-1)
		}
	}
}

func TestOtherWritesDoNotRenew(t *testing.T) {
	c, b := newLeases()
	o := mustCreate(t, c, `{"metadata":{"name":"a"},"seconds":10}`)
	renew := func(c *store.Collection, key, patch string) error {
		_, err := c.Patch(t.Context(), listwatch.Key{Name: key}, listwatch.Patch{
			Type: listwatch.MergePatch, Data: []byte(patch),
		})
		return err
	}
	if err := renew(c.DryRun(), "a", `{}`); err != nil {
		t.Errorf("a dry run: %v", err)
	}
	wantCode(t, renew(c, "a", `{"metadata":{"uid":"of its predecessor"}}`), listwatch.Conflict, "")
	wantCode(t, renew(c, "a", `{"metadata":{"resourceVersion":"99"}}`), listwatch.Conflict, "")
	wantCode(t, renew(c, "b", `{}`), listwatch.NotFound, "")
	wantCode(t, renew(c.Within(listwatch.Selection{Name: "b"}), "a", `{}`), listwatch.NotFound, "")
	wantCode(t, renew(c, "a", `{"metadata":null}`), listwatch.Invalid, "")
	_, err := store.NewReadOnly(leaseSpec, b).Renew(t.Context(), o.Key, listwatch.Preconditions{})
	wantCode(t, err, listwatch.Unsupported, "")
	if b.renewed["a"] != 0 || b.commits != 1 {
		t.Errorf("got %d renewals and %d commits, want none", b.renewed["a"], b.commits-1)
	}
}

// A writer that is between the read and the renewal makes Renew read again.
func TestRenewalIsRetriedAfterAConflict(t *testing.T) {
	c, b := newLeases()
	o := mustCreate(t, c, `{"metadata":{"name":"a"},"seconds":10}`)
	written := false
	racing := store.New(leaseSpec, &racingRenewer{b, func() {
		if !written {
			written = true
			if _, err := c.Replace(t.Context(), o.Key, []byte(`{"metadata":{"name":"a"},"seconds":20}`)); err != nil {
				t.Error(err)
			}
		}
	}})
	got, err := racing.Renew(t.Context(), o.Key, listwatch.Preconditions{})
	if err != nil || got.Version != 2 || b.renewed["a"] != 1 {
		t.Errorf("got %v, %v and %d renewals, want version 2 renewed once", got, err, b.renewed["a"])
	}
}

// A racingRenewer calls before with each renewal.
type racingRenewer struct {
	*renewable
	before func()
}

func (b *racingRenewer) Renew(ctx context.Context, o *listwatch.Object) error {
	b.before()
	return b.renewable.Renew(ctx, o)
}

func TestTTLNeedsARenewer(t *testing.T) {
	c, b := newCollection(leaseSpec)
	_, err := c.Create(t.Context(), []byte(`{"metadata":{"name":"a"}}`))
	wantCode(t, err, listwatch.Unsupported, `leases has a TTL, but its backend *store_test.mapBackend cannot renew `+
		`objects: it must be a store.Renewer`)
	plain := store.New(store.CollectionSpec{Kind: "Lease"}, b)
	o := mustCreate(t, plain, `{"metadata":{"name":"a"}}`)
	if got, err := plain.Renew(t.Context(), o.Key, listwatch.Preconditions{}); err != nil || got != o {
		t.Errorf("a renewal without a TTL: %v, %v, want the object", got, err)
	}
}
