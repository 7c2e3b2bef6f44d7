package checker

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch/internal/racetest"
	"github.com/listwatch/listwatch/internal/testkit"
)

var seeds = flag.Int("seeds", 16, "number of histories that each test simulates")

// simulationSteps is the number of steps in each simulated history.
const simulationSteps = 600

func mustCheck(t testing.TB, h *History) *Report {
	t.Helper()
	return testkit.Must(Check(h, nil))(t)
}

func TestCorrectHistoriesPass(t *testing.T) {
	var all Summary
	for seed := range uint64(*seeds) * 5 {
		h := simulate(seed, simulationSteps)
		r := mustCheck(t, h)
		if err := r.Err(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		s := r.Summary
		all.Events += s.Events
		all.Expired += s.Expired
		all.Resumes += s.Resumes
		all.Snapshots += s.Snapshots
		all.Relists += s.Relists
	}
	if all.Events == 0 || all.Expired == 0 || all.Resumes == 0 || all.Snapshots == 0 || all.Relists == 0 {
		t.Errorf("the simulated histories lack some kinds of events: %+v", all)
	}
	t.Logf("%d events, %d resumes, %d expired, %d relists, %d snapshots", all.Events, all.Resumes, all.Expired,
		all.Relists, all.Snapshots)
}

// Each mutation must break its guarantee, and no other.
func TestEachMutationBreaksItsGuarantee(t *testing.T) {
	if racetest.Enabled {
		t.Skip("make test runs the mutations without the race detector")
	}
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			applied := 0
			for seed := range uint64(*seeds) {
				h := clone(cachedSimulation(seed))
				if !m.apply(&mutator{rand.New(rand.NewPCG(seed, 2)), h}) {
					continue
				}
				applied++
				checkCaught(t, seed, m, h)
			}
			if applied < max(1, *seeds/8) {
				t.Errorf("the mutation applied to only %d of %d histories", applied, *seeds)
			}
		})
	}
}

// cachedSimulation returns the simulated history of a seed. Callers must not modify it.
func cachedSimulation(seed uint64) *History {
	if h, ok := simulations.Load(seed); ok {
		return h.(*History)
	}
	h := simulate(seed, simulationSteps)
	simulations.Store(seed, h)
	return h
}

var simulations sync.Map

// clone returns a copy of h whose events, items and times may be modified.
func clone(h *History) *History {
	c := *h
	c.Writes, c.Sessions = slices.Clone(h.Writes), nil
	c.Lists, c.InformerStates = slices.Clone(h.Lists), slices.Clone(h.InformerStates)
	c.HandlerCalls, c.Compactions = slices.Clone(h.HandlerCalls), slices.Clone(h.Compactions)
	for _, s := range h.Sessions {
		s := *s
		s.Events = slices.Clone(s.Events)
		c.Sessions = append(c.Sessions, &s)
	}
	for i := range c.Lists {
		c.Lists[i].Items = slices.Clone(c.Lists[i].Items)
	}
	for i := range c.InformerStates {
		c.InformerStates[i].Items = slices.Clone(c.InformerStates[i].Items)
	}
	return &c
}

func checkCaught(t *testing.T, seed uint64, m mutation, h *History) {
	t.Helper()
	r := mustCheck(t, h)
	if r.Summary.ByGuarantee[m.guarantee] == 0 {
		t.Fatalf("seed %d: no violation of %s: %s%v", seed, m.guarantee, r.Summary.String(), r.Violations)
	}
	for _, v := range r.Violations {
		if v.Guarantee != m.guarantee {
			t.Fatalf("seed %d: want only violations of %s, got %v", seed, m.guarantee, v)
		}
		if v.Want == "" || v.Got == "" {
			t.Fatalf("seed %d: the violation does not explain itself: %+v", seed, v)
		}
	}
}

func TestEveryGuaranteeHasAMutation(t *testing.T) {
	broken := make(map[Guarantee]int)
	for _, m := range mutations {
		broken[m.guarantee]++
	}
	for _, r := range Guarantees() {
		if broken[r] == 0 {
			t.Errorf("%s: no mutation breaks it", r)
		}
	}
	t.Logf("%d mutations", len(mutations))
}

func TestHistorySurvivesWriteAndRead(t *testing.T) {
	for seed := range uint64(5) {
		h := simulate(seed, simulationSteps)
		var file bytes.Buffer
		if _, err := h.WriteTo(&file); err != nil {
			t.Fatal(err)
		}
		got, err := ReadHistory(&file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(h, got); diff != "" {
			t.Fatalf("the history after writing and reading it (-want +got):\n%s", diff)
		}
	}
}
