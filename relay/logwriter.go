package relay

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
	"github.com/listwatch/listwatch/watchcache"
)

// A logWriter writes the events of the upstream into the log of the newest epoch.
//
// Another program may change several keys in one transaction, so several events can have the same
// version. The log must receive them together, because readers that have reached a version assume
// that they have all its changes. But a Watcher may return the events one by one, and no event is
// marked as the last one of its version. So the logWriter holds the changes of the newest version
// until an event or bookmark of a later version shows that they are complete, or until holdTime
// passes without an event.
//
// A single change is not delayed if the Watcher joins events and no version has had a second change
// so far. If a second change then arrives late, the log is incomplete once, and from then on every
// change is held.
type logWriter struct {
	// Immutable after construction.
	relay *Relay

	mu sync.Mutex
	// Guarded by mu.
	initial    initialEvents       // the initial events so far
	held       []watchcache.Change // the changes of one version that are not in the log yet
	heldUntil  time.Time           // the time at which release writes held to the log
	timer      *time.Timer         // calls release; nil before the first change
	failure    error               // the error of release, which Take returns
	shared     bool                // a version had several changes
	newest     listwatch.Version   // the version of the newest state or event in the log
	incomplete bool                // the log lacks changes of its newest version
	// complete is the newest state in the log that certainly has all changes of its version. Its ID
	// is empty if the upstream has not identified its states.
	complete listwatch.State
	// unconfirmed is true after a start from a copy, until a bookmark has the ID of the copy.
	unconfirmed bool
}

// initialEvents are the state that the upstream sends, or the difference to the state of the log.
type initialEvents struct {
	objects []*listwatch.Object
	gone    []listwatch.Key
	why     string // the reason if it is the whole state
}

// holdTime is the time for which the changes of one version are held after the last one. A server
// sends these changes back to back.
const holdTime = 2 * time.Millisecond

var _ reflector.Sink = (*logWriter)(nil)

func (l *logWriter) Begin(why string) {
	l.relay.monitor.began()
	l.mu.Lock()
	defer l.mu.Unlock()
	// The held changes may be incomplete, and the new state contains them.
	l.drop()
	l.initial, l.failure = initialEvents{why: why}, nil
}

// Take implements [reflector.Sink]. It writes all changes of a version to the log at once.
func (l *logWriter) Take(events []listwatch.Event) (err error) {
	l.relay.monitor.took(len(events))
	l.mu.Lock()
	defer l.mu.Unlock()
	for err = l.failure; err == nil && len(events) > 0; events = events[1:] {
		err = l.take(events[0])
	}
	if err == nil && len(l.held) == 1 && !l.shared && l.relay.upstream.joinsEvents() {
		err = l.flush()
	}
	if err != nil {
		l.drop() // a change of the same version is missing
		l.relay.upstream.skipBackfill()
		return err
	}
	if len(l.held) > 0 {
		l.startTimer()
	}
	return nil
}

// startTimer makes release write the held changes after holdTime. The caller must hold l.mu.
func (l *logWriter) startTimer() {
	l.heldUntil = time.Now().Add(holdTime)
	if l.timer == nil {
		l.timer = time.AfterFunc(holdTime, l.release)
	} else {
		l.timer.Reset(holdTime)
	}
}

// take handles one event. The caller must hold l.mu.
func (l *logWriter) take(e listwatch.Event) error {
	if e.Initial {
		if e.Type == listwatch.Deleted {
			l.initial.gone = append(l.initial.gone, e.Object.Key)
		} else {
			l.initial.objects = append(l.initial.objects, e.Object)
		}
		return nil
	}
	isBookmark := e.Type == listwatch.Synced || e.Type == listwatch.Bookmark
	if isBookmark || len(l.held) > 0 && l.held[0].Version != e.Version {
		if err := l.flush(); err != nil {
			return err
		}
	}
	switch e.Type {
	case listwatch.Synced:
		return l.synced(e)
	case listwatch.Bookmark:
		return l.bookmark(e)
	}
	return l.hold(e)
}

// synced applies the initial events. The bookmark e has ended them.
func (l *logWriter) synced(e listwatch.Event) error {
	r, v := l.relay, e.Version
	d := r.describe(cmp.Or(reflector.EpochOf(e), listwatch.Describe(r.upstream.Source).Epoch))
	to := r.upstream.takeTarget()
	ep := r.epochs.filling()
	since, isDifference := e.Since()
	if isDifference {
		if l.incomplete || ep.name != d.Epoch {
			return corrupt("a difference since version %d does not apply to an incomplete state", since)
		}
		l.initial.patch(ep)
	}
	state := l.initial.objects
	var err error
	switch {
	case ep == nil || ep.name != d.Epoch || v < l.newest || l.incomplete && v < ep.Version():
		err = l.startEpoch(ep, d, v, to)
	case v > ep.Version() || l.incomplete:
		err = ep.Replace(state, v)
		if served, _, _ := r.epochs.get(); err == nil && served == ep {
			if isDifference {
				r.options.Trace.Patched(since, v)
			} else {
				r.options.Trace.Replaced(v, len(state), l.initial.why)
			}
		}
	default:
		// The log has already reached this version through events or bookmarks, so no watch
		// has missed an event and the state is not needed.
	}
	if err != nil {
		return err
	}
	r.upstream.synced(d.Epoch)
	l.incomplete, l.unconfirmed = false, false
	l.newest, l.initial = v, initialEvents{}
	l.complete = listwatch.State{Version: v, ID: e.State().ID}
	return nil
}

// patch converts i, a difference to the current or an earlier state of ep, to a whole state.
func (i *initialEvents) patch(ep *epochCache) {
	changed := make(map[listwatch.Key]bool, len(i.objects)+len(i.gone))
	for _, key := range i.gone {
		changed[key] = true
	}
	for _, o := range i.objects {
		changed[o.Key] = true
	}
	for _, o := range ep.Objects() {
		if !changed[o.Key] {
			i.objects = append(i.objects, o)
		}
	}
}

// startEpoch starts an epoch with the objects in l.initial, at version v. Readers get the new epoch
// when it has reached the target. Until then they use previous, which may be nil.
func (l *logWriter) startEpoch(previous *epochCache, d listwatch.Description, v listwatch.Version, to target) error {
	r := l.relay
	ep := newEpochCache(r, d)
	state, why := l.initial.objects, l.initial.why
	if err := ep.Replace(state, v); err != nil {
		return err
	}
	r.monitor.forget()
	if !to.asked.IsZero() {
		r.monitor.add(reading{to.asked, max(to.version, v), ep})
	}
	// Call fill before upstream.synced: readUpstream first compares the epoch that synced records,
	// and then calls filling, which must return the same epoch.
	r.epochs.fill(ep)
	r.upstream.synced(d.Epoch)
	var reason error
	if previous != nil {
		ep.ambiguous = max(previous.ambiguous, previous.Version())
		if reason = wentBack(previous.Version(), v); previous.name != d.Epoch {
			reason = epochChanged(previous.name, d.Epoch)
			ep.ambiguous = 0
		}
	}
	serve := func() {
		if r.epochs.serve(ep, reason) {
			now := ep.Stats()
			r.options.Trace.Replaced(now.Newest, now.Objects, why)
		}
	}
	if to.version <= v {
		serve()
		return nil
	}
	r.tasks.start(func(ctx context.Context) {
		r.awaitBackfill(ctx, ep, to.version)
		serve()
	})
	return nil
}

// bookmark advances the version of the epoch.
func (l *logWriter) bookmark(e listwatch.Event) error {
	ep := l.relay.epochs.filling()
	if err := ep.check(reflector.EpochOf(e)); err != nil {
		return err
	}
	if id := e.State().ID; id != "" {
		if l.unconfirmed && id != l.complete.ID {
			l.incomplete = true
			return expired("the upstream selects other objects than when the copy was saved")
		}
		l.complete.ID, l.unconfirmed = id, false
	}
	ep.Advance(e.Version)
	l.complete.Version = e.Version
	return nil
}

// hold adds a change to the changes that l holds, which have the same version. The caller must
// hold l.mu.
func (l *logWriter) hold(e listwatch.Event) error {
	ep := l.relay.epochs.filling()
	if e.Version <= ep.Version() {
		// Watchers have already received other changes of this version or of a later version, or a
		// bookmark at such a version, so this event is too late. Apply returns an error, and makes
		// the cache refuse watches from the version that it has reached.
		l.incomplete = true
		l.shared = l.shared || e.Version == l.newest
		// Ignore that error, because the error below is clearer.
		_ = ep.Apply(watchcache.Change{Version: e.Version, Key: e.Object.Key})
		return corrupt("changes of version %d were received after the relay had passed it", e.Version)
	}
	l.complete.Version = max(l.complete.Version, l.newest) // this change is later
	change, err := change(ep, e)
	if err == nil {
		l.held = append(l.held, change)
		l.shared = l.shared || len(l.held) > 1
	}
	return err
}

// flush writes the held changes to the log. The caller must hold l.mu.
func (l *logWriter) flush() error {
	if len(l.held) == 0 {
		return nil
	}
	v := l.held[0].Version
	err := l.relay.epochs.filling().Apply(l.held...)
	l.drop()
	if err == nil {
		l.newest = v
	} else if listwatch.CodeOf(err) == listwatch.Corrupt {
		l.incomplete = true
	}
	return err
}

// drop empties held and keeps its memory. The caller must hold l.mu.
func (l *logWriter) drop() {
	clear(l.held)
	l.held = l.held[:0]
}

// release flushes if holdTime has passed since the last event. After an error, it ends the watch
// with an error that makes the Reflector request the state again.
func (l *logWriter) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait := time.Until(l.heldUntil); wait > 0 {
		l.timer.Reset(wait) // Take has held another change since the timer expired
		return
	}
	if err := l.flush(); err != nil {
		l.failure, l.incomplete = err, true
		l.relay.upstream.skipBackfill()
		l.relay.upstream.fail(expired("a change does not fit the state: %v", err))
	}
}

// change converts e to a change for the cache. If e does not match the state, an earlier event is
// missing, and change returns an error.
func change(ep *epochCache, e listwatch.Event) (watchcache.Change, error) {
	exists := ep.Lookup(e.Object.Key) != nil
	if (e.Type == listwatch.Added) == exists {
		return watchcache.Change{}, corrupt("%s %s at version %d does not match the state: an earlier event is missing",
			e.Type, e.Object.Key, e.Version)
	}
	if e.Type == listwatch.Deleted {
		return watchcache.Change{Version: e.Version, Key: e.Object.Key}, nil
	}
	return watchcache.Change{Version: e.Version, Object: e.Object}, nil
}

// check returns an error if a probe has reported an epoch that is not the epoch of e.
func (e *epochCache) check(is string) error {
	if e.name == "" || is == "" || e.name == is {
		return nil
	}
	return epochChanged(e.name, is)
}
