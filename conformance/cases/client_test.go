package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// remote returns a Remote for the collection at s, over s's client and others.
func (e *env) remote(s *site, others ...transport.Client) *client.Remote {
	r := &client.Remote{
		URL: s.target("").String(), Network: s.network, Transports: append([]transport.Client{s.client}, others...),
	}
	e.Cleanup(func() { r.Close() })
	return r
}

// follow opens a watch of r from a version.
func (e *env) follow(r *client.Remote, version listwatch.Version) listwatch.Watcher {
	e.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), e.patience())
	defer cancel()
	w, err := r.Watch(ctx, listwatch.Query{Start: listwatch.At, Version: version})
	if err != nil {
		e.Fatalf("watch: %v", err)
	}
	e.Cleanup(func() { w.Close() })
	return w
}

// nextOf returns the next event of w.
func (e *env) nextOf(w listwatch.Watcher) (listwatch.Event, error) {
	ctx, cancel := context.WithTimeout(context.Background(), e.patience())
	defer cancel()
	var one [1]listwatch.Event
	_, err := w.Next(ctx, one[:])
	return one[0], err
}

// A script answers the first request with its first step, the next with the second; when it is over, the last step answers all.
type script struct {
	*env
	steps []http.HandlerFunc

	mu sync.Mutex
	at []time.Time // guarded by mu; of all requests so far
}

// play opens a site that does steps.
func (e *env) play(steps ...http.HandlerFunc) (*script, *site) {
	s := &script{env: e, steps: steps}
	return s, e.open(s)
}

// ServeHTTP does the next step.
func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.at = append(s.at, time.Now())
	step := s.steps[min(len(s.at), len(s.steps))-1]
	s.mu.Unlock()
	step(w, r)
}

// times returns when the requests came.
func (s *script) times() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.at)
}

// sends is a step: a watch that has these events and then a clean end.
func (v variant) sends(events ...listwatch.Event) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		stream, err := v.server.Accept(w, r, transport.Options{})
		if err != nil {
			watchserver.WriteError(w, r, err)
			return
		}
		for _, e := range events {
			if frame, err := stream.Encoder.Event(e); err == nil {
				_ = stream.Sender.Send([][]byte{frame}) // the client may have left
			}
		}
		_ = stream.Sender.Close(transport.Finished)
	}
}

// fails is a step: a watch that ends with an ERROR event.
func (v variant) fails(cause error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		stream, err := v.server.Accept(w, r, transport.Options{})
		if err != nil {
			watchserver.WriteError(w, r, err)
			return
		}
		if frame, err := stream.Encoder.Error(cause); err == nil {
			_ = stream.Sender.Send([][]byte{frame})
		}
		_ = stream.Sender.Close(transport.Finished)
	}
}

// says is a step: an answer that is no stream. header are pairs.
func says(code int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

// status is the JSON of a Status.
func status(code int, reason string, details *listwatch.StatusDetails) string {
	s := listwatch.Status{Kind: "Status", APIVersion: "v1", Status: "Failure", Message: "on purpose", Reason: reason, Code: code, Details: details}
	body, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// added is an ADDED event of a thing; rv is what it bears as its version.
func added(name, rv string) listwatch.Event {
	v, err := listwatch.ParseVersion(rv)
	if err != nil {
		v = 1
	}
	data := fmt.Sprintf(`{"kind":"Thing","apiVersion":"conformance.example.com/v1","metadata":{"name":%q,"resourceVersion":%q}}`, name, rv)
	return listwatch.Event{Type: listwatch.Added, Version: v, Object: &listwatch.Object{Key: keyOf(name), Version: v, Data: []byte(data)}}
}

func clientTyped(e *env) {
	tooLarge := &listwatch.StatusDetails{Causes: []listwatch.Cause{{Reason: listwatch.CauseTooLarge}}, RetryAfterSeconds: 1}
	for _, test := range []struct {
		code int
		body string
		want listwatch.Code
	}{
		{410, status(410, "Expired", nil), listwatch.Expired},
		{410, status(410, "Gone", nil), listwatch.Expired},
		{410, "gone", listwatch.Expired},
		{429, status(429, "TooManyRequests", nil), listwatch.Unavailable},
		{429, "", listwatch.Unavailable},
		{504, status(504, "Timeout", tooLarge), listwatch.NotYet},
		{504, status(504, "Timeout", nil), listwatch.Unavailable},
		{401, status(401, "Unauthorized", nil), listwatch.Unauthorized},
		{401, "who?", listwatch.Unauthorized},
		{403, status(403, "Forbidden", nil), listwatch.Forbidden},
		{403, "<html>no</html>", listwatch.Forbidden},
		{500, status(500, "InternalError", nil), listwatch.Unknown},
		{500, "", listwatch.Unknown},
		{502, "", listwatch.Unavailable},
		{503, status(503, "ServiceUnavailable", nil), listwatch.Unavailable},
	} {
		_, at := e.play(says(test.code, test.body))
		r := e.remote(at)
		_, dialled := at.client.Dial(e.Context(), &transport.Request{URL: at.target("watch=1")})
		_, watched := r.Watch(e.Context(), listwatch.Query{Start: listwatch.At, Version: 1})
		_, listed := r.List(e.Context(), listwatch.Query{})
		for what, err := range map[string]error{"dial": dialled, "watch": watched, "list": listed} {
			got, ok := errors.AsType[*listwatch.Error](err)
			if !ok || got.Code != test.want || got.Status != test.code || !got.Remote {
				e.Errorf("%s: answered %d %q: got %#v, want the server's word, of code %v", what, test.code, test.body, err, test.want)
			}
		}
	}
}

func html502(e *env) {
	var bad http.HandlerFunc
	for _, head := range []string{"<html><head><title>502 Bad Gateway</title></head>", "<html>"} {
		page := head + "<body>" + strings.Repeat("<p>nginx</p>\n", 20_000) + "</body></html>"
		bad = says(http.StatusBadGateway, page, "Content-Type", "text/html")
		script, at := e.play(bad)
		_, err := e.remote(at).Watch(e.Context(), listwatch.Query{})
		if got := err.Error(); !errors.Is(err, listwatch.Unavailable) || len(got) > 500 || !strings.Contains(got, "502 Bad Gateway") {
			e.Errorf("got %d bytes %.200q, want a short message that says 502", len(got), got)
		}
		if n := len(script.times()); n != 1 {
			e.Errorf("the call made %d requests, want 1", n)
		}
	}

	const failures = 6
	steps := append([]http.HandlerFunc{e.sends(added("a", "5"))}, slices.Repeat([]http.HandlerFunc{bad}, failures)...)
	script, at := e.play(append(steps, e.sends(added("b", "6")))...)
	w := e.follow(e.remote(at), 1)
	for _, want := range []string{"a", "b"} {
		if got, err := e.nextOf(w); err != nil || got.Object.Key.Name != want {
			e.Fatalf("got %v, %v; want %s", got, err, want)
		}
	}
	// The pause after a failure is random, but never longer than 0.8 s doubled for each failure, and 30 s.
	times, bound := script.times(), 800*time.Millisecond
	for i := 2; i <= failures+1; i++ {
		if pause := times[i].Sub(times[i-1]); pause <= 0 || pause > bound+time.Millisecond {
			e.Errorf("pause %d was %v, want up to %v", i, pause, bound)
		}
		bound = min(2*bound, 30*time.Second)
	}
}

func retryAfter(e *env) {
	const seconds = 45 * time.Second
	date := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", time.Now().Add(seconds).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	details := &listwatch.StatusDetails{RetryAfterSeconds: 45}
	for what, refuse := range map[string]http.HandlerFunc{
		"429 in seconds":        says(429, "", "Retry-After", "45"),
		"503 in seconds":        says(503, status(503, "ServiceUnavailable", nil), "Retry-After", "45"),
		"503 as a date":         date,
		"429 in the Status":     says(429, status(429, "TooManyRequests", details)),
		"429 in an ERROR event": e.fails(&listwatch.Error{Code: listwatch.Unavailable, Status: 429, Reason: "TooManyRequests", Details: &listwatch.Details{RetryAfter: seconds}}),
	} {
		script, at := e.play(e.sends(added("a", "5")), refuse, e.sends(added("b", "6")))
		w := e.follow(e.remote(at), 1)
		for range 2 {
			if _, err := e.nextOf(w); err != nil {
				e.Fatalf("%s: %v", what, err)
			}
		}
		times := script.times()
		// A date has whole seconds.
		if pause := times[2].Sub(times[1]); pause < seconds-time.Second || pause > seconds+10*time.Second {
			e.Errorf("%s: tried again after %v, want 45s and a little more", what, pause)
		}
	}
}

func noRetryOn4xx(e *env) {
	for _, test := range []struct {
		what string
		step http.HandlerFunc
		want listwatch.Code
	}{
		{"400", says(400, status(400, "BadRequest", nil)), listwatch.Invalid},
		{"403", says(403, status(403, "Forbidden", nil)), listwatch.Forbidden},
		{"404", says(404, status(404, "NotFound", nil)), listwatch.NotFound},
		{"406", says(406, status(406, "NotAcceptable", nil)), listwatch.Unsupported},
		{"410", says(410, status(410, "Expired", nil)), listwatch.Expired},
		{"410 as an event", e.fails(&listwatch.Error{Code: listwatch.Expired}), listwatch.Expired},
		{"403 as an event", e.fails(&listwatch.Error{Code: listwatch.Forbidden}), listwatch.Forbidden},
	} {
		script, at := e.play(e.sends(added("a", "5")), test.step)
		w := e.follow(e.remote(at), 1)
		if _, err := e.nextOf(w); err != nil {
			e.Fatalf("%s: %v", test.what, err)
		}
		for range 2 {
			if got, err := e.nextOf(w); !errors.Is(err, test.want) {
				e.Errorf("%s: got %v, %v; want %v, for ever", test.what, got, err, test.want)
			}
		}
		<-time.After(time.Hour) // of the bubble's clock
		if n := len(script.times()); n != 2 {
			e.Errorf("%s: %d requests within an hour, want 2", test.what, n)
		}
	}
}

func rvOpaqueClient(e *env) {
	const version, newest = "18446744073709551614", "18446744073709551615" // no float64 holds them
	asked := make(chan string)
	record := func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Query().Get("resourceVersion")
		<-r.Context().Done()
	}
	_, at := e.play(e.sends(added("a", version), added("b", newest)), record)
	w := e.follow(e.remote(at), 7)
	// The newest may be one of several objects of one version, so the one before it is what the watch can be resumed from.
	if got := <-asked; got != version {
		e.Errorf("resumed from %s, want %s, as it came", got, version)
	}
	w.Close()

	for _, rv := range []string{"abc-1", "1.5", "0x10", "-3", "18446744073709551616", "007"} {
		script, at := e.play(e.sends(added("a", rv)))
		w := e.follow(e.remote(at), 7)
		for range 2 {
			if got, err := e.nextOf(w); !errors.Is(err, listwatch.Unsupported) {
				e.Errorf("an event of version %s: got %v, %v; want an error of code Unsupported", rv, got, err)
			}
		}
		<-time.After(time.Hour)
		if n := len(script.times()); n != 1 {
			e.Errorf("an event of version %s: %d requests within an hour, want 1", rv, n)
		}
		list := fmt.Sprintf(`{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":%q},"items":[]}`, rv)
		_, at = e.play(says(200, list, "Content-Type", "application/json"))
		if _, err := e.remote(at).List(e.Context(), listwatch.Query{}); !errors.Is(err, listwatch.Unsupported) {
			e.Errorf("a list of version %s: got %v, want an error of code Unsupported", rv, err)
		}
	}
}

// A nameless source does not tell its epoch, as servers of other makes.
type nameless struct{ listwatch.Source }

// Describe hides the epoch.
func (n nameless) Describe() listwatch.Description {
	d := listwatch.Describe(n.Source)
	d.Epoch = ""
	return d
}

// storeReset puts another collection behind the URL. Where its epoch tells, its versions are even ahead of those of the first; where
// there are no epochs they are behind, as after a backup was restored.
func storeReset(e *env) {
	for _, epochs := range []bool{true, false} {
		old, restored := newEnv(e.T, e.variant, e.setup, e.fake), newEnv(e.T, e.variant, e.setup, e.fake)
		writes := 10
		if !epochs {
			old.site, restored.site = old.serveNameless(), restored.serveNameless()
			writes = 1
		}
		var behind atomic.Pointer[site]
		behind.Store(old.site)
		front := e.open(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { behind.Load().handler.ServeHTTP(w, r) }))

		start := old.put("a")
		w := e.follow(e.remote(front), start)
		for range 5 {
			old.put("a")
			if _, err := e.nextOf(w); err != nil {
				e.Fatal(err)
			}
		}
		for range writes {
			restored.put("a")
		}
		if now := restored.db.Version(); (now > start+5) != epochs {
			e.Fatalf("the second collection is at %d, the first at %d", now, start+5)
		}
		behind.Store(restored.site)
		old.drain()
		if got, err := e.nextOf(w); !errors.Is(err, listwatch.Expired) {
			e.Errorf("epochs %v: got %v, %v; want to be told to begin again", epochs, got, err)
		}
		page, err := e.remote(front).List(e.Context(), listwatch.Query{})
		if err != nil || page.Version != restored.db.Version() {
			e.Errorf("a new list is at %d, %v; want %d", page.Version, err, restored.db.Version())
		}
	}
}

// serveNameless is serve for a source without an epoch.
func (e *env) serveNameless() *site {
	server := &watchserver.Server{Source: nameless{e.things}, Transports: e.servers()}
	s := e.open(server)
	e.drainsBy(s, server.Drain)
	return s
}

// refusals are how servers and proxies say that they don't speak a transport.
var refusals = map[string][]int{
	"h1": {http.StatusUpgradeRequired, http.StatusNotImplemented, http.StatusHTTPVersionNotSupported},
	"h2": {http.StatusHTTPVersionNotSupported, http.StatusNotImplemented, http.StatusUpgradeRequired},
	"ws": {http.StatusForbidden, http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusUpgradeRequired, http.StatusNotImplemented},
}

// fallback has a server that refuses the first transport of a client.
func fallback(e *env) {
	for _, code := range refusals[e.on] {
		var used []string
		at := e.open(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if kind := transportOf(r); kind == e.on {
				w.WriteHeader(code)
				return
			}
			e.handler.ServeHTTP(w, r)
		}))
		var others []transport.Client
		for _, v := range variants {
			if v.on != e.on {
				others = append(others, at.newClient(e, v))
			}
		}
		r := e.remote(at, others...)
		r.Trace = &client.Trace{Opened: func(name string, _ listwatch.Version) { used = append(used, name) }}
		start := e.put("a")
		e.put("b")
		w := e.follow(r, start)
		e.delete("b")
		for want := start + 1; want <= start+2; want++ {
			if got, err := e.nextOf(w); err != nil || got.Version != want {
				e.Fatalf("refused by %d: got %v, %v; want version %d", code, got.Version, err, want)
			}
		}
		w.Close()
		if len(used) != 1 || used[0] == at.client.Name() {
			e.Errorf("refused by %d: used %q, want another transport, once", code, used)
		}
	}
}

func transportOf(r *http.Request) string {
	switch {
	case r.ProtoMajor == 2:
		return "h2"
	case r.Header.Get("Upgrade") != "":
		return "ws"
	}
	return "h1"
}
