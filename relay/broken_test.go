package relay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store/memory"
)

// A line is an upstream that can be cut off, changed for another one, and made to say what it should not.
type wire struct {
	mu sync.Mutex
	// Guarded by mu.
	source   listwatch.Source
	err      error // what everything fails with; nil: nothing does
	watchers map[*wireWatcher]struct{}
	watches  int
	lists    int
	bad      listwatch.Version // an event of this version can't be read; zero: there is none
	badErr   error
}

func wireTo(s listwatch.Source) *wire {
	return &wire{source: s, watchers: make(map[*wireWatcher]struct{})}
}

func (l *wire) get() (listwatch.Source, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source, l.err
}

func (l *wire) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	s, err := l.get()
	if err != nil {
		return listwatch.Page{}, err
	}
	l.mu.Lock()
	l.lists++
	l.mu.Unlock()
	select {
	case <-time.After(10 * time.Millisecond):
	case <-ctx.Done():
	}
	return s.List(ctx, q)
}

func (l *wire) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	s, err := l.get()
	if err != nil {
		return nil, err
	}
	w, err := s.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	watcher := &wireWatcher{Watcher: w, wire: l, ctx: ctx, cancel: cancel, more: make(chan listwatch.Event, 8)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watches++
	l.watchers[watcher] = struct{}{}
	if q.Start == listwatch.At && !q.SendsInitialEvents() && q.Version < l.bad {
		watcher.cancel(l.badErr)
	}
	return watcher, nil
}

func (l *wire) Describe() listwatch.Description {
	s, _ := l.get()
	return listwatch.Describe(s)
}

// cut ends what is open with err and makes all else fail with it; nil: it works again.
func (l *wire) cut(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
	for w := range l.watchers {
		if err != nil {
			w.cancel(err)
		}
	}
}

// fail ends what is open with err.
func (l *wire) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.watchers {
		w.cancel(err)
	}
}

// spoil makes the event of version v end every watch that should bring it with err.
func (l *wire) spoil(v listwatch.Version, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bad, l.badErr = v, err
}

func (l *wire) lead(to listwatch.Source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.source = to
}

// inject makes what is open say e.
func (l *wire) inject(events ...listwatch.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.watchers {
		for _, e := range events {
			w.more <- e
		}
	}
}

func (l *wire) counts() (watches, lists int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.watches, l.lists
}

// A wireWatcher is no Poller, as that of a client.Remote is none.
type wireWatcher struct {
	listwatch.Watcher
	wire   *wire
	ctx    context.Context
	cancel context.CancelCauseFunc
	more   chan listwatch.Event
}

func (w *wireWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	injected := make(chan listwatch.Event, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case e := <-w.more:
			injected <- e
			cancel()
		case <-bounded.Done():
		}
	}()
	n, err := w.Watcher.Next(bounded, dst)
	cancel()
	<-done
	select {
	case e := <-injected:
		if n == len(dst) {
			n-- // no test is that busy
		}
		dst[n] = e
		return n + 1, nil
	default:
	}
	if err != nil && ctx.Err() == nil && w.ctx.Err() != nil {
		return n, context.Cause(w.ctx)
	}
	return n, err
}

func (w *wireWatcher) Close() error {
	w.wire.mu.Lock()
	delete(w.wire.watchers, w)
	w.wire.mu.Unlock()
	return w.Watcher.Close()
}

var errDown = &listwatch.Error{Code: listwatch.Unavailable, Message: "the line is down"}

// away is longer than a relay waits between two tries.
const away = time.Minute

func TestARelayGoesOnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		l := wireTo(o)
		r := ready(t, open(t, l, relay.Options{}))
		w := watch(t, r, fromNow)
		o.put("a", "red")
		next(t, w, 1)
		l.cut(errDown)
		o.put("a", "blue")
		o.remove("a")
		time.Sleep(away)
		l.cut(nil)
		time.Sleep(away)
		if events := next(t, w, 2); events[0].Type != listwatch.Modified || events[1].Type != listwatch.Deleted {
			t.Errorf("got %v, want both writes", events)
		}
	})
}

func TestWhatGoesOnWhileTheUpstreamIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		l := wireTo(o)
		r := ready(t, open(t, l, relay.Options{}))
		o.put("a", "red")
		list(t, r, listwatch.Query{})
		if s := r.Health(); !s.Ready || !s.Following || s.Lag < 0 || s.Lag > 10*time.Second || s.Err != nil {
			t.Errorf("while all is well: %+v", s)
		}
		w := watch(t, r, fromNow)
		l.cut(errDown)
		time.Sleep(away)
		if s := r.Health(); !s.Ready || s.Following || s.Lag < away || s.Err == nil || time.Since(s.LastHeard) < away-10*time.Second {
			t.Errorf("while the upstream is gone: %+v", s)
		}
		if page := list(t, r, listwatch.Query{Start: listwatch.Any}); len(page.Items) != 1 {
			t.Errorf("any state has %d objects, want 1", len(page.Items))
		}
		if _, err := r.List(t.Context(), listwatch.Query{}); !errors.Is(err, listwatch.Unavailable) || !strings.Contains(err.Error(), "the line is down") {
			t.Errorf("the newest state: %v, want Unavailable, and why", err)
		}
		if _, err := r.Watch(t.Context(), everything); !errors.Is(err, listwatch.Unavailable) {
			t.Errorf("a watch from the newest state: %v, want Unavailable", err)
		}
		l.cut(nil)
		time.Sleep(away)
		if s := r.Health(); !s.Following || s.Lag > 10*time.Second || s.Err != nil {
			t.Errorf("when it is back: %+v", s)
		}
		o.put("b", "red")
		next(t, w, 1)
	})
}

func TestBeforeThereIsAStateReadsWaitAndAreThenUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		l := wireTo(o)
		l.cut(errDown)
		r := open(t, l, relay.Options{})
		began := time.Now()
		_, err := r.List(t.Context(), listwatch.Query{Start: listwatch.Any})
		if took := time.Since(began); !errors.Is(err, listwatch.Unavailable) || took != 3*time.Second || !strings.Contains(err.Error(), "the line is down") {
			t.Errorf("%v after %v; want Unavailable, and why, after 3 s", err, took)
		}
		if listwatch.AsError(err).RetryAfter() == 0 {
			t.Error("it does not say when to try again")
		}
		if s := r.Health(); s.Ready || s.Lag >= 0 {
			t.Errorf("%+v, want that it is not ready", s)
		}
		got := make(chan error)
		l.cut(nil)
		go func() {
			for {
				w, err := r.Watch(t.Context(), everything)
				if errors.Is(err, listwatch.Unavailable) {
					continue
				}
				w.Close()
				got <- err
				return
			}
		}()
		if err := <-got; err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > away {
			t.Errorf("it took %v", took)
		}
	})
}

// forget makes the origin forget what the relay has not seen: a write while it was cut off.
func (o *origin) forget(l *wire) {
	l.cut(errDown)
	o.put("missed", "red")
	o.remove("missed")
	o.put("a", "blue")
	o.db.Compact()
	<-time.After(away)
	l.cut(nil)
	<-time.After(away)
}

func TestHistoryThatIsLostUpstreamIsLostDownstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		l := wireTo(o)
		r := ready(t, open(t, l, relay.Options{}))
		head := list(t, r, listwatch.Query{}).Version
		atHead, behind := watch(t, r, fromNow), watch(t, r, everything)
		o.forget(l)
		for what, w := range map[string]listwatch.Watcher{"at the head": atHead, "behind": behind} {
			if _, err := end(t, w); !errors.Is(err, listwatch.Expired) {
				t.Errorf("a watcher %s got %v, want Expired", what, err)
			}
		}
		if _, err := r.Watch(t.Context(), listwatch.Query{Start: listwatch.At, Version: head}); !errors.Is(err, listwatch.Expired) {
			t.Errorf("a watch from before: %v, want Expired", err)
		}
		page := list(t, r, listwatch.Query{})
		if len(page.Items) != 1 || page.Items[0].Labels["color"] != "blue" || page.Version != o.db.Version() {
			t.Errorf("the state: %v at %d, want that of the origin at %d", page.Items, page.Version, o.db.Version())
		}
		w := watch(t, r, listwatch.Query{Start: listwatch.At, Version: page.Version})
		o.put("b", "red")
		if e := next(t, w, 1)[0]; e.Type != listwatch.Added {
			t.Errorf("got %s, want ADDED", e.Type)
		}
	})
}

func TestAStateOfTheSameVersionHasMissedNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		l := wireTo(o)
		r := ready(t, open(t, l, relay.Options{BackfillVersions: -1}))
		w := watch(t, r, fromNow)
		l.fail(&listwatch.Error{Code: listwatch.Expired})
		time.Sleep(away)
		o.put("a", "blue")
		if e := next(t, w, 1)[0]; e.Type != listwatch.Modified {
			t.Errorf("got %s, want MODIFIED", e.Type)
		}
	})
}

func TestAStateOfBeforeAProbeHasMissedNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		other := collection(t, o.db, "Other")
		o.put("a", "red")
		l, probe := wireTo(o), wireTo(o)
		r := ready(t, open(t, l, relay.Options{ProbeSource: probe}))
		w := watch(t, r, fromNow)
		if _, err := other.Create(t.Context(), []byte(`{"metadata":{"name":"x","namespace":"default"}}`)); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() {
			probe.inject(listwatch.NewBookmark(listwatch.Description{}, o.db.Version(), false))
		})
		if page := list(t, r, listwatch.Query{}); page.Version != o.db.Version() {
			t.Fatalf("a list is of %d, want %d", page.Version, o.db.Version())
		}
		if watches, _ := probe.counts(); watches != 1 {
			t.Errorf("%d watches to probe, want 1", watches)
		}
		l.fail(&listwatch.Error{Code: listwatch.Expired})
		time.Sleep(away)
		o.put("a", "blue")
		if e := next(t, w, 1)[0]; e.Type != listwatch.Modified {
			t.Errorf("got %s, want MODIFIED", e.Type)
		}
	})
}

func TestAnEpochThatEndsUpstreamEndsDownstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		l := wireTo(o)
		one := ready(t, open(t, l, relay.Options{}))
		two := ready(t, open(t, one, relay.Options{}))
		w := watch(t, two, fromNow)
		time.Sleep(time.Second) // another origin that starts has other versions
		reborn := openOrigin(t)
		reborn.put("b", "blue")
		l.lead(reborn)
		// The watch of the old one goes on, for nothing has broken it: a reader of the newest state finds out.
		if page := list(t, two, listwatch.Query{}); len(page.Items) != 1 || page.Items[0].Key.Name != "b" {
			t.Errorf("the state is %v, want that of the new origin", page.Items)
		}
		if _, err := end(t, w); !errors.Is(err, listwatch.Expired) {
			t.Errorf("a watcher got %v, want Expired", err)
		}
		for _, r := range []*relay.Relay{one, two} {
			if got, want := r.Describe().Epoch, reborn.db.Epoch(); got != want {
				t.Errorf("the epoch is %s, want %s", got, want)
			}
		}
	})
}

func TestAnUpstreamWithAnOlderStateIsBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := wireTo(backup(t, 100))
		r := ready(t, open(t, l, relay.Options{}))
		w := watch(t, r, fromNow)
		l.lead(backup(t, 50))
		l.fail(&listwatch.Error{Code: listwatch.Expired})
		time.Sleep(5 * away)
		if _, err := end(t, w); !errors.Is(err, listwatch.Expired) || !strings.Contains(err.Error(), "older state") {
			t.Errorf("a watcher got %v, want Expired, and why", err)
		}
		if page := list(t, r, listwatch.Query{}); page.Version != 50 {
			t.Errorf("the state is of %d, want 50", page.Version)
		}
	})
}

// nameless is a source without an epoch, as kube-apiserver is.
type nameless struct{ listwatch.Source }

func (nameless) Describe() listwatch.Description { return listwatch.Description{Kind: "Thing"} }

// backup returns a collection at version v.
func backup(t *testing.T, v listwatch.Version) listwatch.Source {
	t.Helper()
	return nameless{plain{collection(t, memory.Open(memory.Options{StartVersion: v}), "Thing")}}
}

// plain hides what its bookmarks say of an epoch.
type plain struct{ listwatch.Source }

func (p plain) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := p.Source.Watch(ctx, q)
	return plainWatcher{w}, err
}

type plainWatcher struct{ listwatch.Watcher }

func (w plainWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	n, err := w.Watcher.Next(ctx, dst)
	for i, e := range dst[:n] {
		if e.Type == listwatch.Synced || e.Type == listwatch.Bookmark {
			dst[i] = listwatch.NewBookmark(listwatch.Description{Kind: "Thing", APIVersion: "v1"}, e.Version, e.Type == listwatch.Synced)
		}
	}
	return n, err
}

func TestAnEventThatDoesNotFitForcesANewState(t *testing.T) {
	for what, event := range map[string]func(o *origin) listwatch.Event{
		"a change of what is not there": func(o *origin) listwatch.Event {
			return listwatch.Event{Type: listwatch.Modified, Version: o.db.Version() + 1, Object: &listwatch.Object{Key: listwatch.Key{Name: "x"}}}
		},
		"an addition of what is there": func(o *origin) listwatch.Event {
			return listwatch.Event{Type: listwatch.Added, Version: o.db.Version() + 1, Object: &listwatch.Object{Key: listwatch.Key{Namespace: "default", Name: "a"}}}
		},
		"a version that comes in pieces": func(o *origin) listwatch.Event {
			return listwatch.Event{Type: listwatch.Added, Version: o.db.Version(), Object: &listwatch.Object{Key: listwatch.Key{Name: "x"}}}
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := openOrigin(t)
				o.put("a", "red")
				l := wireTo(o)
				r := ready(t, open(t, l, relay.Options{BackfillVersions: -1}))
				w := watch(t, r, fromNow)
				o.put("a", "blue")
				next(t, w, 1)
				synctest.Wait()
				head := o.db.Version()
				l.inject(event(o))
				time.Sleep(time.Second)
				o.put("b", "red")
				time.Sleep(away)
				page := list(t, r, listwatch.Query{})
				if len(page.Items) != 2 {
					t.Errorf("the state has %d objects, want 2", len(page.Items))
				}
				if _, err := end(t, w); !errors.Is(err, listwatch.Expired) {
					t.Errorf("a watcher got %v, want Expired", err)
				}
				if _, err := r.Watch(t.Context(), listwatch.Query{Start: listwatch.At, Version: head}); !errors.Is(err, listwatch.Expired) {
					t.Errorf("a watch from the version: %v, want Expired", err)
				}
			})
		})
	}
}

func TestAnEventThatCantBeReadIsNotPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		l := wireTo(o)
		var lost []error
		r := ready(t, open(t, l, relay.Options{Trace: &relay.Trace{UpstreamLost: func(err error, _ time.Duration, _ bool) { lost = append(lost, err) }}}))
		w := watch(t, r, fromNow)
		unreadable := &listwatch.Error{Code: listwatch.Corrupt, Message: "an object that can't be read"}
		l.spoil(o.db.Version()+1, unreadable)
		l.fail(unreadable)
		synctest.Wait()
		o.put("b", "red")
		time.Sleep(away)
		if page := list(t, r, listwatch.Query{}); len(page.Items) != 2 {
			t.Errorf("the state has %d objects, want 2", len(page.Items))
		}
		if n, err := end(t, w); n != 0 && !errors.Is(err, listwatch.Expired) {
			t.Errorf("a watcher got %d events and %v, want Expired", n, err)
		}
		if len(lost) != 1 || !errors.Is(lost[0], listwatch.Corrupt) {
			t.Errorf("the trace was told %v", lost)
		}
	})
}

func TestAPastThatTheUpstreamStillHasHealsAnInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		l := wireTo(o)
		r := ready(t, open(t, l, relay.Options{}))
		w := watch(t, r, fromNow)
		l.fail(&listwatch.Error{Code: listwatch.Corrupt, Message: "an object that could not be read this time"})
		o.put("b", "red")
		if e := next(t, w, 1)[0]; e.Type != listwatch.Added {
			t.Errorf("got %s, want ADDED", e.Type)
		}
	})
}

func TestManyReadersOfTheNewestStateShareAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		l := wireTo(o)
		r := ready(t, open(t, l, relay.Options{CheckInterval: -1}))
		_, before := l.counts()
		var readers sync.WaitGroup
		for range 1000 {
			readers.Go(func() {
				if _, err := r.List(t.Context(), listwatch.Query{}); err != nil {
					t.Error(err)
				}
			})
		}
		readers.Wait()
		if watches, lists := l.counts(); lists-before > 3 || watches != 1 {
			t.Errorf("a thousand readers cost %d lists, and there were %d watches", lists-before, watches)
		}
	})
}

func TestAnUpstreamThatEndsIsFollowedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		l := wireTo(o)
		r := ready(t, open(t, l, relay.Options{}))
		w := watch(t, r, fromNow)
		l.fail(io.EOF)
		o.put("a", "red")
		next(t, w, 1)
	})
}

func TestAPastReachesAsFarAsTheUpstreamCanBeFollowedFrom(t *testing.T) {
	for what, poller := range map[string]bool{"in process": true, "over a line": false} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := openOrigin(t)
				for i := range 100 {
					o.put("a", fmt.Sprint(i))
				}
				if poller {
					if r := ready(t, open(t, o, relay.Options{})); r.Health().Floor != o.start {
						t.Errorf("the past begins at %d, want %d, where that of the origin does", r.Health().Floor, o.start)
					}
					return
				}
				l := wireTo(o)
				// It lists what it can't be watched from, as kube-apiserver does.
				l.spoil(o.start+40, &listwatch.Error{Code: listwatch.Expired})
				var lost int
				r := ready(t, open(t, l, relay.Options{Trace: &relay.Trace{UpstreamLost: func(error, time.Duration, bool) { lost++ }}}))
				if got := r.Health().Floor; got != o.start+40 || lost > 0 {
					t.Errorf("the past begins at %d, after %d failures; want %d, and none", got-o.start, lost, 40)
				}
				if got := ready(t, open(t, l, relay.Options{BackfillVersions: 30})).Health().Floor; got != o.start+70 {
					t.Errorf("the past begins at %d, want %d", got-o.start, 70)
				}
			})
		})
	}
}
