package benchcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/typed"
)

// The annotations of the written objects.
const (
	sequenceAnnotation = "bench.listwatch.dev/sequence"
	paddingAnnotation  = "bench.listwatch.dev/padding"
)

// object is the part of a written object that an update changes.
type object struct {
	Metadata listwatch.Metadata `json:"metadata"`
}

// maxWriters is the largest number of concurrent writes.
const maxWriters = 16

// A writer creates, updates and deletes the objects of a run.
type writer struct {
	remote   *client.Remote
	target   target
	template map[string]json.RawMessage
	padding  string
	id       string // makes the names and sequence numbers of a run unique
	timeout  time.Duration
	recorder *recorder
	log      writeLog

	keys    []listwatch.Key // the keys of the objects that may exist
	created bool            // the first object was created
}

// A writeLog has the time and result of each write, by its sequence number. It is safe for
// concurrent use.
type writeLog struct {
	mu sync.Mutex
	// Guarded by mu.
	sent         []time.Time
	acknowledged []bool
	count        int // the number of acknowledged writes
	failed       int
	lastError    error
	lastSuccess  time.Time
}

// next reserves a sequence number.
func (l *writeLog) next() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent, l.acknowledged = append(l.sent, time.Now()), append(l.acknowledged, false)
	return len(l.sent) - 1
}

// send records the current time as the time at which write n is sent.
func (l *writeLog) send(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent[n] = time.Now()
}

func (l *writeLog) done(n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failed++
		l.lastError = err
		return
	}
	l.acknowledged[n], l.lastSuccess = true, time.Now()
	l.count++
}

// snapshot returns which writes were acknowledged, and the number of acknowledged writes.
func (l *writeLog) snapshot() (acknowledged []bool, count int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.acknowledged), l.count
}

// sentAt returns the time of write n, and false if there is no such write.
func (l *writeLog) sentAt(n int) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n >= len(l.sent) {
		return time.Time{}, false
	}
	return l.sent[n], true
}

func (w *writer) key(i int) listwatch.Key {
	return listwatch.Key{Namespace: w.target.namespace, Name: fmt.Sprintf("bench-%s-%d", w.id, i)}
}

// create creates n objects. It first creates and deletes one of them. If the server permits no
// deletes, create fails early, and leaves only this object behind.
func (w *writer) create(ctx context.Context, n int) error {
	if err := w.createOne(ctx, 0); err != nil {
		return err
	}
	w.created = true
	if _, err := w.remote.Delete(ctx, w.key(0), listwatch.Preconditions{}); err != nil {
		return fmt.Errorf("%s was created but cannot be deleted, so nothing else was written: %w", w.key(0), err)
	}
	return each(n, func(i int) error { return w.createOne(ctx, i) })
}

// each calls f for the numbers from 0 to n-1, several at a time, and joins the errors of the calls.
func each(n int, f func(i int) error) error {
	var group sync.WaitGroup
	errs := make([]error, min(n, maxWriters))
	for g := range errs {
		group.Go(func() {
			for i := g; i < n && errs[g] == nil; i += len(errs) {
				errs[g] = f(i)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func (w *writer) createOne(ctx context.Context, i int) error {
	members := maps.Clone(w.template)
	if members == nil {
		members = map[string]json.RawMessage{}
	}
	if d := w.remote.Describe(); d.Kind != "" {
		members["apiVersion"], members["kind"] = quote(d.APIVersion), quote(d.Kind)
	}
	key := w.key(i)
	meta := listwatch.Metadata{
		Name: key.Name, Namespace: key.Namespace, Annotations: map[string]string{paddingAnnotation: w.padding},
	}
	var err error
	if members["metadata"], err = json.Marshal(meta); err != nil {
		return err
	}
	data, err := json.Marshal(members)
	if err != nil {
		return err
	}
	w.log.mu.Lock()
	w.keys = append(w.keys, key)
	w.log.mu.Unlock()
	_, err = w.remote.Create(ctx, data)
	return err
}

func quote(s string) json.RawMessage {
	data, _ := json.Marshal(s) // a string can always be encoded
	return data
}

// write updates n objects repeatedly, at the given rate, until ctx ends. Each object is written by
// only one goroutine, so that writes do not conflict. The first object is written even if ctx has
// ended, because a measurement without any write has no results. write returns an error if no write
// succeeds within the timeout.
func (w *writer) write(ctx context.Context, n int, perSecond float64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	limit := rate.Inf
	if perSecond > 0 {
		limit = rate.Limit(perSecond)
	}
	limiter := rate.NewLimiter(limit, 1)
	limiter.Allow() // the token of the first write
	w.log.lastSuccess = time.Now()
	if err := w.update(ctx, w.key(0)); err != nil {
		return err
	}
	var group sync.WaitGroup
	writers := min(n, maxWriters)
	failures := make(chan error, writers)
	for g := range writers {
		group.Go(func() {
			for i := g; limiter.Wait(ctx) == nil; i += writers {
				if i >= n {
					i = g
				}
				if err := w.update(ctx, w.key(i)); err != nil {
					failures <- err
					cancel() // ends the other goroutines
					return
				}
			}
		})
	}
	group.Wait()
	close(failures)
	return <-failures
}

// update writes one object. It finishes a write that has begun even if ctx ends. It returns an
// error if no write has succeeded for the timeout.
func (w *writer) update(ctx context.Context, key listwatch.Key) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.timeout)
	defer cancel()
	n := w.log.next()
	var begin time.Time
	_, err := typed.Collection[object]{Store: w.remote}.Update(ctx, key, func(o *object) error {
		o.Metadata.Annotations[sequenceAnnotation] = w.id + "-" + strconv.Itoa(n)
		w.log.send(n)
		begin = time.Now()
		return nil
	})
	w.log.done(n, err)
	if err == nil {
		w.recorder.update(func() { w.recorder.write.record(time.Since(begin)) })
		return nil
	}
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	if idle := time.Since(w.log.lastSuccess); idle >= w.timeout {
		return fmt.Errorf("no write has succeeded for %v: %w", idle.Round(time.Second), err)
	}
	// Wait for 100 ms, because a server that fails quickly must not be flooded.
	time.AfterFunc(100*time.Millisecond, cancel)
	<-ctx.Done()
	return nil
}

// sequence returns the sequence number of the write that resulted in o, and false if another
// program has written o.
func (w *writer) sequence(o *listwatch.Object) (int, bool) {
	marker := []byte(`"` + sequenceAnnotation + `":"` + w.id + "-")
	_, rest, ok := bytes.Cut(o.Data, marker)
	if !ok {
		return 0, false
	}
	digits, _, _ := bytes.Cut(rest, []byte(`"`))
	n, err := strconv.Atoi(string(digits))
	return n, err == nil && n >= 0
}

// delete deletes all objects that were created. It continues even if ctx ends.
func (w *writer) delete(ctx context.Context) error {
	if len(w.keys) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(w.timeout, 10*time.Second))
	defer cancel()
	err := each(len(w.keys), func(i int) error {
		_, err := w.remote.Delete(ctx, w.keys[i], listwatch.Preconditions{})
		if errors.Is(err, listwatch.NotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("objects named bench-%s-* may be left in %s: %w", w.id, w.target.url, err)
	}
	return nil
}

// padding returns text that makes an object about size bytes long.
func padding(size int) string {
	const rest = 250 // the length of the other members
	return strings.Repeat("x", max(0, size-rest))
}
