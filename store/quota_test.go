package store_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

func quotaCollection(t *testing.T, s store.CollectionSpec) *store.Collection {
	t.Helper()
	s.Kind = "Pod"
	c, err := memory.Open(memory.Options{}).Collection(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantQuotaError(t *testing.T, err error, quota string) {
	t.Helper()
	q, ok := errors.AsType[*store.QuotaError](err)
	if !ok || q.Quota != quota || !strings.Contains(err.Error(), "exceeded quota: "+quota) {
		t.Errorf("got %#v, %v, want the quota of %s", q, err, quota)
	}
	if code := kubestatus.Of(err).Code; code != http.StatusForbidden {
		t.Errorf("got status %d, want 403", code)
	}
}

func TestConcurrentWritersNeverExceedTheQuota(t *testing.T) {
	c := quotaCollection(t, store.CollectionSpec{MaxObjects: 10})
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			if _, err := c.Create(t.Context(), fmt.Appendf(nil, `{"metadata":{"name":"p%d"}}`, i)); err != nil {
				wantQuotaError(t, err, "objects")
			}
		})
	}
	wg.Wait()
	if n := c.Stats().Objects; n > 10 || n == 0 {
		t.Errorf("got %d objects, want at most 10", n)
	}
	// Until a create has returned, it may count twice: as a write in progress and as an object. So
	// concurrent creates may have been refused too early. These creates fill the rest of the quota.
	for i := range 10 {
		_, _ = c.Create(t.Context(), fmt.Appendf(nil, `{"metadata":{"name":"q%d"}}`, i))
	}
	page, err := c.List(t.Context(), listwatch.Query{})
	if err != nil || len(page.Items) != 10 {
		t.Fatalf("got %d objects, %v; want 10", len(page.Items), err)
	}
	first := page.Items[0].Key
	_, err = c.DryRun().Create(t.Context(), []byte(`{"metadata":{"name":"dry"}}`))
	wantQuotaError(t, err, "objects")
	if _, err := c.Replace(t.Context(), first,
		fmt.Appendf(nil, `{"metadata":{"name":%q},"x":1}`, first.Name)); err != nil {
		t.Errorf("an update: %v", err)
	}
	if _, err := c.Delete(t.Context(), first, listwatch.Preconditions{}); err != nil {
		t.Errorf("a delete: %v", err)
	}
	if _, err := c.Create(t.Context(), []byte(`{"metadata":{"name":"next"}}`)); err != nil {
		t.Errorf("a create after the delete: %v", err)
	}
}

func TestQuotaOfBytesAllowsSmallerObjects(t *testing.T) {
	c := quotaCollection(t, store.CollectionSpec{MaxBytes: 2000})
	object := func(name string, size int) []byte {
		return fmt.Appendf(nil, `{"metadata":{"name":%q},"x":%q}`, name, strings.Repeat("x", size))
	}
	if _, err := c.Create(t.Context(), object("a", 1000)); err != nil {
		t.Fatal(err)
	}
	_, err := c.Create(t.Context(), object("b", 1000))
	wantQuotaError(t, err, "bytes")
	key := listwatch.Key{Name: "a"}
	_, err = c.Replace(t.Context(), key, object("a", 3000))
	wantQuotaError(t, err, "bytes")
	if _, err := c.Replace(t.Context(), key, object("a", 100)); err != nil {
		t.Errorf("a smaller object: %v", err)
	}
	if _, err := c.Create(t.Context(), object("b", 1000)); err != nil {
		t.Errorf("a create after that: %v", err)
	}
}

// A wrapper stands for a Backend that validates writes, or limits them to a tenant.
type wrapper struct{ store.Backend }

func (w wrapper) Unwrap() listwatch.Source { return w.Backend }

func TestWrappedBackendKeepsEpochAndQuota(t *testing.T) {
	inner := quotaCollection(t, store.CollectionSpec{})
	c := store.New(store.CollectionSpec{Kind: "Pod", MaxObjects: 1}, wrapper{inner.Backend()})
	if got, want := c.Describe().Epoch, inner.Describe().Epoch; got != want || want == "" {
		t.Errorf("got epoch %q, want %q", got, want)
	}
	if _, err := c.Create(t.Context(), []byte(`{"metadata":{"name":"a"}}`)); err != nil {
		t.Fatal(err)
	}
	_, err := c.Create(t.Context(), []byte(`{"metadata":{"name":"b"}}`))
	wantQuotaError(t, err, "objects")
	if n := c.Stats().Objects; n != 1 {
		t.Errorf("got %d objects, want 1", n)
	}
}

func TestQuotaWithoutSizesIsAnError(t *testing.T) {
	c, _ := newCollection(store.CollectionSpec{Kind: "Pod", MaxBytes: 1 << 20})
	_, err := c.Create(t.Context(), []byte(`{"metadata":{"name":"a"}}`))
	wantCode(t, err, listwatch.Unsupported,
		"pods has a quota, but its backend *store_test.mapBackend has no method Stats")
}
