package checker

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var seeds = flag.Int("seeds", 16, "how many histories each test makes")

// steps are how long the histories are.
const steps = 600

func mustCheck(t testing.TB, h *History) *Report {
	t.Helper()
	r, err := Check(h, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCleanHistoriesViolateNothing(t *testing.T) {
	var all Summary
	for seed := range uint64(*seeds) * 5 {
		h := simulate(seed, steps)
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
		t.Errorf("the histories are too easy: %+v", all)
	}
	t.Logf("%d events, %d resumes, %d expired, %d relists, %d snapshots", all.Events, all.Resumes, all.Expired, all.Relists, all.Snapshots)
}

// Every lie is caught, by the rule it breaks and by no other.
func TestEveryMutationIsCaughtByItsRule(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			applied := 0
			for seed := range uint64(*seeds) {
				h := clone(simulated(seed))
				if !m.apply(&mutator{rand.New(rand.NewPCG(seed, 2)), h}) {
					continue
				}
				applied++
				checkCaught(t, seed, m, h)
			}
			if applied < max(1, *seeds/8) {
				t.Errorf("applied to %d histories of %d, want more: nothing is shown", applied, *seeds)
			}
		})
	}
}

// simulated returns the history of a seed, which is made once.
func simulated(seed uint64) *History {
	if h, ok := simulations.Load(seed); ok {
		return h.(*History)
	}
	h := simulate(seed, steps)
	simulations.Store(seed, h)
	return h
}

var simulations sync.Map

// clone returns a copy of h whose frames, lists and times can be changed.
func clone(h *History) *History {
	c := *h
	c.Writes, c.Sessions, c.Lists, c.InformerStates = slices.Clone(h.Writes), nil, slices.Clone(h.Lists), slices.Clone(h.InformerStates)
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
	if r.Summary.ByGuarantee[m.rule] == 0 {
		t.Fatalf("seed %d: %s is not caught: %s%v", seed, m.rule, r.Summary.String(), r.Violations)
	}
	for _, v := range r.Violations {
		if v.Guarantee != m.rule {
			t.Fatalf("seed %d: want %s alone, got %v", seed, m.rule, v)
		}
		if v.Want == "" || v.Got == "" {
			t.Fatalf("seed %d: a violation that does not explain itself: %+v", seed, v)
		}
	}
}

// Every rule is broken by some mutation.
func TestEveryRuleHasAMutation(t *testing.T) {
	broken := make(map[Guarantee]int)
	for _, m := range mutations {
		broken[m.rule]++
	}
	for _, r := range Guarantees() {
		if broken[r] == 0 {
			t.Errorf("%s: nothing breaks it", r)
		}
	}
	t.Logf("%d mutations", len(mutations))
}

func TestHistoryReadsBackAsItWasWritten(t *testing.T) {
	for seed := range uint64(5) {
		h := simulate(seed, steps)
		var file bytes.Buffer
		if _, err := h.WriteTo(&file); err != nil {
			t.Fatal(err)
		}
		got, err := ReadHistory(&file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(h, got); diff != "" {
			t.Fatalf("want -, got +:\n%s", diff)
		}
	}
}
