package framing

import (
	"errors"
	"io"
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/wsframe"
	"github.com/listwatch/listwatch/transport"
)

// An ending is one way in which a stream stops.
type ending struct {
	name  string
	clean bool
	do    []harness.Step
}

// endings are those between two events. What a reset overtakes is lost, so it must come when everything before has been read.
func endings(on string) []ending {
	all := []ending{
		{"a clean end", true, []harness.Step{harness.EndCleanly}},
		{"the connection is closed", false, []harness.Step{harness.CutConnection}},
		{"the stream is reset", false, []harness.Step{harness.ResetStream}},
	}
	switch on {
	case "h1":
		return append(all,
			ending{"the connection is closed within the last chunk", false, []harness.Step{harness.SendBytes("0\r\n"), harness.CutConnection}},
			ending{"a chunk without a size", false, []harness.Step{harness.SendBytes("what?\r\n"), harness.StayOpen}})
	case "ws":
		return append(all, ending{"close 1011", false, []harness.Step{harness.CloseWith(wsframe.CloseInternalError)}})
	}
	return all
}

func cleanEndVsAbort(e *harness.Env) {
	for _, end := range endings(e.Transport) {
		read := make(chan struct{})
		s := e.StartScript(harness.JSONMediaType, append([]harness.Step{harness.SendPieces(harness.EventJSON("ADDED", "a", "5")), harness.WaitFor(read)}, end.do...)...).Dial("")
		s.Want("ADDED a")
		close(read)
		w, err := s.Receive()
		fault, isError := errors.AsType[*listwatch.Error](err)
		switch {
		case err == nil:
			e.Errorf("%s: got %s %s", end.name, w.Type, w.Object)
		case end.clean && err != io.EOF:
			e.Errorf("%s: got %v, want io.EOF", end.name, err)
		case !end.clean && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
			e.Errorf("%s: got %v, which says that the stream is complete, or that an event is not", end.name, err)
		case !end.clean && (!isError || fault.Code != listwatch.Unavailable && fault.Code != listwatch.Corrupt):
			e.Errorf("%s: got %v, want an error of code Unavailable or Corrupt", end.name, err)
		}
	}
}

// half is the beginning of an event.
const half = `{"type":"MODIFIED","object":{"metadata":{"name":"c","resourceVers`

// endingsWithin are those within an event, of which half has been sent.
func endingsWithin(on string) []ending {
	all := []ending{{"a clean end", true, []harness.Step{harness.SendPieces(half), harness.EndCleanly}}}
	fragment, message := wsframe.Frame{First: wsframe.OpText, Payload: []byte(half)}, wsframe.Whole(wsframe.OpText, half).Bytes()
	switch on {
	case "h1":
		return append(all,
			ending{"the connection is closed", false, []harness.Step{harness.SendPieces(half), harness.CutConnection}},
			ending{"the connection is closed within a chunk", false, []harness.Step{harness.SendBytes("ff\r\n" + half), harness.CutConnection}})
	case "ws":
		return append(all,
			ending{"the connection is closed", false, []harness.Step{harness.SendPieces(half), harness.CutConnection}},
			ending{"the connection is closed within a frame", false, []harness.Step{harness.SendBytes(string(message[:len(message)-3])), harness.CutConnection}},
			ending{"the connection is closed between two fragments", false, []harness.Step{harness.SendFrames(fragment), harness.CutConnection}})
	}
	return append(all, ending{"the stream is reset", false, []harness.Step{harness.SendPieces(half), harness.ResetStream}})
}

func truncatedFinal(e *harness.Env) {
	a, b, c := harness.EventJSON("ADDED", "a", "5"), harness.EventJSON("ADDED", "b", "6"), harness.EventJSON("MODIFIED", "c", "7")
	for _, end := range endingsWithin(e.Transport) {
		cut := append([]harness.Step{harness.SendPieces(a, b)}, end.do...)
		s := e.StartScript(harness.JSONMediaType, cut...).Dial("")
		s.Want("ADDED a", "ADDED b")
		for range 2 {
			if w, err := s.Receive(); !errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
				e.Errorf("%s: got %s %s, %v; want an error that says that the event was cut", end.name, w.Type, w.Object, err)
			}
		}
		resumesBefore(e, end.name, cut, []string{a, b, c})
	}
}

// resumesBefore plays cut to a client that comes back, and then the rest of events, whose versions are 5, 6 and so on.
func resumesBefore(e *harness.Env, name string, cut []harness.Step, events []string) {
	e.Helper()
	rest := func(p *harness.ScriptedServer) {
		asked, err := listwatch.ParseVersion(p.Request.URL.Query().Get("resourceVersion"))
		if last := listwatch.Version(5 + len(events) - 1); err != nil || asked < 4 || asked >= last {
			e.Errorf("%s: the client comes back with %s; version %d was never whole", name, p.Request.URL.RawQuery, last)
			asked = 4
		}
		harness.SendPieces(events[asked-4:]...)(p)
	}
	_, at := e.ServeInTurn(e.Scripted(harness.JSONMediaType, cut...), e.Scripted(harness.JSONMediaType, rest, harness.StayOpen))
	w := e.Follow(e.Remote(at), 4)
	defer w.Close()
	for i, want := range events {
		got, err := e.NextOf(w)
		if err != nil || got.Version != listwatch.Version(5+i) {
			e.Fatalf("%s: event %d is one at %d, %v; want %s", name, i, got.Version, err, want)
		}
	}
}

// sse204 has a server that sends an event and then has nothing any more.
func sse204(e *harness.Env) {
	event := "id: 5\nevent: ADDED\ndata: " + harness.EventJSON("ADDED", "a", "5") + "\n\n"
	script, at := e.ServeInTurn(e.Scripted(harness.SSEMediaType, harness.SendPieces(event), harness.EndCleanly), harness.Respond(http.StatusNoContent, ""), e.Scripted(harness.SSEMediaType, harness.SendPieces(event), harness.StayOpen))
	w := e.Follow(e.RemoteWith(at, inSSE), 4)
	if got, err := e.NextOf(w); err != nil || harness.Line(got) != "ADDED a" {
		e.Fatalf("got an event at %d, %v; want ADDED a", got.Version, err)
	}
	for range 3 {
		if got, err := e.NextOf(w); err != io.EOF {
			e.Fatalf("got an event at %d, %v after 204; want the end", got.Version, err)
		}
	}
	if n := len(script.RequestTimes()); n != 2 {
		e.Errorf("the client asked %d times, want twice", n)
	}
	_, at = e.ServeInTurn(harness.Respond(http.StatusNoContent, ""))
	if _, err := at.Client.Dial(e.Context(), &transport.Request{URL: at.WatchURL("watch=1"), Framings: sseOnly}); listwatch.AsError(err).Status != http.StatusNoContent {
		e.Errorf("dial: got %v, want to be told to stop", err)
	}
}
