package cases

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A mutant is our server or client with one defect. It shows that the cases in breaks can fail: each of them must.
type mutant struct {
	name   string
	breaks []string // ids
	wrap   Wrap
}

// mutants are all there are, by groups: mutants_GROUP_test.go.
func mutants() []mutant {
	return slices.Concat(
		handshakeMutants,
		framingMutants,
		resumeMutants,
		selectMutants,
		errorMutants,
		eventMutants,
		bookmarkMutants,
		initialMutants,
		largeMutants,
		unicodeMutants,
		timeoutMutants,
		slowMutants,
		dropMutants,
		drainMutants,
		orderMutants,
		authMutants,
		corsMutants,
		compMutants,
		concMutants,
		limitMutants,
	)
}

// mutantPatience is short: what a mutant keeps back never comes.
const mutantPatience = time.Second

// The runs are parallel: most of their time is waiting for what a mutant keeps back.
func TestEveryMutantIsCaughtByItsCases(t *testing.T) {
	if testing.Short() {
		t.Skip("each case waits for what does not come")
	}
	for _, m := range mutants() {
		target := Own(m.name, m.wrap)
		target.Patience = mutantPatience
		for _, id := range m.breaks {
			t.Run(m.name+"/"+id, func(t *testing.T) {
				t.Parallel()
				i := slices.IndexFunc(All(), func(c Case) bool { return c.ID == id && c.run != nil })
				if i < 0 {
					t.Fatalf("%s breaks %s, and there is no such case", m.name, id)
				}
				if c := All()[i]; !c.fails(t, target) {
					t.Errorf("%s (%s) does not notice", c.ID, c.Says)
				}
			})
		}
	}
}

func TestEveryCaseHasAMutant(t *testing.T) {
	broken := map[string]bool{}
	for _, m := range mutants() {
		for _, id := range m.breaks {
			broken[id] = true
		}
	}
	for _, c := range All() {
		if c.run != nil && c.Level != Figure && !broken[c.ID] {
			t.Errorf("no mutant breaks %s: does it prove anything?", c.ID)
		}
	}
}

// fails reports whether c fails in any of its ways and lanes.
func (c Case) fails(t *testing.T, target Target) bool {
	for _, w := range c.waysOf(target) {
		for _, lane := range c.Lane {
			failed := false
			run := func(t *testing.T) { failed = c.failsOn(t.Context(), target, w, lane == 'f') }
			if lane == 'f' {
				synctest.Test(t, run)
			} else {
				run(t)
			}
			if failed {
				return true
			}
		}
	}
	return false
}

func (c Case) failsOn(ctx context.Context, target Target, w way, fake bool) bool {
	r := newRecorder(ctx, c.ID)
	begun := false
	go r.run(func() {
		s := c.setup
		s.Fake = fake
		e := newEnv(r, target, w, s, newTimeline())
		begun = true
		c.run(e)
	})
	<-r.done
	v := c.judge(r, begun)
	return v == Fail || v == Warn
}
