// Package mutants runs the conformance cases against mutants, to show that the cases can fail: each case
// that a mutant breaks must notice it.
package mutants

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/listwatch/listwatch/conformance/cases"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/mutation"
	"github.com/listwatch/listwatch/conformance/runner"
)

// A Trial is what the cases made of one mutant.
type MutantResult struct {
	// Name is that of the mutant.
	Name string `json:"name"`
	// Killers are the cases that failed, as they must; Blind those that did not; Left those that need a clock of their own to fail,
	// so that only go test can tell.
	DetectedBy []string `json:"killers,omitempty"`
	MissedBy   []string `json:"blind,omitempty"`
	NotTried   []string `json:"left,omitempty"`
}

// Killed reports whether every case that was run has noticed, and one was.
func (t MutantResult) Killed() bool { return len(t.DetectedBy) > 0 && len(t.MissedBy) == 0 }

// A Result is what the cases made of all mutants.
type Result struct {
	Trials  []MutantResult `json:"trials"`
	Seconds float64        `json:"seconds"`
}

// Counts returns how many mutants were killed, how many survived, and of how many only go test can tell.
func (r *Result) Counts() (killed, survived, left int) {
	for _, t := range r.Trials {
		switch {
		case t.Killed():
			killed++
		case len(t.MissedBy) > 0:
			survived++
		default:
			left++
		}
	}
	return killed, survived, left
}

// OK reports whether no mutant survived.
func (r *Result) OK() bool {
	_, survived, _ := r.Counts()
	return survived == 0
}

// workers is how many mutants are tried at a time. Most of what a trial does is waiting for what the mutant keeps back.
const workers = 6

// Run tries every mutant on real sockets of this machine, and tells each trial to progress, if it is not nil. Where ctx ends it returns why.
func Run(ctx context.Context, progress func(MutantResult)) (*Result, error) {
	begun, all := time.Now(), cases.Mutants()
	r := &Result{Trials: make([]MutantResult, len(all))}
	known := map[string]harness.Case{}
	for _, c := range cases.All() {
		known[c.ID] = c
	}
	next := make(chan int)
	var mu sync.Mutex      // guards progress
	var alone sync.RWMutex // held for writing by a case that measures
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range next {
				t := try(all[i], ctx, known, &alone)
				r.Trials[i] = t
				mu.Lock()
				if progress != nil && ctx.Err() == nil {
					progress(t)
				}
				mu.Unlock()
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r.Seconds = time.Since(begun).Seconds()
	return r, nil
}

// try runs the cases that m breaks, those that measure alone.
func try(m mutation.Mutant, ctx context.Context, known map[string]harness.Case, alone *sync.RWMutex) MutantResult {
	t := MutantResult{Name: m.Name}
	for _, id := range m.Breaks {
		c := known[id]
		lock := alone.RLocker()
		if c.RunsAlone {
			lock = alone
		}
		lock.Lock()
		noticed := runner.Detects(ctx, c, m.Target(), nil)
		lock.Unlock()
		switch {
		case noticed:
			t.DetectedBy = append(t.DetectedBy, id)
		case strings.Contains(c.Mode, "f"): // with a clock of its own it may notice
			t.NotTried = append(t.NotTried, id)
		default:
			t.MissedBy = append(t.MissedBy, id)
		}
	}
	return t
}
