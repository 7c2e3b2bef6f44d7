package benchcmd

import (
	"sync"
	"testing"
	"time"
)

// The test hangs if the locks are taken in the wrong order.
func TestWatchersReceiveWhileTheyAreAwaited(t *testing.T) {
	r := new(recorder)
	f := &fleet{watchers: []*watcher{{recorder: r}, {recorder: r}}}
	var receiving sync.WaitGroup
	for _, w := range f.watchers {
		receiving.Go(func() {
			for range 20_000 {
				w.receive(nil, time.Now(), time.Now())
			}
		})
	}
	for range 20_000 {
		if err := f.await(t.Context(), 0, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	receiving.Wait()
}
