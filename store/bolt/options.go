package bolt

import (
	"time"

	"github.com/listwatch/listwatch"
)

// Options are what a database is opened with. The zero Options are sound.
type Options struct {
	// HistoryAge is how long a write can be watched from, and longer while nothing else is written. Zero: 5 minutes;
	// negative: for ever.
	HistoryAge time.Duration
	// HistoryBytes is how many bytes the history of each collection may hold beside its current objects, in memory and, within some
	// per cent, in the file. Zero: 256 MiB; negative: unlimited. The newest write stays, however large.
	HistoryBytes int64
	// FrameBytes is how many of these bytes may be encoded events, kept for the next watcher, and how many more those with
	// which watches begin. Zero: a quarter of HistoryBytes; negative: unlimited.
	FrameCacheBytes int64
	// Start is the version of a database that is made; the first write has the next one. Zero: the wall clock in microseconds, so that
	// clients of a file that was deleted find that their versions are too old, and not still to come.
	StartVersion listwatch.Version
	// LockWait is how long Open waits for another process to let go of the file. Zero: 5 seconds; negative: not at all.
	LockTimeout time.Duration
	// ShrinkFree is how many bytes of an existing file may be free: where it is more, and more than half of the file, Open rewrites the
	// file without them. Zero: 64 MiB; negative: any number, Open never rewrites it.
	ShrinkThreshold int64
	// Restored says that the file is a copy from before writes that have been served since. Then the database goes on under a new epoch
	// and from the wall clock in microseconds, or 2^32 versions on where it is further, without history, so that every client lists
	// again. Give it once, at the first start. Where there is no file it is an error of code Invalid.
	RestoredFromBackup bool
	// Transformer changes objects on their way to the file and back. Nil: they are kept as they are. A file must always be opened with
	// the one that it was made with.
	Transformer Transformer
}

const (
	defaultLockWait   = 5 * time.Second
	defaultShrinkFree = 64 << 20
)

func (o Options) withDefaults() Options {
	if o.LockTimeout == 0 {
		o.LockTimeout = defaultLockWait
	}
	if o.ShrinkThreshold == 0 {
		o.ShrinkThreshold = defaultShrinkFree
	}
	if o.Transformer == nil {
		o.Transformer = identity{}
	}
	if o.StartVersion == 0 {
		o.StartVersion = listwatch.Version(time.Now().UnixMicro())
	}
	return o
}
