package relay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store/memory"
)

// slow is an upstream whose watches bring one event at a time, each after a while.
type slow struct {
	listwatch.Source
	each time.Duration
}

func (s slow) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := s.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return slowWatcher{w, s.each}, nil
}

func (s slow) Describe() listwatch.Description { return listwatch.Describe(s.Source) }

type slowWatcher struct {
	listwatch.Watcher
	each time.Duration
}

func (w slowWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	select {
	case <-time.After(w.each):
		return w.Watcher.Next(ctx, dst[:1])
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func TestAPastThatIsReadSlowlyIsNotShownAsTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		for i := range 100 {
			o.put("a", fmt.Sprint("red", i))
		}
		newest := o.put("a", "blue")
		r := open(t, slow{o, time.Second}, relay.Options{})
		for {
			page, err := r.List(t.Context(), listwatch.Query{Start: listwatch.Any})
			if errors.Is(err, listwatch.Unavailable) {
				continue // it says so, and when to come again
			}
			if err != nil || page.Version < newest.Version {
				t.Errorf("the first list is of %d (%v), and the upstream was at %d", page.Version, err, newest.Version)
			}
			break
		}
		if s := r.Health(); s.Floor != o.start {
			t.Errorf("the past begins at %d, want %d", s.Floor, o.start)
		}
	})
}

func TestWhileThePastOfAnotherEpochIsReadNoReadOfTheNewestStateIsOfTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reborn := openOrigin(t)
		time.Sleep(time.Hour) // the versions of one who starts later are greater
		was := openOrigin(t)
		was.put("a", "red")
		for i := range 8 {
			reborn.put("b", fmt.Sprint("blue", i))
		}
		l := wireTo(was)
		r := ready(t, open(t, slow{l, 300 * time.Millisecond}, relay.Options{}))
		l.lead(reborn)
		l.fail(&listwatch.Error{Code: listwatch.Expired})
		for began := time.Now(); time.Since(began) < away; time.Sleep(100 * time.Millisecond) {
			page, err := r.List(t.Context(), listwatch.Query{})
			if err == nil && (len(page.Items) != 1 || page.Items[0].Key.Name != "b") {
				t.Fatalf("after %v the newest state is %v at %d, want that of the new origin", time.Since(began), page.Items[0].Key, page.Version)
			}
		}
		if page := list(t, r, listwatch.Query{}); page.Items[0].Key.Name != "b" {
			t.Errorf("the state is %v, want that of the new origin", page.Items)
		}
	})
}

func TestHowFarBehindIsKnownFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		l := wireTo(o)
		r := open(t, l, relay.Options{Trace: &relay.Trace{Replaced: func(listwatch.Version, int) { l.cut(errDown) }}})
		ready(t, r)
		time.Sleep(away)
		if s := r.Health(); s.Lag < away || s.Lag > away+5*time.Second {
			t.Errorf("the upstream was gone as soon as there was a state, %v ago: Behind is %v", away, s.Lag)
		}
	})
}

func TestAContinueTokenOfARelayThatIsAheadIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		r := ready(t, open(t, slow{o, time.Second}, relay.Options{BackfillVersions: -1}))
		time.Sleep(away)
		o.put("b", "red")
		page := list(t, o, listwatch.Query{Limit: 1})
		rest, err := r.List(t.Context(), listwatch.Query{Continue: page.Continue})
		if err != nil || rest.Version != page.Version || len(rest.Items) != 1 {
			t.Errorf("the page after that of the origin: %d objects at %d, %v; want 1 at %d", len(rest.Items), rest.Version, err, page.Version)
		}
	})
}

func TestWhatAnUpstreamWithAnOlderStateAcknowledgesIsNotMissingFromTheNewestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := wireTo(backup(t, 100))
		r := ready(t, open(t, l, relay.Options{}))
		older := memory.Open(memory.Options{StartVersion: 50})
		o := &origin{t, collection(t, older, "Thing"), older, 50}
		l.lead(nameless{plain{o}})
		l.fail(errDown)
		o.put("a", "red")
		for began := time.Now(); time.Since(began) < 2*away; time.Sleep(time.Second) {
			if page, err := r.List(t.Context(), listwatch.Query{}); err == nil && len(page.Items) != 1 {
				t.Fatalf("after %v the newest state is of %d and lacks what was acknowledged", time.Since(began), page.Version)
			}
		}
		if page := list(t, r, listwatch.Query{}); page.Version != 51 {
			t.Errorf("the state is of %d, want 51", page.Version)
		}
	})
}
