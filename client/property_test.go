package client

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/testkit"
)

// A scriptedHistory holds the events of a server. Several events may have the same version.
type scriptedHistory []framing.WatchEvent

func randomHistory(rng *rand.Rand, versions int) (h scriptedHistory, at []int) {
	for v := 2; len(h) < versions; v += 1 + rng.IntN(3) {
		for k := range 1 + max(0, rng.IntN(6)-3) {
			h, at = append(h, modified(fmt.Sprint("key-", k), v)), append(at, v)
		}
	}
	return h, at
}

// scriptAfter returns the response to a watch that resumes from the given version. at holds the
// version of each event of h. The response ends at a random position, possibly between events of
// the same version, but not before the first event: several such ends would expire the watch.
func (h scriptedHistory) scriptAfter(rng *rand.Rand, at []int, version int) script {
	var steps []any
	for i, f := range h {
		if at[i] <= version {
			continue
		}
		if first := i == 0 || at[i-1] != at[i]; first && rng.IntN(4) == 0 {
			steps = append(steps, bookmark(max(version, at[i]-1)))
		}
		if len(steps) > 0 && rng.IntN(8) == 0 {
			return sends(append(steps, []error{errConnectionLost, io.EOF}[rng.IntN(2)])...)
		}
		steps = append(steps, f)
	}
	return sends(append(steps, io.EOF)...)
}

func TestReconnectsKeepTheHistoryExact(t *testing.T) {
	for range 200 {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			h, at := randomHistory(rng, 60)
			p := &scriptedTransport{}
			p.scriptFor = func(n int) script {
				version := 0
				fmt.Sscan(p.requests()[n].query.Get("resourceVersion"), &version)
				return h.scriptAfter(rng, at, version)
			}
			q := watchFrom(1)
			q.Bookmarks = rng.IntN(2) == 0
			w := testkit.Watch(t, newRemote(p), q)
			for i, last := 0, 0; i < len(h); {
				e := testkit.Read(t, w, 1)[0]
				if e.Object.Key.Name == "" {
					if i > 0 && at[i-1] > int(e.Version) || at[i] <= int(e.Version) {
						t.Fatalf("seed %d: %s before event %d, at version %d", seed, format(e), i, at[i])
					}
					if int(e.Version) < last {
						t.Fatalf("seed %d: %s after a bookmark at %d", seed, format(e), last)
					}
					last = int(e.Version)
					continue
				}
				if int(e.Version) != at[i] || string(e.Object.Data) != string(h[i].Object) {
					t.Fatalf("seed %d: event %d: got %s %s, want %s", seed, i, format(e), e.Object.Data, h[i].Object)
				}
				i++
			}
			w.Close()
		})
	}
}
