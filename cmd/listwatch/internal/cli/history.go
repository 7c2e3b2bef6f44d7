package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/listwatch/listwatch"
)

// History contains the flags about the history of collections.
type History struct {
	age          time.Duration
	bytes, since ByteSize
}

// Register adds the flags to f.
func (h *History) Register(f *pflag.FlagSet) {
	h.bytes, h.since = 256<<20, 16<<20
	f.DurationVar(&h.age, "history-age", 5*time.Minute,
		"how long history is kept; 0 means the default, a negative value forever")
	f.Var(&h.bytes, "history-bytes",
		"maximum `size` of the history of each collection; 0 means the default, a negative value no limit")
	f.Var(&h.since, "since-bytes",
		"maximum `size`, for each collection, of what is remembered for clients that return after the end of the history; 0 means the default, a negative value no limit")
}

// Retention returns the values of the flags.
func (h *History) Retention() listwatch.Retention {
	return listwatch.Retention{Age: h.age, Bytes: int64(h.bytes), SinceBytes: int64(h.since)}
}
