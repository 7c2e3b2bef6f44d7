package resume

import (
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

// serverRestart simulates the restart of a server whose store is in memory: it loses all data, must
// not reuse versions, and must answer 410 to a watch from an earlier version.
func serverRestart(e *harness.Env) {
	first, last := e.Put("a"), e.Put("b")
	other := e.WithNewCollection() // stands for the restarted server
	if v := other.Put("a"); v <= last {
		e.Errorf("after the restart, version %d was reused: versions up to %d existed before", v, last)
	}
	for _, v := range []listwatch.Version{first, last} {
		other.Dial(harness.From(v)).WantError(listwatch.Expired)
	}
	// Kubernetes' protocol has no epoch, so the header is optional.
	before, after := e.WatchRaw("").Headers, other.WatchRaw("").Headers
	if epoch := before.Get(transport.EpochHeader); epoch != "" && epoch == after.Get(transport.EpochHeader) {
		e.Errorf("%s is %q before and after the restart", transport.EpochHeader, epoch)
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
