package etcdcluster

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/listwatch/listwatch/interop/internal/etcdtest"
)

var (
	laneFor  = flag.Duration("lane.for", 0, "how long there are faults; each kind comes once at least")
	laneSeed = flag.Uint64("lane.seed", 0, "seed of the run; 0: a new one each time")
	laneKeep = flag.String("lane.histories", "", "a directory to keep what was recorded in; empty: only what fails is kept, with -artifacts")
)

// patience is how long a test waits for what must come. Only a test that fails waits so long.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	etcdtest.Main()
	serverMain()
	os.Exit(m.Run())
}
