package history

import (
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// A backlog is the stage that returns records that are older than the feed.
type backlog struct {
	live      *live
	next, end uint64         // the numbers of the records that are not read yet
	conflated conflatedRange // only if the cursor conflates
}

func (b *backlog) progress() listwatch.Progress {
	p := listwatch.Progress{More: true}
	p.ID, p.Version = b.live.feed.stateID, max(b.live.feed.log.versionBefore(b.next), b.live.after)
	return p
}

func (b *backlog) arm(func()) bool { return false }

func (b *backlog) read(dst batch) (batch, stage, error) {
	var buf [128]*record
	var last listwatch.Version // of the last record visited
	feed, end := b.live.feed, b.end
	if b.live.pass != nil {
		end = b.conflate()
	}
	s, after := &feed.selection, b.live.after
	for !dst.isFull() && b.next < end {
		feed.log.mu.Lock()
		count, ok := feed.log.records.copyRange(b.next, end, buf[:])
		floor := feed.log.records.floor
		feed.log.mu.Unlock()
		if !ok {
			return dst, b, fellBehind(floor)
		}
		for i, r := range buf[:count] {
			startsGroup := r.Version != last
			if dst.isFull() || startsGroup && dst.visits <= 0 ||
				dst.n > 0 && startsGroup && !groupFits(buf[i:count], dst.room()) {
				return dst, b, nil
			}
			if t := s.effect(r); t != 0 && r.Version > after && !b.conflated.skips(b.next) {
				ref := frames.Ref{Frames: r.framesOf(t)}
				if !s.Projection.Empty() {
					ref = frames.Ref{}
				}
				dst.put(r.event(t, feed.shown(r, t)), ref)
			}
			dst.visits -= s.visitsPerRecord()
			last = r.Version
			b.next++
		}
	}
	if b.next >= b.end {
		// The node of the last stage was the newest one of the feed when the backlog was
		// determined, so the feed continues exactly where the backlog ends.
		return dst, b.live, nil
	}
	return dst, b, nil
}

// visitsPerRecord returns the visits that a record counts as.
func (s *selection) visitsPerRecord() int {
	if s.Projection.Empty() {
		return 1
	}
	return comparisonVisits
}

// groupFits reports whether the group at the start of records has at most room records. The records
// of a group have the same version.
func groupFits(records []*record, room int) bool {
	return len(records) <= room || records[room].Version != records[0].Version
}

// versionBefore returns the version up to which a cursor has seen everything once it has read all
// records before the given number. It returns 0 if no record with that number is retained.
func (l *Log) versionBefore(number uint64) listwatch.Version {
	l.mu.Lock()
	defer l.mu.Unlock()
	if number < l.records.first() || number >= l.records.next {
		return 0
	}
	return l.records.get(number).Version - 1
}
