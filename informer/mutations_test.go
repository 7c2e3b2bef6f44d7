package informer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/store/memory"
)

func TestModifiedStoredValueIsDetected(t *testing.T) {
	for _, modifies := range []bool{false, true} {
		withFakeTime(t, func(t *testing.T) {
			things := memory.New[Thing]()
			if _, err := things.Create(t.Context(),
				Thing{Metadata: listwatch.Metadata{Name: "a", Labels: map[string]string{"a": "b"}}}); err != nil {
				t.Fatal(err)
			}
			i := &informer.Informer[*Thing]{Source: things, DetectMutations: true}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			found := make(chan any, 1)
			go func() {
				defer func() { found <- recover() }()
				_ = i.Run(ctx)
			}()
			if err := i.WaitForSync(ctx); err != nil {
				t.Fatal(err)
			}
			for spec := range 3 { // replace the value a few times
				if _, err := things.Update(ctx, listwatch.Key{Name: "a"},
					func(t *Thing) error { t.Spec = spec + 1; return nil }); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			if a, _ := i.Get(listwatch.Key{Name: "a"}); modifies {
				a.Labels["a"] = "c"
			}
			cancel() // Run checks a last time before it returns
			if p := fmt.Sprint(<-found); strings.Contains(p, "value of a was modified") != modifies {
				t.Errorf("Run panicked with %v; the value was modified: %v", p, modifies)
			}
		})
	}
}
