// Package expirytest compares stores with a model of objects that have a TTL, over random
// histories in fake time.
package expirytest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// Spec declares the collection. The member ttl of an object is its TTL in seconds.
var Spec = store.CollectionSpec{Kind: "Agent", TTL: func(data []byte) time.Duration {
	a, _ := listwatch.Decode[agent](&listwatch.Object{Data: data}) // written by this package
	return time.Duration(a.TTL) * time.Second
}}

type agent struct {
	listwatch.Metadata `json:"metadata"`
	TTL                int `json:"ttl"`
	N                  int `json:"n"`
}

// A DB is the store under test.
type DB struct {
	// Agents returns the collection that Spec declares.
	Agents func() *store.Collection
	// Restart stops the store in an orderly way, calls down, and starts it again. Kill does the
	// same without an orderly stop. If they are nil, the store keeps nothing when it is stopped.
	Restart, Kill func(down func())
	// Fill makes all commits fail, or succeed again. It may be nil.
	Fill func(isFull bool)
}

// An Opener opens a new store. now is the clock that the store must use for TTLs. It jumps when a
// history simulates a pause of the process.
type Opener func(t *testing.T, now func() time.Time) *DB

// Run applies random histories, each to a new store. It fails the test if a store differs from the
// model.
func Run(t *testing.T, histories, steps int, open Opener) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var all counts
	for i := range histories {
		c, err := Try(t, seed, uint64(i), steps, open)
		if err != nil {
			t.Fatalf("history %d: %v", i, err)
		}
		all.add(c)
	}
	t.Logf("%+v", all)
	if all.ended < histories || all.renewed < histories {
		t.Errorf("the histories covered too little: %+v", all)
	}
}

// Try applies one history. It returns an error if the store differs from the model.
func Try(t *testing.T, seed, history uint64, steps int, open Opener) (c counts, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &walk{
			Rand: rand.New(rand.NewPCG(seed, history)), ctx: t.Context(), start: time.Now(),
			objects: make(map[string]*object), own: make(map[listwatch.Version]listwatch.EventType),
		}
		defer func() {
			c = w.counts
			switch r := recover().(type) {
			case nil:
			case difference:
				err = errors.New(strings.Join(append(w.log, string(r)), "\n"))
			default:
				panic(r)
			}
		}()
		w.db = open(t, func() time.Time { return time.Now().Add(time.Duration(w.paused.Load())) })
		w.resume()
		w.run(steps)
	})
	return c, err
}

// A difference is the value with which walk.fail panics.
type difference string

type counts struct{ ended, renewed, late, restarts int }

func (c *counts) add(d counts) {
	c.ended, c.renewed, c.late, c.restarts = c.ended+d.ended, c.renewed+d.renewed, c.late+d.late, c.restarts+d.restarts
}

// A walk applies one history.
type walk struct {
	*rand.Rand
	ctx   context.Context // of the test
	db    *DB
	start time.Time
	down  time.Duration // the time for which the store was stopped

	paused  atomic.Int64  // the length of all pauses, in nanoseconds
	counted time.Duration // the part of it that a store may count

	full    bool
	objects map[string]*object
	watcher listwatch.Poller
	version listwatch.Version // the newest version that the watcher has seen
	// own holds the events of writes that the watcher has not seen yet.
	own map[listwatch.Version]listwatch.EventType
	log []string
	counts
}

// An object is what the model knows of an object.
type object struct {
	agent
	finalizers string
	// promised is the start of the last write or renewal, and counted the value of walk.counted
	// then. The object must not end before its TTL has passed since.
	promised, counted time.Duration
	latest            time.Duration // the object must have ended by then
}

// slack is the time after which the end of an object must be noticed. It has a second for the tick,
// one for time that is saved in whole seconds, and one for ticks that are late after a pause.
const slack = 3 * time.Second

// maxCounted is the part of a pause that a store may count.
const maxCounted = 2 * time.Second

// running returns the time for which the store has been running without pauses.
func (w *walk) running() time.Duration { return time.Since(w.start) - w.down }

// fail ends the history.
func (w *walk) fail(format string, args ...any) { panic(difference(fmt.Sprintf(format, args...))) }

func (w *walk) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%v: ", w.running())+fmt.Sprintf(format, args...))
}

func (w *walk) run(steps int) {
	for range steps {
		w.step()
		w.check()
	}
	if w.full {
		w.fill()
	}
	time.Sleep(200 * time.Second)
	w.check()
	for name, o := range w.objects {
		if o.TTL > 0 && o.finalizers == "" {
			w.fail("%s is left at the end", name)
		}
	}
}

func (w *walk) step() {
	name := string(rune('a' + w.IntN(4)))
	switch n := w.IntN(100); {
	case n < 40:
		w.write(name)
	case n < 70:
		d := time.Duration(w.IntN(3000)+1) * time.Millisecond
		w.note("sleep %v", d)
		time.Sleep(d)
	case n < 80:
		w.pause()
	case n < 82 && w.db.Fill != nil:
		w.fill()
	case n < 86 && w.db.Restart != nil && !w.full:
		w.restart(w.IntN(2) == 0)
	default:
		w.renew(name)
	}
}

// pause jumps ahead: the process does not run, and all its timers are late.
func (w *walk) pause() {
	d := time.Duration(w.IntN(30_000)) * time.Millisecond
	if w.IntN(2) == 0 {
		d /= 15 // often short enough to count
	}
	w.note("pause %v", d)
	w.paused.Add(int64(d))
	w.counted += min(d, maxCounted)
}

func (w *walk) fill() {
	w.full = !w.full
	w.note("full: %t", w.full)
	w.db.Fill(w.full)
	for _, o := range w.objects {
		o.latest = max(o.latest, w.running()+slack)
	}
}

func (w *walk) restart(orderly bool) {
	d := time.Duration(w.IntN(20)) * time.Second
	w.note("restart after %v, orderly: %t", d, orderly)
	restart := w.db.Kill
	if orderly {
		restart = w.db.Restart
	}
	before := time.Now()
	restart(func() { time.Sleep(d) })
	w.down += time.Since(before)
	w.restarts++
	for _, o := range w.objects {
		if o.latest += slack; !orderly {
			o.latest = w.running() + o.ttl() + slack
		}
	}
	w.resume()
}

// resume watches from the newest version that w has seen.
func (w *walk) resume() {
	q := listwatch.Query{Start: listwatch.StartAt, Version: w.version}
	if w.version == 0 {
		q = listwatch.Query{InitialEvents: listwatch.InitialEventsNo}
	}
	watcher, err := w.db.Agents().Watch(w.ctx, q)
	if err != nil {
		w.fail("watch from %d: %v", w.version, err)
	}
	w.watcher = watcher.(listwatch.Poller)
}

func (o *object) ttl() time.Duration { return time.Duration(o.TTL) * time.Second }

// promise records that the write or the renewal that was called at a time has succeeded.
func (w *walk) promise(o *object, called time.Duration) {
	o.promised, o.counted = called, w.counted
	o.latest = w.running() + o.ttl() + slack
}

// write creates, changes or deletes an object.
func (w *walk) write(name string) {
	o, c, called := w.objects[name], w.db.Agents(), w.running()
	next := object{agent: agent{TTL: []int{0, 1, 2, 3, 5, 20, 60}[w.IntN(7)], N: w.IntN(1_000_000)}}
	if w.IntN(6) == 0 {
		next.finalizers = `"finalizers":["example.com/f"],`
	}
	key := listwatch.Key{Name: name}
	data := fmt.Appendf(nil, `{"metadata":{%s"name":%q},"ttl":%d,"n":%d}`, next.finalizers, name, next.TTL, next.N)
	event := listwatch.Modified
	var got *listwatch.Object
	var err error
	switch {
	case o == nil:
		event = listwatch.Added
		got, err = c.Create(w.ctx, data)
	case o.finalizers == "" && w.IntN(5) == 0:
		event = listwatch.Deleted
		got, err = c.Delete(w.ctx, key, listwatch.Preconditions{})
	default:
		got, err = c.Replace(w.ctx, key, data)
	}
	w.note("%v %s %s: %v", event, name, data, err)
	if w.failed(name, err) {
		return
	}
	w.own[got.Version] = event
	delete(w.objects, name)
	if event != listwatch.Deleted {
		w.objects[name] = &next
		next.UID = testUID(got)
		w.promise(&next, called)
	}
}

func testUID(o *listwatch.Object) string {
	a, _ := listwatch.Decode[agent](o) // written by this package
	return a.UID
}

// renew renews an object in one of the ways that have this effect, or that must not have it.
func (w *walk) renew(name string) {
	o, c, called := w.objects[name], w.db.Agents(), w.running()
	if o == nil {
		return
	}
	key, p := listwatch.Key{Name: name}, listwatch.Preconditions{UID: o.UID}
	var err error
	kind := w.IntN(5)
	switch kind {
	case 0:
		_, err = c.Renew(w.ctx, key, p)
	case 1:
		patch := listwatch.Patch{Type: listwatch.MergePatch, Data: fmt.Appendf(nil, `{"ttl":%d}`, o.TTL)}
		_, err = c.Patch(w.ctx, key, patch)
	case 2:
		patch := listwatch.Patch{Type: listwatch.MergePatch, Data: fmt.Appendf(nil, `{"metadata":{"uid":%q}}`, o.UID)}
		_, err = c.Patch(w.ctx, key, patch)
	case 3:
		_, err = c.DryRun().Renew(w.ctx, key, p)
	case 4:
		_, err = c.Renew(w.ctx, key, listwatch.Preconditions{UID: "another"})
		if errors.Is(err, listwatch.Conflict) {
			err = nil
		} else if !errors.Is(err, listwatch.NotFound) {
			w.fail("a renewal with another uid: %v, want Conflict", err)
		}
	}
	w.note("renew %s, kind %d: %v", name, kind, err)
	if !w.failed(name, err) && kind < 3 {
		w.renewed++
		w.promise(o, called)
	}
}

// failed reports whether err is the error of a request for an object that has just ended, or of a
// write to a full disk. No other error is allowed.
func (w *walk) failed(name string, err error) bool {
	switch {
	case err == nil:
		return false
	case errors.Is(err, listwatch.NotFound):
		w.late++
		w.check()
		if w.objects[name] != nil {
			w.fail("%s is not found, but was not deleted", name)
		}
	case w.full && errors.Is(err, listwatch.Unavailable):
	default:
		w.fail("%v", err)
	}
	return true
}

// check reads the events and compares them with the model.
func (w *walk) check() {
	synctest.Wait()
	events := make([]listwatch.Event, 16)
	for {
		n, err := w.watcher.Poll(events)
		if err != nil {
			w.fail("watch: %v", err)
		}
		for _, e := range events[:n] {
			w.version = e.Version
			if want, isOwn := w.own[e.Version]; !isOwn {
				w.end(e)
			} else if delete(w.own, e.Version); e.Type != want {
				w.fail("got event %v, want %v", e.Type, want)
			}
		}
		if n == 0 {
			break
		}
	}
	if len(w.own) > 0 {
		w.fail("no event for the writes %v", w.own)
	}
	for name, o := range w.objects {
		if o.TTL > 0 && o.finalizers == "" && !w.full && w.running() > o.latest {
			w.fail("%s with a TTL of %d s still exists, %v after its end", name, o.TTL, w.running()-o.latest)
		}
	}
	if s := w.db.Agents().Stats(); s.Objects != len(w.objects) {
		w.fail("there are %d objects, want %d", s.Objects, len(w.objects))
	}
}

// end checks the event of an object that the store has deleted.
func (w *walk) end(e listwatch.Event) {
	name := e.Object.Key.Name
	o := w.objects[name]
	if e.Type != listwatch.Deleted || o == nil {
		w.fail("got an event without a write: %v %s", e.Type, name)
	}
	lived := w.running() - o.promised + w.counted - o.counted
	if o.TTL == 0 || o.finalizers != "" || w.full || lived < o.ttl() {
		w.fail("%s ended %v after its last renewal, with TTL %d s, finalizers %q, full: %t", name, lived, o.TTL,
			o.finalizers, w.full)
	}
	w.note("%s has ended", name)
	delete(w.objects, name)
	w.ended++
}
