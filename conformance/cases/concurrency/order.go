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

// crowd has several writers change the same objects at once.
func crowd(e *harness.Env, writers, writes int) {
	e.Helper()
	seed := e.Random().Uint64()
	e.Concurrently(writers, func(i int) error {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		for range writes {
			switch _, err := write(e, random); {
			case err == nil, errors.Is(err, listwatch.Conflict), errors.Is(err, listwatch.NotFound): // somebody else was quicker
			default:
				return err
			}
		}
		return nil
	})
}

func orderSameForAll(e *harness.Env) {
	watchers := harness.Scaled(100)
	start, views := e.Put("start"), mixed(e)
	open := make([]*harness.Watch, watchers)
	e.Concurrently(watchers, func(i int) (err error) {
		open[i], err = views[i%len(views)].TryDial(harness.From(start), transport.Request{})
		return err
	})
	crowd(e, 4, 25)
	last := e.Put("last")
	saw := make([][]harness.Seen, watchers)
	e.Concurrently(watchers, func(i int) (err error) {
		saw[i], err = open[i].ReadThrough(last)
		return err
	})
	e.Concurrently(watchers, func(i int) error { return harness.Diff(saw[0], saw[i]) })

	// Whoever begins in the middle sees the rest in the same order.
	late := rand.New(rand.NewPCG(uint64(last), 0))
	for range 10 {
		at := late.IntN(len(saw[0]) - 1)
		got, err := e.Dial(harness.From(saw[0][at].Version)).ReadThrough(last)
		if err == nil {
			err = harness.Diff(saw[0][at+1:], got)
		}
		if err != nil {
			e.Errorf("from %d: %v", saw[0][at].Version, err)
		}
	}
}

// ordered says what is wrong with the order of events; nil: nothing.
func ordered(events []harness.Seen) error {
	newest, of := listwatch.Version(0), map[string]harness.Seen{}
	for i, ev := range events {
		kind, name, _ := strings.Cut(ev.Line, " ")
		before, known := of[name]
		beforeKind, _, _ := strings.Cut(before.Line, " ")
		switch there := known && beforeKind != "DELETED"; {
		case ev.Version < newest:
			return fmt.Errorf("event %d, %s, has version %d behind %d", i, ev.Line, ev.Version, newest)
		case known && ev.Version <= before.Version:
			return fmt.Errorf("event %d, %s, has version %d behind %s at %d", i, ev.Line, ev.Version, before.Line, before.Version)
		case there && kind == "ADDED", !there && kind != "ADDED" && known:
			return fmt.Errorf("event %d, %s, comes behind %s", i, ev.Line, before.Line)
		}
		newest, of[name] = ev.Version, ev
	}
	return nil
}

func orderPerKeyAndGlobal(e *harness.Env) {
	start := e.Put("start")
	queries := []string{"", harness.LabelSelector("!no-such-label"), harness.FieldSelector("metadata.name!=b"), "allowWatchBookmarks=true"}
	open := make([]*harness.Watch, len(queries))
	for i, query := range queries {
		open[i] = e.Dial(query + "&" + harness.From(start))
	}
	crowd(e, 4, 50)
	middle := e.Newest()
	crowd(e, 4, 50)
	last := e.Put("last")
	for _, query := range queries {
		queries = append(queries, query+" from the middle")
		open = append(open, e.Dial(query+"&"+harness.From(middle)))
	}
	e.Concurrently(len(open), func(i int) error {
		saw, err := open[i].ReadThrough(last)
		if err == nil {
			err = ordered(saw)
		}
		if err == nil && len(saw) < 2 {
			err = errors.New("there were no events to be in order")
		}
		if err != nil {
			return fmt.Errorf("%q: %w", queries[i], err)
		}
		return nil
	})
}
