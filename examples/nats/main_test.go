package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/examples/nats/flags"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchcache"
)

// connect starts a NATS server and returns a connection to it.
func connect(t *testing.T) jetstream.JetStream {
	t.Helper()
	s, err := startServer(t.TempDir(), -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	conn, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// newBucket creates a bucket that keeps the given number of values per key.
func newBucket(t conformance.T, js jetstream.JetStream, name string, values uint8) jetstream.KeyValue {
	t.Helper()
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{
		Bucket: name, History: values, Storage: jetstream.MemoryStorage,
	})
	if err != nil {
		t.Fatal(err)
	}
	return kv
}

// start returns a Source of a bucket. The Source reads until the end of the test.
func start(t conformance.T, js jetstream.JetStream, bucket string, o watchcache.Options) *flags.Source {
	t.Helper()
	d := listwatch.Description{APIVersion: "example.com/v1", Kind: "Flag", Fields: []string{"spec.phase"}}
	return startWith(t, js, bucket, d, o)
}

func startWith(
	t conformance.T, js jetstream.JetStream, bucket string, d listwatch.Description, o watchcache.Options,
) *flags.Source {
	t.Helper()
	s, err := flags.New(t.Context(), js, bucket, d, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) }) // returns the error of ctx
	t.Cleanup(func() { cancel(); running.Wait() })
	return s
}

// A writer writes flags to a bucket.
type writer struct {
	kv jetstream.KeyValue

	mu   sync.Mutex
	uids map[string]string // the uids of the existing flags
}

// write writes an object, or deletes it if data is nil. It returns the version of the change.
func (w *writer) write(ctx context.Context, key listwatch.Key, data []byte) (listwatch.Version, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := key.Namespace + "." + key.Name
	if data == nil {
		delete(w.uids, name)
		if err := w.kv.Delete(ctx, name); err != nil {
			return 0, err
		}
		status, err := w.kv.Status(ctx)
		if err != nil {
			return 0, err
		}
		last := status.(*jetstream.KeyValueBucketStatus).StreamInfo().State.LastSeq
		return listwatch.Version(last + 1), nil
	}
	if w.uids[name] == "" {
		w.uids[name] = fmt.Sprint(rand.Uint64())
	}
	object, err := withUID(data, w.uids[name])
	if err != nil {
		return 0, err
	}
	revision, err := w.kv.Put(ctx, name, object)
	return listwatch.Version(revision + 1), err
}

// withUID sets metadata.uid, as the program that writes the flags does.
func withUID(data []byte, uid string) ([]byte, error) {
	var members, metadata map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(members["metadata"], &metadata); err != nil {
		return nil, err
	}
	var err error
	if metadata["uid"], err = json.Marshal(uid); err != nil {
		return nil, err
	}
	if members["metadata"], err = listwatch.Encode(metadata); err != nil {
		return nil, err
	}
	return listwatch.Encode(members)
}

// The suite expects each write as an event, so its bucket must keep them until they are read.
func TestBucketIsASource(t *testing.T) {
	skipWithRaces(t)
	js := connect(t)
	n := 0
	conformance.TestReadOnlySource(t, func(t conformance.T, historyBytes int64) conformance.ReadOnlySource {
		n++
		bucket := fmt.Sprint("flags", n)
		w := &writer{kv: newBucket(t, js, bucket, jetstream.KeyValueMaxHistory), uids: map[string]string{}}
		s := start(t, js, bucket, watchcache.Options{History: listwatch.Retention{Bytes: historyBytes}})
		return conformance.ReadOnlySource{Source: s, Write: w.write, Compact: s.Compact}
	}, exceptions)
}

// skipWithRaces skips a test with the race detector, which would watch the NATS server most of the
// time.
func skipWithRaces(t *testing.T) {
	t.Helper()
	if raceEnabled {
		t.Skip("make test runs the suite without the race detector")
	}
}

var exceptions = conformance.Exceptions{
	"resume/server-restart": "the case loses its data: a new bucket has another epoch",
	"slow/bounded-memory":   "the NATS server of the test keeps the values in the memory of the same process",
}

// buckets is a database with a bucket for each collection.
type buckets struct {
	t       conformance.T
	js      jetstream.JetStream
	prefix  string
	options watchcache.Options

	mu  sync.Mutex
	all []*flags.Source // guarded by mu
}

func (b *buckets) Collection(spec store.CollectionSpec) (*store.Collection, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bucket := fmt.Sprint(b.prefix, len(b.all))
	newBucket(b.t, b.js, bucket, jetstream.KeyValueMaxHistory)
	s := startWith(b.t, b.js, bucket, spec.WithDefaults().Description(""), b.options)
	b.all = append(b.all, s)
	return store.New(spec, s), nil
}

func (b *buckets) Compact() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.all {
		s.Compact()
	}
}

func TestBucketIsAStore(t *testing.T) {
	skipWithRaces(t)
	js := connect(t)
	n := 0
	conformance.TestSource(t, func(t conformance.T, historyBytes int64) conformance.Database {
		n++
		o := watchcache.Options{History: listwatch.Retention{Bytes: historyBytes}}
		return &buckets{t: t, js: js, prefix: fmt.Sprintf("store%d-", n), options: o}
	}, exceptions)
}

// A bucket with one value per key skips values, but watchers always get the last one.
func TestWatchersOfConflatedBucketGetLastValues(t *testing.T) {
	js := connect(t)
	w := &writer{kv: newBucket(t, js, "flags", 1), uids: map[string]string{}}
	s := start(t, js, "flags", watchcache.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	watch, err := s.Watch(ctx, listwatch.Query{Bookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	const keys, writes = 5, 2000
	want := map[string]string{}
	var last listwatch.Version
	for n := range writes {
		key := listwatch.Key{Namespace: "n", Name: fmt.Sprint(rand.IntN(keys))}
		data := fmt.Appendf(nil, `{"metadata":{"namespace":"n","name":%q},"spec":{"n":%d}}`, key.Name, n)
		want[key.Name] = fmt.Sprintf(`{"n":%d}`, n)
		if n%7 == 0 {
			data = nil
			delete(want, key.Name)
		}
		if last, err = w.write(ctx, key, data); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	events := 0
	for e, err := range listwatch.All(ctx, watch) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Type {
		case listwatch.Added, listwatch.Modified:
			var o struct{ Spec json.RawMessage }
			if err := json.Unmarshal(e.Object.Data, &o); err != nil {
				t.Fatal(err)
			}
			got[e.Object.Key.Name] = string(o.Spec)
			events++
		case listwatch.Deleted:
			delete(got, e.Object.Key.Name)
			events++
		}
		if e.Version >= last {
			break
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	t.Logf("%d of %d writes became events", events, writes)
}

func TestObjectsMayLackNamespaces(t *testing.T) {
	b := &buckets{t: t, js: connect(t), prefix: "flags"}
	c, err := b.Collection(store.CollectionSpec{Kind: "Flag"})
	if err != nil {
		t.Fatal(err)
	}
	o, err := c.Create(t.Context(), []byte(`{"metadata":{"name":"a.b"}}`))
	if err != nil || o.Key != (listwatch.Key{Name: "a.b"}) {
		t.Fatalf("got %v, %v", o, err)
	}
	if _, err := c.Delete(t.Context(), o.Key, listwatch.Preconditions{Version: o.Version}); err != nil {
		t.Fatal(err)
	}
	if again, err := c.Create(t.Context(), []byte(`{"metadata":{"name":"a.b"}}`)); err != nil ||
		again.Version <= o.Version {
		t.Errorf("got %v, %v, want a newer object", again, err)
	}
}

// updateStream changes the configuration of a bucket's stream.
func updateStream(t *testing.T, js jetstream.JetStream, bucket string, change func(*jetstream.StreamConfig)) {
	t.Helper()
	stream, err := js.Stream(t.Context(), "KV_"+bucket)
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	change(&config)
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
}

// allowTTL lets keys have a TTL, as nats kv add --allow-msg-ttl does, but without markers.
func allowTTL(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }

func TestBucketThatLosesValuesIsRefused(t *testing.T) {
	js := connect(t)
	for i, change := range []func(*jetstream.StreamConfig){
		func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		allowTTL,
		func(c *jetstream.StreamConfig) { // NATS writes no marker while older values remain
			c.AllowMsgTTL, c.SubjectDeleteMarkerTTL, c.MaxMsgsPerSubject = true, time.Minute, 2
		},
		func(c *jetstream.StreamConfig) { c.Discard, c.MaxMsgs = jetstream.DiscardOld, 10 },
		func(c *jetstream.StreamConfig) { c.Discard, c.MaxBytes = jetstream.DiscardOld, 1<<20 },
	} {
		bucket := fmt.Sprint("flags", i)
		newBucket(t, js, bucket, 1)
		updateStream(t, js, bucket, change)
		if _, err := flags.New(t.Context(), js, bucket, listwatch.Description{}, watchcache.Options{}); err == nil {
			t.Errorf("bucket %d: got no error", i)
		}
	}
}

// The configuration of a bucket may change between New and Run, and while Run is disconnected.
func TestBucketThatLosesValuesIsNotFollowed(t *testing.T) {
	js := connect(t)
	newBucket(t, js, "flags", 1)
	s, err := flags.New(t.Context(), js, "flags", listwatch.Description{}, watchcache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	updateStream(t, js, "flags", allowTTL)
	lines := make(chan string, 100)
	log.SetOutput(writerFunc(func(line []byte) (int, error) {
		select {
		case lines <- string(line):
		default:
		}
		return len(line), nil
	}))
	defer log.SetOutput(os.Stderr)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case line := <-lines:
		if !strings.Contains(line, "expired values would not be reported as deleted") {
			t.Errorf("logged %q, want why the bucket is not followed", line)
		}
	case <-ctx.Done():
		t.Error("nothing was logged")
	}
	cancel()
	<-ended
	if s.Version() != 0 {
		t.Errorf("the cache has reached version %d, want no state", s.Version())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// NATS reports a key whose TTL has ended by a marker.
func TestExpiredKeysAreDeleted(t *testing.T) {
	js := connect(t)
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "flags", LimitMarkerTTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, js, "flags", watchcache.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := s.Watch(ctx, listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	const object = `{"metadata":{"namespace":"n","name":"a"}}`
	if _, err := kv.Create(ctx, "n.a", []byte(object), jetstream.KeyTTL(time.Second)); err != nil {
		t.Fatal(err)
	}
	var got []listwatch.EventType
	for e, err := range listwatch.All(ctx, w) {
		if err != nil {
			t.Fatalf("after %v: %v", got, err)
		}
		if got = append(got, e.Type); len(got) == 2 {
			break
		}
	}
	if want := []listwatch.EventType{listwatch.Added, listwatch.Deleted}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// The key is free, as for a client of NATS.
	c := store.New(store.CollectionSpec{Kind: "Flag", Namespaced: true}, s)
	if _, err := c.Create(ctx, []byte(object)); err != nil {
		t.Errorf("create after the expiry: %v", err)
	}
}
