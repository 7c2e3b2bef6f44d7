package reflector

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
)

// synced returns the Synced event of a state at version v or, if since is not zero, of the
// difference since that version.
func synced(v, since listwatch.Version) listwatch.Event {
	return listwatch.NewSynced(listwatch.Description{}, listwatch.State{Version: v, ID: fmt.Sprint("state", v)}, since)
}

// gone returns the DELETED event of a difference.
func gone(name string, v listwatch.Version) listwatch.Event {
	o := &listwatch.Object{Key: listwatch.Key{Name: name}, Version: v}
	return listwatch.Event{Type: listwatch.Deleted, Initial: true, Object: o, Version: v}
}

// watchOf returns a watch that sends events and ends a minute later with the given code, or stays
// open if the code is zero.
func watchOf(t *testing.T, end listwatch.Code, events ...any) scriptedWatch {
	w := scriptedWatch{lives: time.Minute}
	if end != 0 {
		w.end = failsWith(end)
	}
	for _, e := range events {
		switch e := e.(type) {
		case string:
			w.events = append(w.events, parseEvents(t, e)...)
		case listwatch.Event:
			w.events = append(w.events, e)
		}
	}
	return w
}

// formatSince returns the Since and State of each request.
func formatSince(requests []request) (all []string) {
	for _, r := range requests {
		if all = append(all, "whole"); r.query.Since.Version != 0 {
			all[len(all)-1] = fmt.Sprint(r.query.Since.Version, " ", r.query.Since.ID)
		}
		if r.query.InitialEvents == listwatch.InitialEventsNo {
			all[len(all)-1] = "resume"
		}
	}
	return all
}

func TestExpiredWatchRequestsTheDifference(t *testing.T) {
	for _, test := range []struct {
		name            string
		watches         []scriptedWatch
		requests, takes string
	}{
		{
			"difference",
			[]scriptedWatch{
				watchOf(t, listwatch.Expired, "(a@2) (b@3)", synced(5, 0), "*a@6"),
				watchOf(t, listwatch.Expired, "(a@9)", gone("b", 8), synced(9, 5)),
				watchOf(t, 0, synced(10, 9)),
			},
			"whole, 5 state5, 9 state9", "begin (a@2) (b@3) =5 *a@6 begin (a@9) (b@8) =9 begin =10",
		},
		{
			"cut difference",
			[]scriptedWatch{
				watchOf(t, listwatch.Expired, synced(5, 0)),
				watchOf(t, listwatch.Unavailable, "(a@9)"),
				watchOf(t, 0, synced(9, 5)),
			},
			"whole, 5 state5, 5 state5", "begin =5 begin (a@9) begin =9",
		},
		{
			"the server sends the whole state",
			[]scriptedWatch{
				watchOf(t, listwatch.Expired, synced(5, 0)),
				watchOf(t, listwatch.Expired, "(a@9)", synced(9, 0)),
				watchOf(t, 0, synced(10, 9)),
			},
			"whole, 5 state5, 9 state9", "begin =5 begin (a@9) =9 begin =10",
		},
		{
			"a source that sends no state text",
			[]scriptedWatch{
				watchOf(t, listwatch.Expired, "(a@2) =5"), watchOf(t, 0, "=6"),
			},
			"whole, whole", "begin (a@2) =5 begin =6",
		},
		{
			"a malformed event casts doubt on the state",
			[]scriptedWatch{
				watchOf(t, listwatch.Corrupt, synced(5, 0)), watchOf(t, 0, synced(6, 0)),
			},
			"whole, whole", "begin =5 begin =6",
		},
		{
			"a malformed difference is not requested again",
			[]scriptedWatch{
				watchOf(t, listwatch.Expired, synced(5, 0)),
				watchOf(t, listwatch.Expired, gone("a", 8), "*b@8", synced(9, 5)),
				watchOf(t, 0, synced(9, 0)),
			},
			"whole, 5 state5, whole", "begin =5 begin (a@8) begin =9",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, sink := &scriptedSource{watches: test.watches}, new(recordingSink)
				runFor(t, &Reflector{Source: source, Sink: sink, Differences: true}, time.Hour)
				if diff := cmp.Diff(test.requests, strings.Join(formatSince(source.requests), ", ")); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.takes, strings.Join(sink.received, " ")); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A sink that took a difference for a state would lose objects.
func TestUnrequestedDifferenceIsRejected(t *testing.T) {
	for name, first := range map[string]scriptedWatch{
		"mark": watchOf(t, 0, synced(5, 3)),
		"bad mark": watchOf(t, 0,
			listwatch.NewSynced(listwatch.Description{}, listwatch.State{Version: 5, ID: "s"}, 0)),
		"deleted":       watchOf(t, 0, gone("a", 4)),
		"modified":      watchOf(t, 0, "*a@4"),
		"another since": watchOf(t, 0, synced(6, 4)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				watches := []scriptedWatch{first, watchOf(t, 0, synced(9, 0))}
				want := "begin begin =9"
				switch name {
				case "another since":
					watches = append([]scriptedWatch{watchOf(t, listwatch.Expired, synced(5, 0))}, watches...)
					want = "begin =5 begin begin =9"
				case "bad mark":
					mark := strings.Replace(string(first.events[0].Object.Data), `"listwatch.dev/state":"s"`,
						`"`+listwatch.AnnotationSince+`":7`, 1)
					first.events[0].Object.Data = []byte(mark)
				}
				source, sink := &scriptedSource{watches: watches}, new(recordingSink)
				runFor(t, &Reflector{Source: source, Sink: sink, Differences: true}, time.Hour)
				if got := strings.Join(sink.received, " "); got != want {
					t.Errorf("the sink received %q, want %q", got, want)
				}
			})
		})
	}
}
