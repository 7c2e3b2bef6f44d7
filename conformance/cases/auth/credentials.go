package auth

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/harness"
)

// bearer are the headers of a request with a token.
func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

func unauthorized(e *harness.Env) {
	for _, header := range [][]string{
		nil, bearer("nobody"),
		{"Authorization", "Bearer"},
		{"Authorization", harness.Allowed},
		{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(harness.Allowed+":"+harness.Allowed))},
	} {
		for _, a := range []*harness.Response{e.WatchRaw("", header...), e.ListRaw("", header...), e.WatchRaw("resourceVersion=abc", header...)} {
			a.WantRefused(http.StatusUnauthorized, "Unauthorized")
			if challenge := a.Headers.Get("WWW-Authenticate"); strings.Trim(challenge, " ") == "" {
				e.Errorf("%q: got WWW-Authenticate %q, want a challenge", header, challenge)
			}
		}
	}
	e.WatchRaw("", bearer(harness.Allowed)...).WantAccepted()
	e.WatchRaw("", "authorization", "bEARER "+harness.Allowed).WantAccepted() // schemes have no case: RFC 9110, section 11.1
}

func forbidden(e *harness.Env) {
	for _, a := range []*harness.Response{e.WatchRaw("", bearer(harness.Denied)...), e.ListRaw("", bearer(harness.Denied)...)} {
		if s := a.WantRefused(http.StatusForbidden, "Forbidden"); !strings.Contains(s.Message, harness.Denied) {
			e.Errorf("got message %q, want one that names the user", s.Message)
		}
	}
	e.WatchRaw("", bearer(harness.Allowed)...).WantAccepted()
}

// asSubprotocol spells a token as kube-apiserver takes it.
func asSubprotocol(token string) string {
	return "base64url.bearer.authorization.k8s.io." + harness.Token68([]byte(token))
}

func bearerSubprotocol(e *harness.Env) {
	offer := func(protocols ...string) *harness.Response {
		return e.WatchRaw("", "Sec-WebSocket-Protocol", strings.Join(protocols, ", "))
	}
	for _, test := range []struct {
		offer  []string
		chosen string
	}{
		{[]string{asSubprotocol(harness.Allowed)}, ""},
		{[]string{asSubprotocol(harness.Allowed), "v1"}, "v1"},
		{[]string{"v1", asSubprotocol(harness.Allowed)}, "v1"},
	} {
		if got := offer(test.offer...).WantAccepted().Get("Sec-Websocket-Protocol"); got != test.chosen {
			e.Errorf("offered %q: the server chose %q, want %q", test.offer, got, test.chosen)
		}
	}
	offer("v1", asSubprotocol("nobody")).WantRefused(http.StatusUnauthorized, "Unauthorized")
	offer("v1", asSubprotocol(harness.Allowed)+"=").WantRefused(http.StatusUnauthorized, "Unauthorized")
	offer("v1", asSubprotocol("")).WantRefused(http.StatusUnauthorized, "Unauthorized")
	offer("v1", asSubprotocol(harness.Allowed), asSubprotocol(harness.Denied)).WantRefused(http.StatusUnauthorized, "Unauthorized")
	offer("v1", asSubprotocol(harness.Denied)).WantRefused(http.StatusForbidden, "Forbidden")
}

// tokens gives out one token until it is asked for fresh ones.
type tokens struct{ asked atomic.Int32 } // how often for fresh ones

func (t *tokens) header(_ context.Context, refresh bool) (http.Header, error) {
	token := "stale"
	if refresh {
		t.asked.Add(1)
	}
	if t.asked.Load() > 0 {
		token = "fresh"
	}
	return http.Header{"Authorization": {"Bearer " + token}}, nil
}

// knows is a step: next for requests with a token, and 401 for others.
func knows(token string, next http.HandlerFunc) http.HandlerFunc {
	refuse := harness.Respond(http.StatusUnauthorized, harness.StatusJSON(http.StatusUnauthorized, "Unauthorized", nil), "WWW-Authenticate", "Bearer")
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			refuse(w, r)
			return
		}
		next(w, r)
	}
}

func tokenRefresh(e *harness.Env) {
	follow := func(steps ...http.HandlerFunc) (*harness.HandlerSequence, *tokens, listwatch.Watcher) {
		script, at := e.ServeInTurn(steps...)
		known := new(tokens)
		return script, known, e.Follow(e.RemoteWith(at, func(r *client.Remote) { r.Header = known.header }), 1)
	}
	// The newest may be one of several objects of one version, so the one before it is what the watch can be resumed from.
	begins := knows("stale", e.SendThenEnd(harness.AddedEvent("a", "5"), harness.AddedEvent("b", "6")))
	expires := e.SendError(&listwatch.Error{Code: listwatch.Unauthorized, Status: http.StatusUnauthorized, Reason: "Unauthorized"})
	for what, then := range map[string]http.HandlerFunc{"refused": knows("fresh", nil), "in the stream": knows("stale", expires)} {
		asked := make(chan string)
		_, known, w := follow(begins, then, knows("fresh", harness.RecordVersion(asked)))
		for range 2 {
			if _, err := e.NextOf(w); err != nil {
				e.Fatalf("%s: %v", what, err)
			}
		}
		if got := told(e, asked); got != "5" {
			e.Errorf("%s: resumed from %q with a fresh token, want 5", what, got)
		}
		if n := known.asked.Load(); n != 1 {
			e.Errorf("%s: the client has asked for fresh credentials %d times, want once", what, n)
		}
		w.Close()
	}

	script, known, w := follow(begins, knows("none is good any more", nil))
	for range 2 {
		if _, err := e.NextOf(w); err != nil {
			e.Fatal(err)
		}
	}
	for range 2 {
		if got, err := e.NextOf(w); !errors.Is(err, listwatch.Unauthorized) {
			e.Errorf("refused for ever: got %v, %v; want an error of code Unauthorized", got, err)
		}
	}
	<-time.After(time.Hour) // of the bubble's clock
	if n := len(script.RequestTimes()); n != 3 || known.asked.Load() != 1 {
		e.Errorf("refused for ever: %d requests within an hour and fresh credentials %d times, want 3 and once", n, known.asked.Load())
	}
}

// told returns what comes over c, or nothing where that takes too long.
func told(e *harness.Env, c <-chan string) string {
	late, cancel := context.WithTimeout(context.Background(), e.Patience())
	defer cancel()
	select {
	case s := <-c:
		return s
	case <-late.Done():
		return ""
	}
}
