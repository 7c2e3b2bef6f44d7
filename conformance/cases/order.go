package cases

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// crowd has several writers change the same objects at once.
func (e *env) crowd(writers, writes int) {
	e.Helper()
	seed := e.seeded().Uint64()
	e.together(writers, func(i int) error {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		for range writes {
			switch _, err := e.write(random); {
			case err == nil, errors.Is(err, listwatch.Conflict), errors.Is(err, listwatch.NotFound): // somebody else was quicker
			default:
				return err
			}
		}
		return nil
	})
}

func orderSameForAll(e *env) {
	watchers := many(100)
	start, views := e.put("start"), e.mixed()
	open := make([]*stream, watchers)
	e.together(watchers, func(i int) (err error) {
		open[i], err = views[i%len(views)].tryDial(from(start), transport.Request{})
		return err
	})
	e.crowd(4, 25)
	last := e.put("last")
	saw := make([][]seen, watchers)
	e.together(watchers, func(i int) (err error) {
		saw[i], err = open[i].upTo(last)
		return err
	})
	e.together(watchers, func(i int) error { return differs(saw[0], saw[i]) })

	// Whoever begins in the middle sees the rest in the same order.
	late := rand.New(rand.NewPCG(uint64(last), 0))
	for range 10 {
		at := late.IntN(len(saw[0]) - 1)
		got, err := e.dial(from(saw[0][at].version)).upTo(last)
		if err == nil {
			err = differs(saw[0][at+1:], got)
		}
		if err != nil {
			e.Errorf("from %d: %v", saw[0][at].version, err)
		}
	}
}

// ordered says what is wrong with the order of events; nil: nothing.
func ordered(events []seen) error {
	newest, of := listwatch.Version(0), map[string]seen{}
	for i, ev := range events {
		kind, name, _ := strings.Cut(ev.line, " ")
		before, known := of[name]
		beforeKind, _, _ := strings.Cut(before.line, " ")
		switch there := known && beforeKind != "DELETED"; {
		case ev.version < newest:
			return fmt.Errorf("event %d, %s, has version %d behind %d", i, ev.line, ev.version, newest)
		case known && ev.version <= before.version:
			return fmt.Errorf("event %d, %s, has version %d behind %s at %d", i, ev.line, ev.version, before.line, before.version)
		case there && kind == "ADDED", !there && kind != "ADDED" && known:
			return fmt.Errorf("event %d, %s, comes behind %s", i, ev.line, before.line)
		}
		newest, of[name] = ev.version, ev
	}
	return nil
}

func orderPerKeyAndGlobal(e *env) {
	start := e.put("start")
	queries := []string{"", labelled("!no-such-label"), fields("metadata.name!=b"), "allowWatchBookmarks=true"}
	open := make([]*stream, len(queries))
	for i, query := range queries {
		open[i] = e.dial(query + "&" + from(start))
	}
	e.crowd(4, 50)
	middle := e.newest()
	e.crowd(4, 50)
	last := e.put("last")
	for _, query := range queries {
		queries = append(queries, query+" from the middle")
		open = append(open, e.dial(query+"&"+from(middle)))
	}
	e.together(len(open), func(i int) error {
		saw, err := open[i].upTo(last)
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
