package concurrency

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/transport"
)

// writeConcurrently changes the same objects from several goroutines and waits for them.
func writeConcurrently(e *harness.Env, writers, writes int) {
	e.Helper()
	seed := e.Random().Uint64()
	e.Concurrently(writers, func(i int) error {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		for range writes {
			switch _, err := writeRandom(e, random); {
			case err == nil, errors.Is(err, listwatch.Conflict), errors.Is(err, listwatch.NotFound):
				// Another writer was faster.
			default:
				return err
			}
		}
		return nil
	})
}

func orderSameForAll(e *harness.Env) {
	watchers := harness.Scaled(100)
	start, envs := e.Put("start"), allVariants(e)
	watches := make([]*harness.Watch, watchers)
	e.Concurrently(watchers, func(i int) (err error) {
		watches[i], err = envs[i%len(envs)].TryDial(harness.From(start), transport.Request{})
		return err
	})
	writeConcurrently(e, 4, 25)
	last := e.Put("last")
	seen := make([][]harness.SeenEvent, watchers)
	e.Concurrently(watchers, func(i int) (err error) {
		seen[i], err = watches[i].ReadThrough(last)
		return err
	})
	e.Concurrently(watchers, func(i int) error { return harness.Diff(seen[0], seen[i]) })

	// A watch that starts in the middle must receive the remaining events in the same order.
	random := rand.New(rand.NewPCG(uint64(last), 0))
	for range 10 {
		i := random.IntN(len(seen[0]) - 1)
		got, err := e.Dial(harness.From(seen[0][i].Version)).ReadThrough(last)
		if err == nil {
			err = harness.Diff(seen[0][i+1:], got)
		}
		if err != nil {
			e.Errorf("a watch from version %d: %v", seen[0][i].Version, err)
		}
	}
}

// checkOrder returns an error if versions decrease, or if the events of an object are not a
// valid sequence.
func checkOrder(events []harness.SeenEvent) error {
	newest, last := listwatch.Version(0), map[string]harness.SeenEvent{}
	for i, ev := range events {
		kind, name, _ := strings.Cut(ev.Line, " ")
		before, seen := last[name]
		beforeKind, _, _ := strings.Cut(before.Line, " ")
		switch exists := seen && beforeKind != "DELETED"; {
		case ev.Version < newest:
			return fmt.Errorf("event %d, %s, has version %d, but an earlier event has version %d", i,
				ev.Line, ev.Version, newest)
		case seen && ev.Version <= before.Version:
			return fmt.Errorf("event %d, %s, has version %d, but its object had %s at version %d", i, ev.Line,
				ev.Version, before.Line, before.Version)
		case exists && kind == "ADDED", !exists && kind != "ADDED" && seen:
			return fmt.Errorf("event %d, %s, cannot follow %s", i, ev.Line, before.Line)
		}
		newest, last[name] = ev.Version, ev
	}
	return nil
}

func orderPerKeyAndGlobal(e *harness.Env) {
	start := e.Put("start")
	queries := []string{
		"", harness.LabelSelector("!no-such-label"), harness.FieldSelector("metadata.name!=b"),
		"allowWatchBookmarks=true",
	}
	watches := make([]*harness.Watch, len(queries))
	for i, query := range queries {
		watches[i] = e.Dial(query + "&" + harness.From(start))
	}
	writeConcurrently(e, 4, 50)
	middle := e.Newest()
	writeConcurrently(e, 4, 50)
	last := e.Put("last")
	for _, query := range queries {
		queries = append(queries, query+" from the middle")
		watches = append(watches, e.Dial(query+"&"+harness.From(middle)))
	}
	e.Concurrently(len(watches), func(i int) error {
		events, err := watches[i].ReadThrough(last)
		if err == nil {
			err = checkOrder(events)
		}
		if err == nil && len(events) < 2 {
			err = errors.New("got fewer than two events, so their order cannot be checked")
		}
		if err != nil {
			return fmt.Errorf("%q: %w", queries[i], err)
		}
		return nil
	})
}
