package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/checker"
	"github.com/listwatch/listwatch/store"
)

// A truth is what was written, read from etcd itself by a watch that no fault is between. What writers were told is held against it.
type truth struct {
	t     testing.TB
	dir   string
	seen  atomic.Int64 // the newest revision that was read
	done  chan struct{}
	stop  context.CancelFunc
	state map[string][]byte // owned by the goroutine; by key

	mu     sync.Mutex
	writes []checker.Write                     // guarded by mu
	acked  map[listwatch.Version]time.Duration // guarded by mu; when a write was acknowledged
	began  map[listwatch.Version]time.Duration // guarded by mu
}

// witnessed reads what is written below dir after a revision, until it is stopped.
func newTruth(t testing.TB, client *clientv3.Client, dir string, after int64) *truth {
	ctx, cancel := context.WithCancel(context.Background())
	r := &truth{
		t: t, dir: dir, done: make(chan struct{}), stop: cancel, state: make(map[string][]byte),
		acked: make(map[listwatch.Version]time.Duration), began: make(map[listwatch.Version]time.Duration),
	}
	go func() {
		defer close(r.done)
		for got := range client.Watch(ctx, dir, clientv3.WithPrefix(), clientv3.WithRev(after+1)) {
			if err := got.Err(); err != nil && ctx.Err() == nil {
				t.Errorf("the truth was lost: %v", err)
				return
			}
			for _, e := range got.Events {
				r.take((*mvccpb.Event)(e))
			}
			r.seen.Store(got.Header.Revision)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-r.done
	})
	return r
}

// wholeUID is the member behind which the version is; the test has to know by itself.
var wholeUID = regexp.MustCompile(`"uid":"[^"]*"`)

func side(value []byte, v int64) *checker.ObjectState {
	at := wholeUID.FindIndex(value)[1]
	data := string(value[:at]) + `,"resourceVersion":"` + strconv.FormatInt(v, 10) + `"` + string(value[at:])
	var o struct {
		Metadata struct{ Labels map[string]string }
		Spec     struct{ N json.Number }
	}
	if err := json.Unmarshal(value, &o); err != nil {
		panic(err)
	}
	return &checker.ObjectState{
		Labels: o.Metadata.Labels, Fields: map[string]string{"spec.n": o.Spec.N.String()}, Fingerprint: checker.FingerprintOf([]byte(data)),
	}
}

func (r *truth) take(e *mvccpb.Event) {
	namespace, name, _ := strings.Cut(strings.TrimPrefix(string(e.Kv.Key), r.dir), "/")
	v := e.Kv.ModRevision
	w := checker.Write{Version: listwatch.Version(v), Key: checker.Key{Namespace: namespace, Name: name}}
	if old := r.state[string(e.Kv.Key)]; old != nil {
		w.Before = side(old, v)
	}
	delete(r.state, string(e.Kv.Key))
	if e.Type == mvccpb.Event_PUT {
		w.After = side(e.Kv.Value, v)
		r.state[string(e.Kv.Key)] = bytes.Clone(e.Kv.Value)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes = append(r.writes, w)
}

// told notes that a write was acknowledged.
func (r *truth) told(v listwatch.Version, began, acked time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began[v], r.acked[v] = began, acked
}

// complete waits until everything up to a revision was read, and returns the history that rec has, with the writes.
func (r *truth) complete(rec *checker.Recorder, revision listwatch.Version) *checker.History {
	r.t.Helper()
	eventually(r.t, "the truth is known", func() bool { return r.seen.Load() >= int64(revision) })
	r.stop()
	<-r.done
	h := rec.History()
	known := make(map[listwatch.Version]bool)
	for _, w := range r.writes {
		w.Began, w.Acked = r.began[w.Version], r.acked[w.Version]
		known[w.Version] = true
		h.Writes = append(h.Writes, w)
	}
	lost := 0
	for v := range r.acked {
		if !known[v] {
			lost++
		}
	}
	if lost > 0 {
		r.t.Errorf("%d of %d acknowledged writes are not in etcd", lost, len(r.acked))
	}
	r.t.Logf("%d writes, %d of them acknowledged", len(r.writes), len(r.acked))
	return h
}

// A scribbler writes all the time, whatever happens, to objects of its own.
type scribbler struct {
	rec   *checker.Recorder
	truth *truth
	to    *store.Collection
	name  string
	errs  atomic.Int64
	oks   atomic.Int64
	last  atomic.Uint64 // the newest version that was acknowledged
}

// run writes until ctx ends, at most once per pause.
func (s *scribbler) run(ctx context.Context, pause time.Duration) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	there := make(map[int]bool)
	for n := 0; ctx.Err() == nil; n++ {
		i := n * 7 % 20
		name := s.name + "-" + strconv.Itoa(i)
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		began := s.rec.Elapsed()
		var o *listwatch.Object
		var err error
		switch {
		case !there[i]:
			o, err = s.to.Create(limited, thing(name, n))
		case n%5 == 4:
			o, err = s.to.Delete(limited, key(name), store.Preconditions{})
		default:
			o, err = s.to.Replace(limited, key(name), thing(name, n))
		}
		cancel()
		switch listwatch.CodeOf(err) {
		case listwatch.AlreadyExists:
			there[i] = true
		case listwatch.NotFound:
			there[i] = false
		}
		if err == nil {
			s.truth.told(o.Version, began, s.rec.Elapsed())
			there[i] = !there[i] || n%5 != 4
			s.oks.Add(1)
			s.last.Store(max(s.last.Load(), uint64(o.Version)))
		} else {
			s.errs.Add(1)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}
