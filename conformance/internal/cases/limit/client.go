package limit

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/wsframe"
	"github.com/listwatch/listwatch/transport"
)

const (
	// smallLimit is the limit of a client for one event. The cases send larger events.
	smallLimit = 64 << 10
	// maxRead is the number of bytes that the client may read before it rejects the event. It
	// exceeds smallLimit, because the client reads into buffers and opens flow-control windows.
	maxRead = 16 << 20
	// firstBytes is the number of bytes after which the server pauses, so that the client can close
	// the stream. Without the pause, the bytes in the buffers of the kernel, which may exceed
	// maxRead, would count as read.
	firstBytes = 1 << 20
	// sentBytes is the number of bytes that the server sends to a client that does not close
	// the stream.
	sentBytes = 64 << 20
)

// eventStart is the start of an event, up to the text of its object.
const eventStart = `{"type":"ADDED","object":{"kind":"Thing","apiVersion":"v1",` +
	`"metadata":{"name":"a","resourceVersion":"5"},"text":"`

func eventTooBigClient(e *harness.Env) {
	block := strings.Repeat("0123456789abcdef", 4<<10)
	at, conns := e.StartScript(harness.JSONMediaType, sendUnfinishedEvent(eventStart, block)).WithConnections()
	s := at.DialRequest("", transport.Request{Limit: smallLimit})
	wantEventRejected(e, "an event of 64 MiB", s)
	s.Close()
	if n := conns.MaxBytesRead(); n > maxRead {
		e.Errorf("the client read %d bytes, with a limit of %d", n, smallLimit)
	}

	complete := e.StartScript(harness.JSONMediaType,
		harness.SendPieces(eventStart+block+block+`"}}`+"\n"), harness.EndCleanly)
	wantEventRejected(e, "an event twice the limit", complete.DialRequest("", transport.Request{Limit: smallLimit}))
	if got := string(complete.DialRequest("",
		transport.Request{Limit: 4 * len(block)}).Want("ADDED a")[0].Object.Data); !strings.HasSuffix(got, block+`"}`) {
		e.Errorf("an event within the limit: got an object of %d bytes, want the object as sent", len(got))
	}
	w := e.Follow(complete.RemoteWith(complete.Route, func(r *client.Remote) { r.MaxObjectBytes = smallLimit }), 1)
	if got, err := e.NextOf(w); !errors.Is(err, listwatch.Corrupt) {
		e.Errorf("a client that resumes: got %s, want an error of code Corrupt", harness.Got(got, err))
	}
}

// wantEventRejected checks that the client rejects the next event of s with an error of code
// Corrupt.
func wantEventRejected(e *harness.Env, name string, s *harness.Watch) {
	e.Helper()
	w, err := s.Receive()
	if err == nil {
		_, err = w.Event()
	}
	if !errors.Is(err, listwatch.Corrupt) {
		e.Errorf("%s: got %s, want an error of code Corrupt", name, harness.GotRaw(w, err))
	}
}

// sendUnfinishedEvent returns a step that sends an event without its end: beginning, followed by
// copies of block. The step sends firstBytes and then waits for half of Patience, which ends before
// the case gives up. If the client has not closed the stream by then, the step sends the rest of
// sentBytes. Over WebSocket, the step sends one message with one fragment per block.
func sendUnfinishedEvent(beginning, block string) harness.Step {
	return func(p *harness.ScriptedServer) {
		sendBlock := func() { p.Send(block) } // the client may have closed the connection
		if p.Transport == "ws" {
			more := string(wsframe.Frame{First: wsframe.OpContinuation, Payload: []byte(block)}.Bytes())
			sendBlock = func() { p.SendRaw(more) }
			p.SendFrame(wsframe.Frame{First: wsframe.OpText, Payload: []byte(beginning)})
		} else {
			p.Send(beginning)
		}
		for range firstBytes / len(block) {
			sendBlock()
		}
		if closedWithin(p, p.Patience()/2) {
			return
		}
		for range (sentBytes - firstBytes) / len(block) {
			sendBlock()
		}
	}
}

// closedWithin waits at most d for the client to close the stream, and reports whether it did.
func closedWithin(p *harness.ScriptedServer, d time.Duration) bool {
	if p.Transport == "h2" {
		select {
		case <-p.Request.Context().Done():
			return true
		case <-time.After(d):
			return false
		}
	}
	_ = p.Conn.SetReadDeadline(time.Now().Add(d)) // fails if the connection is already closed
	var err error
	if p.Transport == "ws" {
		_, err = wsframe.ReadCloseCode(p.In)
	} else {
		_, err = io.Copy(io.Discard, p.In)
	}
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// nestedValues returns deeply nested JSON values.
func nestedValues() map[string]string {
	const depth = 100_000
	return map[string]string{
		"arrays":          strings.Repeat("[", depth) + strings.Repeat("]", depth),
		"objects":         strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth),
		"both":            strings.Repeat(`[{"a":`, depth) + "1" + strings.Repeat("}]", depth),
		"unclosed arrays": strings.Repeat("[", depth),
	}
}

func jsonDepth(e *harness.Env) {
	for name, value := range nestedValues() {
		object := `{"kind":"Thing","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"5"},"deep":` + value + `}`
		scripted := e.StartScript(harness.JSONMediaType,
			harness.SendPieces(`{"type":"ADDED","object":`+object+"}\n"), harness.EndCleanly)
		wantEventRejected(e, name, scripted.Dial(""))

		list := `{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[` + object + `]}`
		_, at := e.ServeSequence(harness.Respond(http.StatusOK, list, "Content-Type", harness.JSONMediaType))
		_, err := e.Remote(at).List(e.Context(), listwatch.Query{})
		if !harness.IsMissing(err) && !errors.Is(err, listwatch.Corrupt) {
			e.Errorf("%s in a list: got %v, want an error of code Corrupt", name, err)
		}
	}
}

// maxRedirects is the number of redirects that a client follows.
const maxRedirects = 10

func redirect(e *harness.Env) {
	checkRedirects(e, http.Header{"Authorization": {"Bearer secret"}, "Cookie": {"a=b"}})
	checkRedirectLimit(e)
}

func redirectHeaders(e *harness.Env) { checkRedirects(e, http.Header{"X-Private": {"c"}}) }

// checkRedirects checks that the client follows redirects, with the headers in secret to the same
// host, and without them to another host.
func checkRedirects(e *harness.Env, secret http.Header) {
	e.Helper()
	got := make(chan http.Header, 1)
	record := func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Clone()
		e.SendThenEnd(harness.AddedEvent("a", "5"))(w, r)
	}
	for _, code := range []int{301, 302, 303, 307, 308} {
		other := e.Serve(http.HandlerFunc(record))
		away := redirectHandler(code, func(*http.Request) string { return other.WatchURL("watch=1").String() })
		home := e.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/away":
				away(w, r)
			case "/home":
				record(w, r)
			default:
				redirectHandler(code, func(r *http.Request) string {
					return "/" + r.URL.Query().Get("to") + "?watch=1"
				})(w, r)
			}
		}))
		for to, wantKept := range map[string]bool{"home": true, "away": false} {
			s, err := e.WithRoute(home).TryDial("to="+to, transport.Request{Header: secret.Clone()})
			if e.Transport == "ws" {
				if err == nil {
					e.Errorf("status %d: the client followed a redirect of its WebSocket handshake", code)
				}
				continue
			}
			if err != nil {
				e.Fatalf("a redirect with status %d to %s: got error %v, want the watch at the new location", code, to,
					err)
			}
			s.Want("ADDED a")
			h := <-got
			for name := range secret {
				if has := h.Get(name) != ""; has != wantKept {
					e.Errorf("a redirect with status %d to %s: the new request has %s: %v, want %v",
						code, to, name, has, wantKept)
				}
			}
		}
	}
}

// checkRedirectLimit checks that the client stops following a server whose redirects never
// end.
func checkRedirectLimit(e *harness.Env) {
	script, at := e.ServeSequence(redirectHandler(http.StatusTemporaryRedirect, func(r *http.Request) string {
		return fmt.Sprintf("/things?watch=1&hop=%sx", r.URL.Query().Get("hop"))
	}))
	if _, err := e.WithRoute(at).TryDial("", transport.Request{}); listwatch.AsError(err) == nil {
		e.Errorf("endless redirects: got %v, want an error", err)
	}
	want := maxRedirects + 1
	if e.Transport == "ws" {
		want = 1
	}
	if n := len(script.RequestTimes()); n > want {
		e.Errorf("endless redirects: the client made %d requests, want at most %d", n, want)
	}
}

// redirectHandler returns a handler that redirects each request to the URL returned by to.
func redirectHandler(code int, to func(r *http.Request) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", to(r))
		w.WriteHeader(code)
	}
}
