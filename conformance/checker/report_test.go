package checker

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
)

// A violation must be understandable without the history.
func TestViolationExplainsItself(t *testing.T) {
	h := clone(cachedSimulation(1))
	for _, m := range mutations {
		if m.name == "gap at resume" && !m.apply(&mutator{newSimulation(1).rand, h}) {
			t.Fatal("the history of seed 1 has no place for a gap")
		}
	}
	err := mustCheck(t, h).Err()
	if !errors.Is(err, listwatch.Corrupt) {
		t.Fatalf("got %v, want an error of code Corrupt", err)
	}
	for _, want := range []string{
		"W5 resume: a watch that requests a version", "watcher w", "session ", "over h2", "event 0", "want ",
		"at version", "got ", "1 violations", "seed 1",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the message lacks %q: %v", want, err)
		}
	}
}

func TestUnmetRequirementsFail(t *testing.T) {
	h := clone(cachedSimulation(2))
	s := mustCheck(t, h).Summary
	h.Meta.Requirements = Requirements{
		Writes: s.Writes, Events: s.Events, Bookmarks: s.Bookmarks, Lists: s.Lists, Resumes: s.Resumes,
		Expired: s.Expired, Relists: s.Relists,
		Faults:                  map[string]int{"cut": s.Faults["cut"]},
		ConnectionsEndedByFault: map[string]int{"cut": s.ConnectionsEndedByFault["cut"]},
	}
	if err := mustCheck(t, h).Err(); err != nil {
		t.Fatalf("requirements that are just met: %v", err)
	}
	if s.ConnectionsEndedByFault["cut"] == 0 || s.Expired == 0 || s.Relists == 0 || s.Resumes == 0 {
		t.Fatalf("the history lacks some kinds of events: %s", s.String())
	}
	h.Meta.Requirements = Requirements{
		Writes: s.Writes + 1, Events: s.Events + 1, Bookmarks: s.Bookmarks + 1, Lists: s.Lists + 1,
		Resumes: s.Resumes + 1, Expired: s.Expired + 1,
		Relists: s.Relists + 1, Faults: map[string]int{"cut": s.Faults["cut"] + 1, "stall": 1},
		ConnectionsEndedByFault: map[string]int{"cut": s.ConnectionsEndedByFault["cut"] + 1, "stall": 1},
	}
	r := mustCheck(t, h)
	if missing := h.Meta.Requirements.Missing(&r.Summary); len(missing) != 11 {
		t.Errorf("got %d missing requirements, want 11: %q", len(missing), missing)
	}
	if err := r.Err(); !errors.Is(err, listwatch.Invalid) || strings.Count(err.Error(), "requirement not met: ") != 11 {
		t.Errorf("got %v, want an error of code Invalid with all 11 requirements", err)
	}
}

func TestContradictoryWritesAreRefused(t *testing.T) {
	state := &ObjectState{}
	for name, writes := range map[string][]Write{
		"no version":            {{Key: Key{Name: "a"}, After: state}},
		"neither before, after": {{Version: 1, Key: Key{Name: "a"}}},
		"twice": {
			{Version: 1, Key: Key{Name: "a"}, After: state},
			{Version: 1, Key: Key{Name: "a"}, Before: state, After: state},
		},
		"create of existing object": {
			{Version: 1, Key: Key{Name: "a"}, After: state}, {Version: 2, Key: Key{Name: "a"}, After: state},
		},
		"update of missing object": {{Version: 1, Key: Key{Name: "a"}, Before: state, After: state}},
	} {
		if _, err := Check(&History{Writes: writes}, nil); !errors.Is(err, listwatch.Invalid) {
			t.Errorf("%s: got %v, want Invalid", name, err)
		}
	}
	h := &History{Sessions: []*Session{{Watcher: "w", Request: Request{Selection: Selection{Labels: "a in"}}}}}
	if _, err := Check(h, nil); !errors.Is(err, listwatch.Invalid) {
		t.Errorf("invalid selector: got %v, want Invalid", err)
	}
	h = &History{
		Sessions: []*Session{{Watcher: "w"}, {Watcher: "w", Request: Request{Selection: Selection{Name: "a"}}}},
	}
	if _, err := Check(h, nil); !errors.Is(err, listwatch.Invalid) {
		t.Errorf("watcher with two selections: got %v, want Invalid", err)
	}
}

func TestMaxViolationsLimitsTheReport(t *testing.T) {
	h := clone(cachedSimulation(3))
	for _, s := range h.Sessions {
		for i := range s.Events {
			if s.Events[i].Fingerprint != 0 {
				s.Events[i].Fingerprint ^= 2
			}
		}
	}
	few, err := Check(h, &Options{MaxViolations: 3})
	if err != nil {
		t.Fatal(err)
	}
	all, err := Check(h, &Options{MaxViolations: -1})
	if err != nil {
		t.Fatal(err)
	}
	if len(few.Violations) != 3 || few.Summary.Violations < 100 || len(all.Violations) != few.Summary.Violations {
		t.Errorf("the reports contain %d and %d of %d violations, want 3 and all", len(few.Violations),
			len(all.Violations), few.Summary.Violations)
	}
	if !strings.Contains(few.Err().Error(), "more violations") {
		t.Error("the report does not mention the other violations")
	}
	if !slices.Equal(few.Violations, all.Violations[:3]) {
		t.Error("the report does not contain the first violations")
	}
}

func TestGuaranteesHaveNamesAndTexts(t *testing.T) {
	names := make(map[string]bool)
	for i, r := range Guarantees() {
		if r.ID() != "W"+string("123456789"[i%9]) && i < 9 || r.Name() == "" || r.Text() == "" || names[r.Name()] {
			t.Errorf("%s %q %q", r.ID(), r.Name(), r.Text())
		}
		names[r.Name()] = true
	}
	if len(names) != 14 {
		t.Errorf("got %d guarantees, want 14", len(names))
	}
	if got := Guarantee(0).Name(); got != "unknown" {
		t.Errorf("guarantee 0 has the name %q", got)
	}
	if got := Guarantee(99).Text(); got != "unknown guarantee" {
		t.Errorf("guarantee 99 has the text %q", got)
	}
}
