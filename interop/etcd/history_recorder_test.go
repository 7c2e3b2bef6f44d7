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

// A writeHistory records all writes to the keys below a directory of etcd. It reads them with a
// watch that no fault affects. It also records which writes were acknowledged to a writer.
type writeHistory struct {
	t     testing.TB
	dir   string
	seen  atomic.Int64 // the newest recorded revision
	done  chan struct{}
	stop  context.CancelFunc
	state map[string][]byte // the stored values by key; owned by the recording goroutine

	mu sync.Mutex
	// Guarded by mu.
	writes []checker.Write
	began  map[listwatch.Version]time.Duration // the start of each acknowledged write
	acked  map[listwatch.Version]time.Duration // the time of each acknowledgement
}

// recordWrites records the writes below dir after the given revision, until addTo is called.
func recordWrites(t testing.TB, client *clientv3.Client, dir string, after int64) *writeHistory {
	ctx, cancel := context.WithCancel(context.Background())
	r := &writeHistory{
		t: t, dir: dir, done: make(chan struct{}), stop: cancel, state: make(map[string][]byte),
		acked: make(map[listwatch.Version]time.Duration), began: make(map[listwatch.Version]time.Duration),
	}
	go func() {
		defer close(r.done)
		for got := range client.Watch(ctx, dir, clientv3.WithPrefix(), clientv3.WithRev(after+1)) {
			if err := got.Err(); err != nil && ctx.Err() == nil {
				t.Errorf("the recording watch of etcd failed: %v", err)
				return
			}
			for _, e := range got.Events {
				r.record((*mvccpb.Event)(e))
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

// uidMember matches the member after which the store inserts the resourceVersion.
var uidMember = regexp.MustCompile(`"uid":"[^"]*"`)

// objectStateOf converts a value stored in etcd to the state that watchers see in an event of
// version v.
func objectStateOf(value []byte, v int64) *checker.ObjectState {
	at := uidMember.FindIndex(value)[1]
	data := string(value[:at]) + `,"resourceVersion":"` + strconv.FormatInt(v, 10) + `"` + string(value[at:])
	var o struct {
		Metadata struct{ Labels map[string]string }
		Spec     struct{ N json.Number }
	}
	if err := json.Unmarshal(value, &o); err != nil {
		panic(err)
	}
	return &checker.ObjectState{
		Labels: o.Metadata.Labels, Fields: map[string]string{"spec.n": o.Spec.N.String()},
		Fingerprint: checker.FingerprintOf([]byte(data)),
	}
}

func (r *writeHistory) record(e *mvccpb.Event) {
	namespace, name, _ := strings.Cut(strings.TrimPrefix(string(e.Kv.Key), r.dir), "/")
	v := e.Kv.ModRevision
	w := checker.Write{Version: listwatch.Version(v), Key: checker.Key{Namespace: namespace, Name: name}}
	if old := r.state[string(e.Kv.Key)]; old != nil {
		w.Before = objectStateOf(old, v)
	}
	delete(r.state, string(e.Kv.Key))
	if e.Type == mvccpb.Event_PUT {
		w.After = objectStateOf(e.Kv.Value, v)
		r.state[string(e.Kv.Key)] = bytes.Clone(e.Kv.Value)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes = append(r.writes, w)
}

func (r *writeHistory) acknowledge(v listwatch.Version, began, acked time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began[v], r.acked[v] = began, acked
}

// addTo waits until all writes up to the given revision are recorded, adds the writes to the
// history of rec, and returns it.
func (r *writeHistory) addTo(rec *checker.Recorder, revision listwatch.Version) *checker.History {
	r.t.Helper()
	eventually(r.t, "recorded writes", func() bool { return r.seen.Load() >= int64(revision) })
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

// A backgroundWriter writes its own objects at intervals and only counts failures.
type backgroundWriter struct {
	recorder     *checker.Recorder
	history      *writeHistory
	to           *store.Collection
	name         string
	failed       atomic.Int64
	acknowledged atomic.Int64
	last         atomic.Uint64         // the newest acknowledged version
	failure      atomic.Pointer[error] // the error of the last write that failed
}

// lastError returns the error of the last write that failed, or nil.
func (b *backgroundWriter) lastError() error {
	if err := b.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// run writes until ctx ends, at most once per interval. It does not cancel the write in progress,
// because etcd could apply that write after the test has read the last version.
func (b *backgroundWriter) run(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	exists := make(map[int]bool)
	for n := 0; ctx.Err() == nil; n++ {
		i := n * 7 % 20
		name := b.name + "-" + strconv.Itoa(i)
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		began := b.recorder.Elapsed()
		var o *listwatch.Object
		var err error
		switch {
		case !exists[i]:
			o, err = b.to.Create(limited, thing(name, n))
		case n%5 == 4:
			o, err = b.to.Delete(limited, key(name), listwatch.Preconditions{})
		default:
			o, err = b.to.Replace(limited, key(name), thing(name, n))
		}
		cancel()
		switch listwatch.CodeOf(err) {
		case listwatch.AlreadyExists:
			exists[i] = true
		case listwatch.NotFound:
			exists[i] = false
		}
		if err == nil {
			b.history.acknowledge(o.Version, began, b.recorder.Elapsed())
			exists[i] = !exists[i] || n%5 != 4
			b.acknowledged.Add(1)
			b.last.Store(max(b.last.Load(), uint64(o.Version)))
		} else {
			b.failed.Add(1)
			b.failure.Store(&err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}
