// Package mutants runs the conformance cases against mutants, to show that the cases can fail: each
// case that a mutant breaks must detect the mutant.
package mutants

import (
	"context"
	"sync"
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/cases"
	"github.com/listwatch/listwatch/conformance/internal/mutation"
	"github.com/listwatch/listwatch/conformance/runner"
)

// A MutantResult holds the results of the cases that one mutant breaks.
type MutantResult struct {
	// Name is the name of the mutant.
	Name string `json:"name"`
	// DetectedBy lists the cases that failed, as they must, and MissedBy the cases that
	// passed. NotTried lists the cases that need a fake clock to fail, so that only go test
	// can run them.
	DetectedBy []string `json:"detectedBy,omitempty"`
	MissedBy   []string `json:"missedBy,omitempty"`
	NotTried   []string `json:"notTried,omitempty"`
}

// Killed reports whether at least one case was run and every case that was run detected the
// mutant.
func (t MutantResult) Killed() bool { return len(t.DetectedBy) > 0 && len(t.MissedBy) == 0 }

// A Result holds the results of all mutants.
type Result struct {
	Trials  []MutantResult `json:"trials"`
	Seconds float64        `json:"seconds"`
}

// Counts returns the number of killed mutants, the number of survivors, and the number of mutants
// that only the command go test can judge.
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

// workers is the number of mutants tried in parallel. A trial spends most of its time
// waiting for events that the mutant withholds.
const workers = 6

// Run tries every mutant over real sockets on this machine. If progress is not nil, Run
// calls it after each mutant. If ctx is canceled, Run returns the cause.
func Run(ctx context.Context, progress func(MutantResult)) (*Result, error) {
	start, all := time.Now(), cases.Mutants()
	r := &Result{Trials: make([]MutantResult, len(all))}
	byID := map[string]harness.Case{}
	for _, c := range cases.All() {
		byID[c.ID] = c
	}
	next := make(chan int)
	var mu sync.Mutex      // guards progress
	var alone sync.RWMutex // held for writing by cases with RunsAlone
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range next {
				t := try(all[i], ctx, byID, &alone)
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
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// try runs the cases that m breaks. Cases with RunsAlone run while no other case does.
func try(m mutation.Mutant, ctx context.Context, byID map[string]harness.Case, alone *sync.RWMutex) MutantResult {
	t := MutantResult{Name: m.Name}
	for _, id := range m.Breaks {
		c := byID[id]
		lock := alone.RLocker()
		if c.RunsAlone {
			lock = alone
		}
		lock.Lock()
		detected := runner.Detects(ctx, c, m.Target(), nil)
		lock.Unlock()
		switch {
		case detected:
			t.DetectedBy = append(t.DetectedBy, id)
		case c.RunsIn(harness.FakeTime): // may detect the mutant with a fake clock
			t.NotTried = append(t.NotTried, id)
		default:
			t.MissedBy = append(t.MissedBy, id)
		}
	}
	return t
}
