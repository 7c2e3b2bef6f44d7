package cases

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
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

func eventTooBigClient(e *env) {
	block := strings.Repeat("0123456789abcdef", 4<<10)
	at, wires := e.hand(jsonType, pours(endless, block, muchMore/len(block))).wired()
	s := at.dialAs("", transport.Request{Limit: smallLimit})
	e.refusedEvent("an event of 64 MiB", s)
	s.Close()
	if n := wires.last().taken(); n > mostRead {
		e.Errorf("the client read %d bytes, with a limit of %d", n, smallLimit)
	}

	whole := e.hand(jsonType, pieces(endless+block+block+`"}}`+"\n"), ends)
	e.refusedEvent("an event twice the limit", whole.dialAs("", transport.Request{Limit: smallLimit}))
	if got := string(whole.dialAs("", transport.Request{Limit: 4 * len(block)}).want("ADDED a")[0].Object.Data); !strings.HasSuffix(got, block+`"}`) {
		e.Errorf("an event within the limit: got %d bytes", len(got))
	}
	w := e.follow(whole.remoteWith(whole.site, func(r *client.Remote) { r.MaxObjectBytes = smallLimit }), 1)
	if got, err := e.nextOf(w); !errors.Is(err, listwatch.Corrupt) {
		e.Errorf("the client that resumes: got %v, %v; want an error of code Corrupt", got, err)
	}
}

// refusedEvent says that the client gives s up, with an error that tells the server's fault.
func (e *env) refusedEvent(what string, s *stream) {
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
func pours(beginning, block string, blocks int) part {
	return func(p *peer) {
		if p.on != "ws" {
			p.send(beginning)
			for range blocks {
				p.send(block) // the client may have left
			}
			return
		}
		p.frame(wsFrame{first: opText, payload: []byte(beginning)})
		more := string(wsFrame{first: opContinuation, payload: []byte(block)}.bytes())
		for range blocks {
			p.raw(more)
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

func jsonDepth(e *env) {
	for what, deep := range nestings() {
		object := `{"metadata":{"name":"a","resourceVersion":"5"},"deep":` + deep + `}`
		played := e.hand(jsonType, pieces(`{"type":"ADDED","object":`+object+"}\n"), ends)
		e.refusedEvent(what, played.dial(""))

		list := `{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[` + object + `]}`
		_, at := e.play(says(http.StatusOK, list, "Content-Type", jsonType))
		if _, err := e.remote(at).List(e.Context(), listwatch.Query{}); !errors.Is(err, listwatch.Corrupt) {
			e.Errorf("%s in a list: got %v, want an error of code Corrupt", what, err)
		}
	}
}

// maxRedirects is how many a client follows.
const maxRedirects = 10

func redirect(e *env) {
	secret := http.Header{"Authorization": {"Bearer secret"}, "Cookie": {"a=b"}, "X-Private": {"c"}}
	got := make(chan http.Header, 1)
	records := func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Clone()
		e.sends(added("a", "5"))(w, r)
	}
	for _, code := range []int{301, 302, 303, 307, 308} {
		elsewhere := e.open(http.HandlerFunc(records))
		away := leads(code, func(*http.Request) string { return elsewhere.watched("watch=1").String() })
		home := e.open(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
			s, err := e.at(home).tryDial("to="+to, transport.Request{Header: secret.Clone()})
			if e.on == "ws" {
				if err == nil {
					e.Errorf("%d: the client followed a redirect of its handshake", code)
				}
				continue
			}
			if err != nil {
				e.Fatalf("a redirect of status %d to %s: got the error %v, want the watch behind it", code, to, err)
			}
			s.want("ADDED a")
			h := <-got
			for name := range secret {
				if has := h.Get(name) != ""; has != kept {
					e.Errorf("%d to %s: the request has %s: %v, want %v", code, to, name, has, kept)
				}
			}
		}
	}
	e.endlessly()
}

// endlessly has a server that leads around in a circle.
func (e *env) endlessly() {
	script, at := e.play(leads(http.StatusTemporaryRedirect, func(r *http.Request) string {
		return fmt.Sprintf("/things?watch=1&hop=%sx", r.URL.Query().Get("hop"))
	}))
	if _, err := e.at(at).tryDial("", transport.Request{}); listwatch.AsError(err) == nil {
		e.Errorf("redirects without end: got %v, want an error with a code", err)
	}
	want := maxRedirects + 1
	if e.on == "ws" {
		want = 1
	}
	if n := len(script.times()); n > want {
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
