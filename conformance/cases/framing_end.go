package cases

import (
	"errors"
	"io"
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// An ending is one way in which a stream stops.
type ending struct {
	name  string
	clean bool
	do    []part
}

// endings are those between two events. What a reset overtakes is lost, so it must come when everything before has been read.
func endings(on string) []ending {
	all := []ending{
		{"a clean end", true, []part{ends}},
		{"the connection is closed", false, []part{cuts}},
		{"the stream is reset", false, []part{resets}},
	}
	switch on {
	case "h1":
		return append(all,
			ending{"the connection is closed within the last chunk", false, []part{raws("0\r\n"), cuts}},
			ending{"a chunk without a size", false, []part{raws("what?\r\n"), stays}})
	case "ws":
		return append(all, ending{"close 1011", false, []part{closes(closedInternal)}})
	}
	return all
}

func cleanEndVsAbort(e *env) {
	for _, end := range endings(e.on) {
		read := make(chan struct{})
		s := e.hand(jsonType, append([]part{pieces(tiny("ADDED", "a", "5")), after(read)}, end.do...)...).dial("")
		s.want("ADDED a")
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
	all := []ending{{"a clean end", true, []part{pieces(half), ends}}}
	fragment, message := wsFrame{first: opText, payload: []byte(half)}, whole(opText, half).bytes()
	switch on {
	case "h1":
		return append(all,
			ending{"the connection is closed", false, []part{pieces(half), cuts}},
			ending{"the connection is closed within a chunk", false, []part{raws("ff\r\n" + half), cuts}})
	case "ws":
		return append(all,
			ending{"the connection is closed", false, []part{pieces(half), cuts}},
			ending{"the connection is closed within a frame", false, []part{raws(string(message[:len(message)-3])), cuts}},
			ending{"the connection is closed between two fragments", false, []part{frames(fragment), cuts}})
	}
	return append(all, ending{"the stream is reset", false, []part{pieces(half), resets}})
}

func truncatedFinal(e *env) {
	a, b, c := tiny("ADDED", "a", "5"), tiny("ADDED", "b", "6"), tiny("MODIFIED", "c", "7")
	for _, end := range endingsWithin(e.on) {
		cut := append([]part{pieces(a, b)}, end.do...)
		s := e.hand(jsonType, cut...).dial("")
		s.want("ADDED a", "ADDED b")
		for range 2 {
			if w, err := s.Receive(); !errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
				e.Errorf("%s: got %s %s, %v; want an error that says that the event was cut", end.name, w.Type, w.Object, err)
			}
		}
		e.resumesBefore(end.name, cut, []string{a, b, c})
	}
}

// resumesBefore plays cut to a client that comes back, and then the rest of events, whose versions are 5, 6 and so on.
func (e *env) resumesBefore(name string, cut []part, events []string) {
	e.Helper()
	rest := func(p *peer) {
		asked, err := listwatch.ParseVersion(p.request.URL.Query().Get("resourceVersion"))
		if last := listwatch.Version(5 + len(events) - 1); err != nil || asked < 4 || asked >= last {
			e.Errorf("%s: the client comes back with %s; version %d was never whole", name, p.request.URL.RawQuery, last)
			asked = 4
		}
		pieces(events[asked-4:]...)(p)
	}
	_, at := e.play(e.byHand(jsonType, cut...), e.byHand(jsonType, rest, stays))
	w := e.follow(e.remote(at), 4)
	defer w.Close()
	for i, want := range events {
		got, err := e.nextOf(w)
		if err != nil || got.Version != listwatch.Version(5+i) {
			e.Fatalf("%s: event %d is one at %d, %v; want %s", name, i, got.Version, err, want)
		}
	}
}

// sse204 has a server that sends an event and then has nothing any more.
func sse204(e *env) {
	event := "id: 5\nevent: ADDED\ndata: " + tiny("ADDED", "a", "5") + "\n\n"
	script, at := e.play(e.byHand(sseType, pieces(event), ends), says(http.StatusNoContent, ""), e.byHand(sseType, pieces(event), stays))
	w := e.follow(e.remoteWith(at, inSSE), 4)
	if got, err := e.nextOf(w); err != nil || line(got) != "ADDED a" {
		e.Fatalf("got an event at %d, %v; want ADDED a", got.Version, err)
	}
	for range 3 {
		if got, err := e.nextOf(w); err != io.EOF {
			e.Fatalf("got an event at %d, %v after 204; want the end", got.Version, err)
		}
	}
	if n := len(script.times()); n != 2 {
		e.Errorf("the client asked %d times, want twice", n)
	}
	_, at = e.play(says(http.StatusNoContent, ""))
	if _, err := at.client.Dial(e.Context(), &transport.Request{URL: at.watched("watch=1"), Framings: sseOnly}); listwatch.AsError(err).Status != http.StatusNoContent {
		e.Errorf("dial: got %v, want to be told to stop", err)
	}
}
