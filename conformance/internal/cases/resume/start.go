package resume

import (
	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

func rvUnset(e *harness.Env) {
	for range 50 {
		e.Put("a")
		acked := e.Put("b")
		s := e.Dial("")
		if got := s.Want("ADDED a", "ADDED b")[1].Version; got != acked {
			e.Fatalf("got b at version %d in the initial state, want version %d, which was acknowledged before the "+
				"request", got, acked)
		}
		next := e.Put("b")
		if got := s.Want("MODIFIED b")[0].Version; got != next {
			e.Fatalf("got version %d, want %d", got, next)
		}
		s.Close()
	}
}

func rvZero(e *harness.Env) {
	e.Put("a")
	e.Put("b")
	state := map[string]listwatch.Version{}
	s := e.Dial("resourceVersion=0")
	changed := e.Put("a")
	// The initial state may be any past state. The later events must update it to the
	// current state.
	for state["a"] != changed {
		ev := s.Next()
		name := ev.Object.Key.Name
		switch old, exists := state[name]; {
		case exists && (ev.Type != listwatch.Modified || ev.Version <= old), !exists && ev.Type != listwatch.Added:
			e.Fatalf("got %s at version %d after the state %v", harness.EventLine(ev), ev.Version, state)
		}
		state[name] = ev.Version
	}
	if diff := cmp.Diff(e.StateAt(changed), state); diff != "" {
		e.Errorf("state after the watch's events (-want +got):\n%s", diff)
	}
}

func rvExactNoSynthetic(e *harness.Env) {
	e.Put("a")
	s := e.Dial(harness.From(e.Put("b")))
	if before := s.ReadUntil(e.PutSentinel()); len(before) != 0 {
		e.Errorf("got %q at version %d first, want only later writes", harness.EventLine(before[0]), before[0].Version)
	}
}
