package sources

import (
	"flag"
	"testing"

	"github.com/listwatch/listwatch/internal/leaktest"
)

var all = flag.Bool("all", false, "run every case over every source under the race detector, too")

func TestMain(m *testing.M) { leaktest.Main(m) }
