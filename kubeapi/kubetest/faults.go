package kubetest

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/listwatchtest"
)

// Faults makes the requests to an Env fail on command. The Env's own work, such as the collection
// of dependents, never fails. Faults is safe for concurrent use.
type Faults struct {
	mu sync.Mutex
	// Guarded by mu.
	sources  []*listwatchtest.Source // of all collections
	refusals []Refusal
	repeats  map[request]int // the requests since Start; nil if there is no chaos
	seed     uint64
	chaos    Chaos
	injected []string // the faults of the chaos
	stale    int
	versions []listwatch.Version // the newest versions, the newest last
}

// A Refusal refuses requests.
type Refusal struct {
	// Status is the status of the responses. It is usually 409, 429 or 503.
	Status int
	// Verbs and Resources select the requests. Verbs are Kubernetes' verbs: get, list, watch,
	// create, update, patch, delete and deletecollection. Resources are plural names, with the
	// subresource if there is one: "pods" or "pods/status". If empty, all requests are selected.
	Verbs, Resources []string
	// Times is the number of requests to refuse. If zero, one is refused. If negative, there is no
	// limit.
	Times int
}

// Chaos holds the probabilities of faults, from 0 to 1. They apply to each request independently.
type Chaos struct {
	// Conflict refuses updates and patches with status 409. TooManyRequests refuses any request
	// with 429, and Unavailable with 503.
	Conflict, TooManyRequests, Unavailable float64
	// Cut ends all watches after a write. Expire also drops the history.
	Cut, Expire float64
	// Delay delays requests by a random time up to MaxDelay.
	Delay    float64
	MaxDelay time.Duration
}

// maxStale is the greatest number of versions for [Faults.Stale].
const maxStale = 1000

// maxInjected is the number of faults that a failed test logs, at most.
const maxInjected = 1000

// CutWatches ends all watches, as a connection that breaks does. Clients resume.
func (f *Faults) CutWatches() {
	for _, s := range f.all() {
		s.Cut(nil)
	}
}

// ExpireHistory drops the history. All watches end with status 410, as do later requests for older
// versions, so clients list again.
func (f *Faults) ExpireHistory() {
	for _, s := range f.all() {
		_ = s.Expire() // the store is in memory
	}
}

// DelayReads delays each list, each start of a watch and each batch of events of a watch by d. Zero
// removes the delay.
func (f *Faults) DelayReads(d time.Duration) {
	for _, s := range f.all() {
		s.Delay(d)
	}
}

// StaleReads makes lists with resourceVersion "0" return the state before the last n writes, as a
// server whose cache lags does. Zero or a negative n makes them current. n is at most 1000.
func (f *Faults) StaleReads(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stale = min(n, maxStale)
}

// Refuse refuses requests from now on. If several Refusals select a request, the first one applies.
func (f *Faults) Refuse(r Refusal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.Times = cmp.Or(r.Times, 1)
	f.refusals = append(f.refusals, r)
}

// Start makes requests fail at random from now on. The faults of a request depend on the seed, its
// verb, its object, and the number of such requests since Start. So a test that fails can be
// repeated with the same seed, even if its goroutines run in another order. A test that fails logs
// the faults.
func (f *Faults) Start(seed uint64, c Chaos) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.repeats, f.seed, f.chaos = map[request]int{}, seed, c
}

// logInjected logs the faults that Start has caused.
func (f *Faults) logInjected(t testing.TB) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.injected) > 0 {
		t.Logf("kubetest: the faults of the seed %d:\n%s", f.seed, strings.Join(f.injected, "\n"))
	}
}

// Stop ends all faults.
func (f *Faults) Stop() {
	f.DelayReads(0)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusals, f.repeats, f.stale = nil, nil, 0
}

func (f *Faults) track(s *listwatchtest.Source) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sources = append(f.sources, s)
}

func (f *Faults) all() []*listwatchtest.Source {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sources)
}

// wrote notes the version of a write.
func (f *Faults) wrote(v listwatch.Version) {
	f.mu.Lock()
	f.versions = append(f.versions, v)
	if extra := len(f.versions) - 2*maxStale; extra > 0 {
		f.versions = slices.Clone(f.versions[maxStale:])
	}
	f.mu.Unlock()
}

// age returns the query to use for q. If reads are stale and q accepts an old state, the result
// requests one.
func (f *Faults) age(q listwatch.Query) listwatch.Query {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stale <= 0 || q.Start != listwatch.StartAny || q.Continue != "" || len(f.versions) <= f.stale {
		return q
	}
	q.Start, q.Match, q.Version = listwatch.StartAt, listwatch.MatchExact, f.versions[len(f.versions)-1-f.stale]
	return q
}
