package history

import "github.com/listwatch/listwatch"

// Reset replaces the state by objects, in any order, as they are at v, and forgets all history: something happened in between that nobody
// can tell. v must not be less than any version before, nor than that of any object. Cursors that have begun read what they still have
// behind them, and then that they expired.
//
// Unless the Log has a Head of its own, the caller moves the Head on to v when Reset has returned.
func (l *Log) Reset(objects []*listwatch.Object, v listwatch.Version) {
	l.mu.Lock()
	for l.records.len() > 0 {
		l.drop()
	}
	next := newState()
	for _, o := range objects {
		next.tree.Set(o)
	}
	next.base = next.tree.Copy()
	l.state.tree.Scan(func(o *listwatch.Object) bool {
		if kept, _ := next.tree.Get(o); kept != o {
			o.InitialFrames().Drop()
		}
		return true
	})
	l.state = next
	l.last, l.records.floor = v, v
	for _, f := range l.feeds.bySelection {
		if s := f.reset(v); s != nil {
			l.waker.add(s)
		}
	}
	l.mu.Unlock()
	l.waker.start()
	if l.ownsHead {
		l.head.Advance(v)
	}
}

// reset begins f anew at v: what is behind its tail is cut off for those who stand there. It takes the sleepers, if any. Log.mu is held.
func (f *feed) reset(v listwatch.Version) *sleepers {
	old := f.tail
	f.tail = &node{rec: &record{version: v}}
	f.head, f.marks = f.tail, nil
	old.next.Store(cut)
	return f.takeSleepers()
}

// Contains reports whether the window has a write of version v to the object at key.
func (l *Log) ContainsWrite(v listwatch.Version, key listwatch.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	base := l.records.numberOf0()
	for i := int(l.records.after(v-1) - base); i < l.records.len(); i++ {
		r := l.records.at(i)
		if r.version != v {
			return false
		}
		if o := r.new; o != nil && o.Key == key {
			return true
		}
		if o := r.old; o != nil && o.Key == key {
			return true
		}
	}
	return false
}
