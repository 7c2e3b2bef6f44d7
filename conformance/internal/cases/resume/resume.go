package resume

import (
	"errors"
	"net/http"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

func fromRV(e *harness.Env) {
	start := e.Put("a")
	b, a, gone := e.Put("b"), e.Put("a"), e.Delete("b")
	got := e.Dial(harness.From(start)).Want("ADDED b", "MODIFIED a", "DELETED b")
	if want := []listwatch.Version{b, a, gone}; !slices.Equal(harness.Versions(got), want) {
		e.Errorf("got versions %d, want %d", harness.Versions(got), want)
	}
}

// restart reads a history in sessions. Each session uses a new watch and reads at most three
// events.
func restart(e *harness.Env) { resumeOver(e, []*harness.Env{e}) }

// crossTransport is like restart, but uses another variant for each session.
func crossTransport(e *harness.Env) {
	sessions := []*harness.Env{e}
	for _, w := range e.OtherVariants() {
		sessions = append(sessions, e.WithVariant(w))
	}
	resumeOver(e, sessions)
}

// crossReplica is like restart, but alternates between two servers.
func crossReplica(e *harness.Env) { resumeOver(e, []*harness.Env{e, e.WithReplica()}) }

func resumeOver(e *harness.Env, sessions []*harness.Env) {
	at := e.Put("a")
	last := at
	for i := range 12 {
		session := sessions[i%len(sessions)].Dial(harness.From(at))
		last = e.Put("a")
		if i%2 == 0 {
			last = e.Put("b")
		}
		for range 1 + i%3 {
			if at == last {
				break
			}
			// Every version belongs to a write to this collection, so the next event must have
			// the next version.
			if got := session.Next().Version; got != at+1 {
				e.Fatalf("session %d (%s): got version %d after %d", i, session.Variant.Name, got, at)
			}
			at++
		}
		session.Close()
		last = e.Put("c") // while no watch is open
	}
	if s := e.Dial(harness.From(at)); at < last && s.Next().Version != at+1 {
		e.Errorf("the last session did not continue after version %d", at)
	}
}

// serverRestart restarts the server. It must not reuse versions. A watch from an earlier version
// must have no gap if the server still has the history, and must fail with 410 otherwise. A server
// that lost its objects has lost its history, too.
func serverRestart(e *harness.Env) {
	first, last := e.Put("a"), e.Put("b")
	before := e.WatchRaw("").Headers.Get(transport.EpochHeader)
	restarted, keptObjects := e.RestartServer()
	changed := restarted.Put("a")
	if changed <= last {
		e.Errorf("after the restart, version %d was reused: versions up to %d existed before", changed, last)
	}
	for from, next := range map[listwatch.Version]listwatch.Version{first: last, last: changed} {
		w := restarted.Dial(harness.From(from))
		if !keptObjects {
			w.WantError(listwatch.Expired)
			continue
		}
		got, err := w.ReceiveEvent()
		if !errors.Is(err, listwatch.Expired) && (err != nil || got.Version != next) {
			e.Errorf("a watch from version %d after the restart: got %s, want version %d or an error of code Expired",
				from, harness.Got(got, err), next)
		}
	}
	// Kubernetes' protocol has no epoch, so the header is optional.
	after := restarted.WatchRaw("").Headers.Get(transport.EpochHeader)
	if !keptObjects && before != "" && before == after {
		e.Errorf("%s is %q before and after the restart", transport.EpochHeader, before)
	}
}

func lastEventID(e *harness.Env) {
	e.WatchRawIn(harness.SSEMediaType, "") // skips the case if the server has no SSE framing
	a := e.Put("a")
	b := e.Put("b")
	c := e.Put("c")
	resume := func(query string, id listwatch.Version) *harness.Watch {
		return e.DialRequest(query, transport.Request{
			Header: http.Header{"Last-Event-Id": {id.String()}}, Framings: []framing.Framer{framing.SSE{}},
		})
	}
	resume("", a).Want("ADDED b", "ADDED c")
	resume("sendInitialEvents=true&resourceVersionMatch=NotOlderThan", b).Want("ADDED c")
	for _, query := range []string{harness.From(a), harness.From(b), harness.From(c), "resourceVersion=0"} {
		resume(query, b).Want("ADDED c")
	}
	for _, id := range []string{"abc", "0", "-1", "1.5"} {
		e.WatchRaw("", "Last-Event-ID", id).WantRefused(http.StatusBadRequest, "BadRequest")
	}
	// The receiver must return the ID of the last event, because a browser resumes with that ID.
	s := resume("", a)
	w, err := s.Receive()
	if err != nil || w.Version != b {
		e.Fatalf("got an event with ID %d, %v; want %d", w.Version, err, b)
	}
	positioned, ok := s.Receiver.(interface{ LastEventID() string })
	if !ok || positioned.LastEventID() != b.String() {
		e.Error("the receiver does not return the ID of the last event")
	}
}
