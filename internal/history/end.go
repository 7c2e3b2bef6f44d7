package history

// End ends the log: every watcher reads what is still there for it and then gets err, [io.EOF] for a clean end; one that waits for a
// version in the future gets it at once. Nothing may be appended after End. The state can still be listed. Of several calls the first
// counts.
//
// The Head is left alone, for it may be that of other logs too.
func (l *Log) CloseWithError(err error) {
	l.mu.Lock()
	if !l.ended.CompareAndSwap(nil, &err) {
		l.mu.Unlock()
		return
	}
	// A cursor that goes to sleep from now on sees ended; the others are among the sleepers.
	for _, f := range l.feeds.bySelection {
		if s := f.takeSleepers(); s != nil {
			l.waker.add(s)
		}
	}
	waits := l.waits
	l.waits = nil
	l.mu.Unlock()
	l.waker.start()
	for w := range waits {
		w.end()
	}
}

// endErr returns what the log has ended with; nil: it goes on.
func (l *Log) endErr() error {
	if err := l.ended.Load(); err != nil {
		return *err
	}
	return nil
}

// await keeps w until forget, to be ended with the log, or ends it where the log has. l.mu is held.
func (l *Log) await(w *futureWait) {
	if l.endErr() != nil {
		w.end()
		return
	}
	if l.waits == nil {
		l.waits = make(map[*futureWait]struct{})
	}
	l.waits[w] = struct{}{}
}

// forget is called with l.mu held.
func (l *Log) forget(w *futureWait) { delete(l.waits, w) }
