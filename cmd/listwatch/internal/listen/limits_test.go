package listen

import (
	"testing"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
)

func TestDefaultLimitsAreBounded(t *testing.T) {
	for _, c := range []struct {
		watches, perClient int
		memory             int64
		all, one           int
	}{
		{0, 0, 1 << 30, 65_536, 32_768},
		{0, 0, -1, 0, 0},
		{3, 0, 1 << 30, 3, 2},
		{-1, 0, 1 << 30, -1, 0},
		{0, -1, 1 << 30, 65_536, -1},
		{10, 7, 1 << 30, 10, 7},
	} {
		o := limitOptions{watches: c.watches, watchesPerClient: c.perClient, memory: cli.ByteSize(c.memory)}
		if all, one := o.maxWatches(); all != c.all || one != c.one {
			t.Errorf("%+v: got %d and %d", c, all, one)
		}
	}
	files := maxOpenFiles()
	for connections, want := range map[int]int64{0: max(files-reservedFiles, files/2), 7: 7, -1: 0} {
		if got := (&limitOptions{connections: connections}).maxConnections(); got != want || connections == 0 &&
			files > 0 && got >= files {
			t.Errorf("--max-connections %d: got %d with %d open files, want %d", connections, got, files, want)
		}
	}
}
