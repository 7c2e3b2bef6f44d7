package history

import (
	"math"
	"time"

	"github.com/listwatch/listwatch"
)

// A window bounds the records that are kept. Immutable; negative bounds are none.
type window struct {
	maxAge   time.Duration
	maxBytes int64
}

// trimPerAppend bounds how many records one Append drops for their age: after an idle hour the first write must not pay for all.
const trimPerAppend = 128

// trim drops the records that have left the window, never the newest. l.mu is held.
func (l *Log) trim(now time.Time) {
	for range trimPerAppend {
		if l.records.len() <= 1 || l.window.maxAge < 0 || now.Sub(l.records.oldest().at) <= l.window.maxAge {
			break
		}
		l.drop()
	}
	l.trimBytes()
}

// trimBytes drops records until the rest fits into the window's bytes. l.mu is held.
func (l *Log) trimBytes() {
	for l.records.len() > 1 && l.window.maxBytes >= 0 && l.records.bytes+l.budget.Used() > l.window.maxBytes {
		l.drop()
	}
}

// Compact forgets all history: a watch from any version but the newest is told that it expired. Open watches that have read
// everything go on.
func (l *Log) Compact() { l.CompactTo(math.MaxUint64) }

// CompactTo forgets the history before v: what was so at v can still be listed and watched from. A v beyond the newest version is
// that one.
func (l *Log) CompactTo(v listwatch.Version) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v = min(v, l.now())
	for l.records.len() > 0 && l.records.oldest().version <= v {
		l.drop()
	}
	// Versions of other collections have no records here, yet whoever asks for one of them asks for history too.
	l.records.floor = max(l.records.floor, v)
}

// drop takes the oldest record out of the window and out of every feed. l.mu is held.
func (l *Log) drop() {
	r := l.records.pop()
	l.feeds.trim(r)
	l.state.drop(r, l.records.numberOf0())
	for i := range r.frames {
		r.frames[i].Drop()
	}
	if r.old != nil {
		r.old.InitialFrames().Drop()
	}
}
