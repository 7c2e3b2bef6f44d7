package informer_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/listwatchtest"
)

func TestFactorySharesInformers(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w := newFixture(t, "a")
		source := listwatchtest.New(w.things)
		var f informer.Factory
		configured := 0
		shared := func(source listwatch.Source, name string) *informer.Informer[Thing] {
			t.Helper()
			i, err := informer.Shared(&f, source, listwatch.Selection{Name: name},
				func(*informer.Informer[Thing]) { configured++ })
			if err != nil {
				t.Fatal(err)
			}
			return i
		}
		all := shared(source, "")
		if shared(source, "") != all {
			t.Error("two informers for the same source, selection and type")
		}
		if shared(source, "a") == all {
			t.Error("the same informer for another selection")
		}
		if shared(listwatchtest.New(w.things), "") == all {
			t.Error("the same informer for another source")
		}
		if configured != 3 {
			t.Errorf("configure was called %d times, want 3, once per informer", configured)
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
			t.Errorf("the informers hold %d and %d objects, the late one has synced: %v; want 1, 0, true", all.Len(),
				late.Len(), late.HasSynced())
		}
		if n := len(source.Watches()); n != 3 {
			t.Errorf("the source has %d watches, want 3", n)
		}
		if err := f.Run(ctx); listwatch.CodeOf(err) != listwatch.Invalid {
			t.Errorf("second Run: got %v, want %v", err, listwatch.Invalid)
		}
		cancel()
		if err := <-ended; err != context.Canceled {
			t.Errorf("Run returned %v, want context.Canceled", err)
		}
		if i := shared(source, "never-runs"); i.Len() != 0 {
			t.Error("an informer of a factory that has ended holds objects")
		}
	})
}

// incomparable is a source type that does not support ==.
type incomparable struct {
	listwatch.Source
	_ []int
}

func TestFactoryRejectsIncomparableSource(t *testing.T) {
	var f informer.Factory
	for name, source := range map[string]listwatch.Source{"incomparable": incomparable{}, "nil": nil} {
		_, err := informer.Shared[Thing](&f, source, listwatch.Selection{}, nil)
		if listwatch.CodeOf(err) != listwatch.Invalid {
			t.Errorf("%s source: got %v, want %v", name, err, listwatch.Invalid)
		}
	}
}
