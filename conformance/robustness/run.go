package robustness

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/listwatch/listwatch/conformance/checker"
)

// Options say what [Run] runs. The zero Options are a few seconds of everything.
type Options struct {
	// Seed is what happens follows from; zero: another one each time.
	Seed uint64
	// For is how long there are faults, at the least: a run goes on until it was hard enough. Zero: 4 s.
	MinDuration time.Duration
}

// A Result is what a run came to.
type Result struct {
	// Report judges what the watchers saw.
	Report *checker.Report `json:"report"`
	// Wrong is what nobody should have seen: writes that failed, watchers that gave up.
	Failures []string `json:"wrong,omitempty"`
	// Seconds is the time it took.
	Seconds float64 `json:"seconds"`

	// History is what was recorded; nil where the Result was read from a report.
	History *checker.History `json:"-"`
}

// OK reports whether every watcher saw every write exactly, and the run was hard enough to prove that.
func (r *Result) OK() bool { return len(r.Failures) == 0 && r.Report.Err() == nil }

// shownViolations is how many violations a Result has; its summary counts all.
const shownViolations = 20

// Run holds this module's server and its client to the guarantees of a watch on sockets of this machine, while everything goes wrong. An
// error means that there is nothing to judge: ctx ended, or sockets could not be had.
func Run(ctx context.Context, o Options) (*Result, error) {
	t := onSockets
	if o.MinDuration > 0 {
		t.run = o.MinDuration
	}
	if o.Seed == 0 {
		o.Seed = newSeed()
	}
	w, err := newWorld(setup{name: "faults", seed: o.Seed, network: sockets{}, require: enough, times: t})
	if err != nil {
		return nil, err
	}
	return w.judged(ctx)
}

// judged runs w and judges it.
func (w *world) judged(ctx context.Context) (*Result, error) {
	begun := time.Now()
	limited, cancel := context.WithTimeout(ctx, w.times.run+w.times.patience)
	defer cancel()
	r := &Result{History: w.run(limited)}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var err error
	if r.Report, err = checker.Check(r.History, &checker.Options{MaxViolations: shownViolations}); err != nil {
		return nil, err
	}
	for _, err := range w.wrong {
		r.Failures = append(r.Failures, err.Error())
	}
	r.Seconds = time.Since(begun).Seconds()
	return r, nil
}

func newSeed() uint64 { return rand.Uint64N(1<<32) + 1 }

// onSockets are times that are short, so that much happens in seconds.
var onSockets = times{
	run: 4 * time.Second, patience: 2 * time.Minute, pause: 10 * time.Millisecond, trouble: 250 * time.Millisecond, bookmark: 60 * time.Millisecond,
	watch: time.Second, heartbeat: 500 * time.Millisecond, write: time.Second, idle: 700 * time.Millisecond, fault: 300 * time.Millisecond,
}

// enough is what a run must have had.
var enough = checker.Requirements{
	Writes: 500, Events: 2000, Bookmarks: 100, Lists: 3, Resumes: 20, Expired: 5, Relists: 5,
	Faults:       map[string]int{"stall": 3, "drip": 3, "latency": 3},
	EndedByFault: map[string]int{"reset": 3, "cut": 3, "half-open": 3, "kill": 3, "drain": 3},
}
