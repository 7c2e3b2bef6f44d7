package limit

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/wsframe"
	"github.com/listwatch/listwatch/transport"
)

const (
	// smallLimit is how many bytes a client takes for one event, in cases where it gets more.
	smallLimit = 64 << 10
	// mostRead is how much it may read before it gives up: buffers and the window of a stream come on top.
	mostRead = 16 << 20
	// muchMore is what it is sent.
	muchMore = 64 << 20
)

// endless is the beginning of an event that goes on for ever.
const endless = `{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"5"},"text":"`

func eventTooBigClient(e *harness.Env) {
	block := strings.Repeat("0123456789abcdef", 4<<10)
	at, wires := e.StartScript(harness.JSONMediaType, pours(endless, block, muchMore/len(block))).WithConnections()
	s := at.DialRequest("", transport.Request{Limit: smallLimit})
	refusedEvent(e, "an event of 64 MiB", s)
	s.Close()
	if n := wires.Last().BytesRead(); n > mostRead {
		e.Errorf("the client read %d bytes, with a limit of %d", n, smallLimit)
	}

	whole := e.StartScript(harness.JSONMediaType, harness.SendPieces(endless+block+block+`"}}`+"\n"), harness.EndCleanly)
	refusedEvent(e, "an event twice the limit", whole.DialRequest("", transport.Request{Limit: smallLimit}))
	if got := string(whole.DialRequest("", transport.Request{Limit: 4 * len(block)}).Want("ADDED a")[0].Object.Data); !strings.HasSuffix(got, block+`"}`) {
		e.Errorf("an event within the limit: got %d bytes", len(got))
	}
	w := e.Follow(whole.RemoteWith(whole.Route, func(r *client.Remote) { r.MaxObjectBytes = smallLimit }), 1)
	if got, err := e.NextOf(w); !errors.Is(err, listwatch.Corrupt) {
		e.Errorf("the client that resumes: got %v, %v; want an error of code Corrupt", got, err)
	}
}

// refusedEvent says that the client gives s up, with an error that tells the server's fault.
func refusedEvent(e *harness.Env, what string, s *harness.Watch) {
	e.Helper()
	w, err := s.Receive()
	if err == nil {
		_, err = w.Event()
	}
	if !errors.Is(err, listwatch.Corrupt) {
		got := "nothing"
		if w.Type != "" {
			got = fmt.Sprintf("%s %.100s", w.Type, w.Object)
		}
		e.Errorf("%s: got %s, and the error %v; want an error of code Corrupt", what, got, err)
	}
}

// pours is a part: one event, or message, made of a beginning and a number of equal blocks.
func pours(beginning, block string, blocks int) harness.Step {
	return func(p *harness.ScriptedServer) {
		if p.Transport != "ws" {
			p.Send(beginning)
			for range blocks {
				p.Send(block) // the client may have left
			}
			return
		}
		p.SendFrame(wsframe.Frame{First: wsframe.OpText, Payload: []byte(beginning)})
		more := string(wsframe.Frame{First: wsframe.OpContinuation, Payload: []byte(block)}.Bytes())
		for range blocks {
			p.SendRaw(more)
		}
	}
}

// nestings are values that take a parser deep down.
func nestings() map[string]string {
	const depth = 100_000
	return map[string]string{
		"arrays":             strings.Repeat("[", depth) + strings.Repeat("]", depth),
		"objects":            strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth),
		"both":               strings.Repeat(`[{"a":`, depth) + "1" + strings.Repeat("}]", depth),
		"arrays without end": strings.Repeat("[", depth),
	}
}

func jsonDepth(e *harness.Env) {
	for what, deep := range nestings() {
		object := `{"metadata":{"name":"a","resourceVersion":"5"},"deep":` + deep + `}`
		played := e.StartScript(harness.JSONMediaType, harness.SendPieces(`{"type":"ADDED","object":`+object+"}\n"), harness.EndCleanly)
		refusedEvent(e, what, played.Dial(""))

		list := `{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[` + object + `]}`
		_, at := e.ServeInTurn(harness.Respond(http.StatusOK, list, "Content-Type", harness.JSONMediaType))
		if _, err := e.Remote(at).List(e.Context(), listwatch.Query{}); !errors.Is(err, listwatch.Corrupt) {
			e.Errorf("%s in a list: got %v, want an error of code Corrupt", what, err)
		}
	}
}

// maxRedirects is how many a client follows.
const maxRedirects = 10

func redirect(e *harness.Env) {
	secret := http.Header{"Authorization": {"Bearer secret"}, "Cookie": {"a=b"}, "X-Private": {"c"}}
	got := make(chan http.Header, 1)
	records := func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Clone()
		e.SendThenEnd(harness.AddedEvent("a", "5"))(w, r)
	}
	for _, code := range []int{301, 302, 303, 307, 308} {
		elsewhere := e.Serve(http.HandlerFunc(records))
		away := leads(code, func(*http.Request) string { return elsewhere.WatchURL("watch=1").String() })
		home := e.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/away":
				away(w, r)
			case "/home":
				records(w, r)
			default:
				leads(code, func(r *http.Request) string { return "/" + r.URL.Query().Get("to") + "?watch=1" })(w, r)
			}
		}))
		for to, kept := range map[string]bool{"home": true, "away": false} {
			s, err := e.Via(home).TryDial("to="+to, transport.Request{Header: secret.Clone()})
			if e.Transport == "ws" {
				if err == nil {
					e.Errorf("%d: the client followed a redirect of its handshake", code)
				}
				continue
			}
			if err != nil {
				e.Fatalf("a redirect of status %d to %s: got the error %v, want the watch behind it", code, to, err)
			}
			s.Want("ADDED a")
			h := <-got
			for name := range secret {
				if has := h.Get(name) != ""; has != kept {
					e.Errorf("%d to %s: the request has %s: %v, want %v", code, to, name, has, kept)
				}
			}
		}
	}
	endlessly(e)
}

// endlessly has a server that leads around in a circle.
func endlessly(e *harness.Env) {
	script, at := e.ServeInTurn(leads(http.StatusTemporaryRedirect, func(r *http.Request) string {
		return fmt.Sprintf("/things?watch=1&hop=%sx", r.URL.Query().Get("hop"))
	}))
	if _, err := e.Via(at).TryDial("", transport.Request{}); listwatch.AsError(err) == nil {
		e.Errorf("redirects without end: got %v, want an error with a code", err)
	}
	want := maxRedirects + 1
	if e.Transport == "ws" {
		want = 1
	}
	if n := len(script.RequestTimes()); n > want {
		e.Errorf("redirects without end: the client made %d requests, want %d at most", n, want)
	}
}

// leads is a step: a redirect.
func leads(code int, to func(r *http.Request) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", to(r))
		w.WriteHeader(code)
	}
}
