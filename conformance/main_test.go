package conformance_test

import (
	"flag"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/listwatch/listwatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0 means a random seed")

// seed is the seed of this run. It determines the writes and the cuts, but not the
// scheduling of goroutines.
var seed = sync.OnceValue(func() uint64 {
	if *seedFlag != 0 {
		return *seedFlag
	}
	return rand.Uint64()
})

// newRandom returns the random source of one actor, which is a writer or a watcher. Each actor
// has an independent source.
func newRandom(actor uint64) *rand.Rand { return rand.New(rand.NewPCG(seed(), actor)) }
