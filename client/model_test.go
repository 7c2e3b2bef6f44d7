package client

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch/framing"
)

// A history is what a server knows: versions with one key or several.
type history []framing.WatchEvent

func randomHistory(rng *rand.Rand, versions int) (h history, at []int) {
	for v := 2; len(h) < versions; v += 1 + rng.IntN(3) {
		for k := range 1 + max(0, rng.IntN(6)-3) {
			h, at = append(h, modified(fmt.Sprint("key-", k), v)), append(at, v)
		}
	}
	return h, at
}

// stream is what the server says to who asks for what follows version, until it is cut somewhere, perhaps within a version.
func (h history) stream(rng *rand.Rand, at []int, version int) script {
	var steps []any
	for i, f := range h {
		if at[i] <= version {
			continue
		}
		if first := i == 0 || at[i-1] != at[i]; first && rng.IntN(4) == 0 {
			steps = append(steps, bookmark(max(version, at[i]-1)))
		}
		if rng.IntN(8) == 0 {
			return says(append(steps, []error{errCut, io.EOF}[rng.IntN(2)])...)
		}
		steps = append(steps, f)
	}
	return says(append(steps, io.EOF)...)
}

// Whatever is cut, and wherever, the reader sees the history.
func TestCutsAnywhereLeaveTheHistoryExact(t *testing.T) {
	for range 200 {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			h, at := randomHistory(rng, 60)
			p := &peer{}
			p.answer = func(n int) script {
				version := 0
				fmt.Sscan(p.seen()[n].query.Get("resourceVersion"), &version)
				return h.stream(rng, at, version)
			}
			q := from(1)
			q.Bookmarks = rng.IntN(2) == 0
			w := watch(t, remote(p), q)
			for i, last := 0, 0; i < len(h); {
				e := next(t, w, 1)[0]
				if e.Object.Key.Name == "" {
					if i > 0 && at[i-1] > int(e.Version) || at[i] <= int(e.Version) {
						t.Fatalf("seed %d: %s before event %d, at version %d", seed, spell(e), i, at[i])
					}
					if int(e.Version) < last {
						t.Fatalf("seed %d: %s after a bookmark at %d", seed, spell(e), last)
					}
					last = int(e.Version)
					continue
				}
				if int(e.Version) != at[i] || string(e.Object.Data) != string(h[i].Object) {
					t.Fatalf("seed %d: event %d: got %s %s, want %s", seed, i, spell(e), e.Object.Data, h[i].Object)
				}
				i++
			}
			w.Close()
		})
	}
}
