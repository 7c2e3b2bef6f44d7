package framing

import (
	"errors"
	"io"
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/wsframe"
	"github.com/listwatch/listwatch/transport"
)

// An ending is one way in which a server can end a stream.
type ending struct {
	name  string
	clean bool
	steps []harness.Step
}

// endingsBetweenEvents returns the ways in which a server can end a stream between two events. A
// reset may discard bytes that the client has not read yet, so a case must first wait until the
// client has read them.
func endingsBetweenEvents(transportName string) []ending {
	all := []ending{
		{"a clean end", true, []harness.Step{harness.EndCleanly}},
		{"the connection is closed", false, []harness.Step{harness.CutConnection}},
		{"the stream is reset", false, []harness.Step{harness.ResetStream}},
	}
	switch transportName {
	case "h1":
		return append(all,
			ending{
				"the connection is closed inside the last chunk", false,
				[]harness.Step{harness.SendBytes("0\r\n"), harness.CutConnection},
			},
			ending{"a chunk without a size", false, []harness.Step{harness.SendBytes("what?\r\n"), harness.StayOpen}})
	case "ws":
		return append(all, ending{"close 1011", false, []harness.Step{harness.CloseWith(wsframe.CloseInternalError)}})
	}
	return all
}

func cleanEndVsAbort(e *harness.Env) {
	for _, end := range endingsBetweenEvents(e.Transport) {
		read := make(chan struct{})
		s := e.StartScript(harness.JSONMediaType, append([]harness.Step{
			harness.SendEvents(harness.EventJSON("ADDED", "a", "5")), harness.WaitFor(read),
		}, end.steps...)...).Dial("")
		s.Want("ADDED a")
		close(read)
		w, err := s.Receive()
		fault, isError := errors.AsType[*listwatch.Error](err)
		switch {
		case err == nil:
			e.Errorf("%s: got %s", end.name, harness.GotRaw(w, err))
		case end.clean && err != io.EOF:
			e.Errorf("%s: got %s, want a clean end", end.name, harness.GotError(err))
		case !end.clean && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
			e.Errorf("%s: got %s, want an error that is neither a clean end nor a truncated event", end.name,
				harness.GotError(err))
		case !end.clean && (!isError || fault.Code != listwatch.Unavailable && fault.Code != listwatch.Corrupt):
			e.Errorf("%s: got %s, want an error of code Unavailable or Corrupt", end.name, harness.GotError(err))
		}
	}
}

// halfEvent is the first half of an event.
const halfEvent = `{"type":"MODIFIED","object":{"metadata":{"name":"c","resourceVers`

// endingsInsideEvent returns the ways in which a server can end a stream after it has sent
// half an event.
func endingsInsideEvent(transportName string) []ending {
	all := []ending{{"a clean end", true, []harness.Step{harness.SendPieces(halfEvent), harness.EndCleanly}}}
	fragment, message := wsframe.Frame{
		First: wsframe.OpText, Payload: []byte(halfEvent),
	}, wsframe.Unfragmented(wsframe.OpText, halfEvent).Bytes()
	switch transportName {
	case "h1":
		return append(all,
			ending{
				"the connection is closed", false, []harness.Step{harness.SendPieces(halfEvent), harness.CutConnection},
			},
			ending{
				"the connection is closed inside a chunk", false,
				[]harness.Step{harness.SendBytes("ff\r\n" + halfEvent), harness.CutConnection},
			})
	case "ws":
		return append(all,
			ending{
				"the connection is closed", false, []harness.Step{harness.SendPieces(halfEvent), harness.CutConnection},
			},
			ending{
				"the connection is closed inside a frame", false,
				[]harness.Step{harness.SendBytes(string(message[:len(message)-3])), harness.CutConnection},
			},
			ending{
				"the connection is closed between two fragments", false,
				[]harness.Step{harness.SendFrames(fragment), harness.CutConnection},
			})
	}
	return append(all,
		ending{"the stream is reset", false, []harness.Step{harness.SendPieces(halfEvent), harness.ResetStream}})
}

func truncatedFinal(e *harness.Env) {
	a, b, c := harness.EventJSON("ADDED", "a", "5"), harness.EventJSON("ADDED", "b", "6"), harness.EventJSON("MODIFIED",
		"c", "7")
	for _, end := range endingsInsideEvent(e.Transport) {
		read := make(chan struct{})
		s := e.StartScript(harness.JSONMediaType, append([]harness.Step{
			harness.SendEvents(a, b), harness.WaitFor(read),
		}, end.steps...)...).Dial("")
		s.Want("ADDED a", "ADDED b")
		close(read)
		for range 2 {
			w, err := s.Receive()
			switch {
			case errors.Is(err, io.ErrUnexpectedEOF) && err != io.EOF:
			case e.Target.OwnClock && !end.clean && err != nil && err != io.EOF:
				// Some HTTP libraries, such as the JDK's, drop the bytes that they have already
				// read of a broken response.
			default:
				e.Errorf("%s: got %s, want an error that reports a truncated event (in the control hook: within)",
					end.name, harness.GotRaw(w, err))
			}
		}
		cut := append([]harness.Step{harness.SendEvents(a, b)}, end.steps...)
		checkResume(e, end.name, cut, []string{a, b, c})
	}
}

// checkResume runs a client against a server that performs the steps in cut on the first
// connection. The client must reconnect and receive all given events. Their versions are 5, 6 and
// so on. The client must not resume from the version of the last event, because the steps send only
// a part of that event.
func checkResume(e *harness.Env, name string, cut []harness.Step, events []string) {
	e.Helper()
	rest := func(p *harness.ScriptedServer) {
		version, err := listwatch.ParseVersion(p.Request.URL.Query().Get("resourceVersion"))
		if last := listwatch.Version(5 + len(events) - 1); err != nil || version < 4 || version >= last {
			e.Errorf("%s: the client resumes with %s, want a version before the truncated event, %d", name,
				p.Request.URL.RawQuery, last)
			version = 4
		}
		harness.SendEvents(events[version-4:]...)(p)
	}
	_, at := e.ServeSequence(e.Scripted(harness.JSONMediaType, cut...),
		e.Scripted(harness.JSONMediaType, rest, harness.StayOpen))
	w := e.Follow(e.Remote(at), 4)
	defer w.Close()
	for i, want := range events {
		got, err := e.NextOf(w)
		if err != nil || got.Version != listwatch.Version(5+i) {
			e.Fatalf("%s: got %s as event %d, want %s", name, harness.Got(got, err), i, want)
		}
	}
}

// sse204 runs a client against a server that sends one event and responds to the next
// request with 204.
func sse204(e *harness.Env) {
	event := "id: 5\nevent: ADDED\ndata: " + harness.EventJSON("ADDED", "a", "5") + "\n\n"
	script, at := e.ServeSequence(e.Scripted(harness.SSEMediaType, harness.SendPieces(event), harness.EndCleanly),
		harness.Respond(http.StatusNoContent, ""),
		e.Scripted(harness.SSEMediaType, harness.SendPieces(event), harness.StayOpen))
	w := e.Follow(e.RemoteWith(at, useSSE), 4)
	if got, err := e.NextOf(w); err != nil || harness.EventLine(got) != "ADDED a" {
		e.Fatalf("got %s, want ADDED a", harness.Got(got, err))
	}
	for range 3 {
		if got, err := e.NextOf(w); err != io.EOF {
			e.Fatalf("got %s after 204, want a clean end", harness.Got(got, err))
		}
	}
	if n := len(script.RequestTimes()); n != 2 {
		e.Errorf("the client made %d requests, want 2", n)
	}
	_, at = e.ServeSequence(harness.Respond(http.StatusNoContent, ""))
	if _, err := at.Client.Dial(e.Context(), &transport.Request{
		URL: at.WatchURL("watch=1"), Framings: sseOnly,
	}); listwatch.AsError(err).Status != http.StatusNoContent {
		e.Errorf("dial: got %v, want an error with status 204", err)
	}
}
