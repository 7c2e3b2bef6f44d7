package robustness

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/listwatch/listwatch/conformance/checker"
)

// Options configures [Run].
type Options struct {
	// Seed determines the random choices. If zero, a random seed is used.
	Seed uint64
	// MinDuration is the minimum time during which faults are injected. A run takes longer
	// if necessary to inject enough faults. If zero, it is 4 seconds.
	MinDuration time.Duration
}

// A Result is the result of a run.
type Result struct {
	// Report is the checker's report on what the watchers saw.
	Report *checker.Report `json:"report"`
	// Failures lists unexpected errors, such as failed writes and watchers that gave up.
	Failures []string `json:"failures,omitempty"`
	// Seconds is the duration of the run.
	Seconds float64 `json:"seconds"`

	// History is the recorded history. It is nil if the Result was read from a report.
	History *checker.History `json:"-"`
}

// OK reports whether every watcher saw every write exactly once and in order, and enough
// faults occurred to prove that.
func (r *Result) OK() bool { return len(r.Failures) == 0 && r.Report.Err() == nil }

// maxViolations is the maximum number of violations that a Result lists. The summary in the Result
// counts all violations.
const maxViolations = 20

// Run tests this module's server and client under faults, on sockets of this machine. It
// returns an error if ctx ends or if it cannot listen.
func Run(ctx context.Context, o Options) (*Result, error) {
	t := socketTimings
	if o.MinDuration > 0 {
		t.duration = o.MinDuration
	}
	if o.Seed == 0 {
		o.Seed = newSeed()
	}
	c, err := newCluster(clusterOptions{
		name: "faults", seed: o.Seed, network: tcpNetwork{}, requirements: minimumRequirements, timings: t,
	})
	if err != nil {
		return nil, err
	}
	return c.runAndCheck(ctx)
}

// runAndCheck runs the cluster and checks its history.
func (c *cluster) runAndCheck(ctx context.Context) (*Result, error) {
	start := time.Now()
	runCtx, cancel := context.WithTimeout(ctx, c.timings.duration+c.timings.maxOvertime)
	defer cancel()
	r := &Result{History: c.run(runCtx)}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var err error
	if r.Report, err = checker.Check(r.History, &checker.Options{MaxViolations: maxViolations}); err != nil {
		return nil, err
	}
	for _, err := range c.failures {
		r.Failures = append(r.Failures, err.Error())
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

func newSeed() uint64 { return rand.Uint64N(1<<32) + 1 }

// socketTimings are short, so that many faults fit into a run of a few seconds.
var socketTimings = timings{
	duration: 4 * time.Second, maxOvertime: 8 * time.Minute, pause: 10 * time.Millisecond,
	faultInterval: 250 * time.Millisecond, bookmarkInterval: 60 * time.Millisecond,
	watchTimeout: time.Second, heartbeatInterval: 500 * time.Millisecond, writeTimeout: time.Second,
	idleTimeout: 700 * time.Millisecond, connectionFault: 300 * time.Millisecond,
}

// minimumRequirements are the minimum counts that make a run meaningful.
var minimumRequirements = checker.Requirements{
	Writes: 500, Events: 2000, Bookmarks: 100, Lists: 3, Resumes: 20, Expired: 5, Relists: 5,
	Faults:                  map[string]int{"stall": 3, "drip": 3, "latency": 3},
	ConnectionsEndedByFault: map[string]int{"reset": 3, "cut": 3, "half-open": 3, "kill": 3, "drain": 3},
}

// run runs the cluster and returns the recorded history.
func (c *cluster) run(ctx context.Context) *checker.History {
	var watchers, writers sync.WaitGroup
	for i, config := range watcherConfigs() {
		watchers.Go(func() { config.run(ctx, c, uint64(100+i)) })
	}
	faultCtx, stop := context.WithCancel(ctx)
	defer stop()
	for i := range uint64(3) {
		writers.Go(func() { c.writeRandomly(faultCtx, i) })
	}
	writers.Go(func() { c.injectServerFaults(faultCtx, c.random(10)) })
	c.waitForRequirements(ctx)
	stop()
	writers.Wait()
	c.heal()
	watchers.Wait()
	c.server.stop(true)
	return c.recorder.History()
}
