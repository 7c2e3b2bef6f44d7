package informer_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
)

func TestFactorySharesInformers(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w := newFixture(t, "a")
		source := newFaultySource(w.things)
		var f informer.Factory
		configured := 0
		shared := func(source listwatch.Source, name string) *informer.Informer[Thing] {
			t.Helper()
			i, err := informer.Shared(&f, source, listwatch.Query{Name: name}, func(*informer.Informer[Thing]) { configured++ })
			if err != nil {
				t.Fatal(err)
			}
			return i
		}
		all := shared(source, "")
		if shared(source, "") != all {
			t.Error("the same source, selection and type gives two informers")
		}
		if shared(source, "a") == all || shared(newFaultySource(w.things), "") == all {
			t.Error("another selection, or another source, gives the same informer")
		}
		if configured != 3 {
			t.Errorf("configured %d times, want 3: once for each informer", configured)
		}

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		synctest.Wait()
		late := shared(source, "b")
		if err := f.WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
		if all.Len() != 1 || late.Len() != 0 || !late.HasSynced() {
			t.Errorf("there are %d things in all, %d of the late informer, which has synced: %v", all.Len(), late.Len(), late.HasSynced())
		}
		if n := len(source.watches); n != 3 {
			t.Errorf("the source has %d watches, want 3", n)
		}
		if err := f.Run(ctx); listwatch.CodeOf(err) != listwatch.Invalid {
			t.Errorf("a second Run: %v, want %v", err, listwatch.Invalid)
		}
		cancel()
		if err := <-ended; err != context.Canceled {
			t.Errorf("Run returned %v", err)
		}
		if i := shared(source, "never-runs"); i.Len() != 0 {
			t.Error("an informer of a factory that is over has objects")
		}
	})
}

// incomparable sources can't be told from each other.
type incomparable struct {
	listwatch.Source
	_ []int
}

func TestFactoryRejectsIncomparableSource(t *testing.T) {
	var f informer.Factory
	if _, err := informer.Shared[Thing](&f, incomparable{}, listwatch.Query{}, nil); listwatch.CodeOf(err) != listwatch.Invalid {
		t.Errorf("a source that can't be compared: %v, want %v", err, listwatch.Invalid)
	}
	if _, err := informer.Shared[Thing](&f, nil, listwatch.Query{}, nil); listwatch.CodeOf(err) != listwatch.Invalid {
		t.Errorf("no source: %v, want %v", err, listwatch.Invalid)
	}
}
