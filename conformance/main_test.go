package conformance_test

import (
	"flag"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/listwatch/listwatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0: a new one each time")

// seed is that of this run. What the writers and the cuts do follows from it; how the machine mixes them does not.
var seed = sync.OnceValue(func() uint64 {
	if *seedFlag != 0 {
		return *seedFlag
	}
	return rand.Uint64()
})

// randomFor returns the random numbers of one actor: they don't depend on what the others do.
func newRandom(actor uint64) *rand.Rand { return rand.New(rand.NewPCG(seed(), actor)) }
