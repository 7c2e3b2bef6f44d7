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
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// bearer returns the Authorization header for a token.
func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

func unauthorized(e *harness.Env) {
	for _, header := range [][]string{
		nil, bearer("nobody"),
		{"Authorization", "Bearer"},
		{"Authorization", harness.Allowed},
		{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(harness.Allowed+":"+harness.Allowed))},
	} {
		for _, a := range []*harness.Response{
			e.WatchRaw("", header...), e.ListRaw("", header...), e.WatchRaw("resourceVersion=abc", header...),
		} {
			a.WantRefused(http.StatusUnauthorized, "Unauthorized")
			if challenge := a.Headers.Get("WWW-Authenticate"); strings.Trim(challenge, " ") == "" {
				e.Errorf("%q: got WWW-Authenticate %q, want a challenge", header, challenge)
			}
		}
	}
	e.WatchRaw("", bearer(harness.Allowed)...).WantAccepted()
	// The scheme is case-insensitive (RFC 9110, section 11.1).
	e.WatchRaw("", "authorization", "bEARER "+harness.Allowed).WantAccepted()
}

func forbidden(e *harness.Env) {
	for _, a := range []*harness.Response{e.WatchRaw("", bearer(harness.Denied)...), e.ListRaw("",
		bearer(harness.Denied)...)} {
		if s := a.WantRefused(http.StatusForbidden, "Forbidden"); !strings.Contains(s.Message, harness.Denied) {
			e.Errorf("got message %q, want it to name the user", s.Message)
		}
	}
	e.WatchRaw("", bearer(harness.Allowed)...).WantAccepted()
}

// tokenSubprotocol returns the WebSocket subprotocol in which kube-apiserver accepts a token.
func tokenSubprotocol(token string) string {
	return "base64url.bearer.authorization.k8s.io." + harness.Base64URL([]byte(token))
}

func bearerSubprotocol(e *harness.Env) {
	offer := func(protocols ...string) *harness.Response {
		return e.WatchRaw("", "Sec-WebSocket-Protocol", strings.Join(protocols, ", "))
	}
	for _, test := range []struct {
		offer  []string
		chosen string
	}{
		{[]string{tokenSubprotocol(harness.Allowed)}, ""},
		{[]string{tokenSubprotocol(harness.Allowed), "v1"}, "v1"},
		{[]string{"v1", tokenSubprotocol(harness.Allowed)}, "v1"},
	} {
		if got := offer(test.offer...).WantAccepted().Get("Sec-Websocket-Protocol"); got != test.chosen {
			e.Errorf("offered subprotocols %q: the server selected %q, want %q", test.offer, got, test.chosen)
		}
	}
	offer("v1", tokenSubprotocol("nobody")).WantRefused(http.StatusUnauthorized, "Unauthorized")
	offer("v1", tokenSubprotocol(harness.Allowed)+"=").WantRefused(http.StatusUnauthorized, "Unauthorized")
	offer("v1", tokenSubprotocol("")).WantRefused(http.StatusUnauthorized, "Unauthorized")
	offer("v1", tokenSubprotocol(harness.Allowed),
		tokenSubprotocol(harness.Denied)).WantRefused(http.StatusUnauthorized, "Unauthorized")
	offer("v1", tokenSubprotocol(harness.Denied)).WantRefused(http.StatusForbidden, "Forbidden")
}

// tokenSource returns a stale token until the client requests a fresh one.
type tokenSource struct{ refreshes atomic.Int32 } // number of requests for a fresh token

func (t *tokenSource) header(_ context.Context, refresh bool) (http.Header, error) {
	token := "stale"
	if refresh {
		t.refreshes.Add(1)
	}
	if t.refreshes.Load() > 0 {
		token = "fresh"
	}
	return http.Header{"Authorization": {"Bearer " + token}}, nil
}

// requireToken returns a handler that calls next for requests with the given token, and responds to
// other requests with 401.
func requireToken(token string, next http.HandlerFunc) http.HandlerFunc {
	refuse := harness.Respond(http.StatusUnauthorized, harness.StatusJSON(http.StatusUnauthorized, "Unauthorized", nil),
		"WWW-Authenticate", "Bearer")
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			refuse(w, r)
			return
		}
		next(w, r)
	}
}

func tokenRefresh(e *harness.Env) {
	follow := func(steps ...http.HandlerFunc) (*harness.HandlerSequence, *tokenSource, listwatch.Watcher) {
		server, route := e.ServeSequence(steps...)
		tokens := new(tokenSource)
		return server, tokens, e.Follow(e.RemoteWith(route, func(r *client.Remote) { r.Header = tokens.header }), 1)
	}
	// More events of version 6 may follow, so the client must resume from version 5.
	first := requireToken("stale", e.SendThenEnd(harness.AddedEvent("a", "5"), harness.AddedEvent("b", "6")))
	expired := e.SendError(&listwatch.Error{
		Code: listwatch.Unauthorized, Status: http.StatusUnauthorized, Reason: "Unauthorized",
	})
	for name, second := range map[string]http.HandlerFunc{
		"HTTP 401": requireToken("fresh", nil), "ERROR event": requireToken("stale", expired),
	} {
		versions := make(chan string)
		_, tokens, w := follow(first, second, requireToken("fresh", harness.RecordVersion(versions)))
		for range 2 {
			if _, err := e.NextOf(w); err != nil {
				e.Fatalf("%s: %v", name, err)
			}
		}
		if got := receive(e, versions); got != "5" {
			e.Errorf("%s: the client resumed from version %q with a fresh token, want 5", name, got)
		}
		if n := tokens.refreshes.Load(); n != 1 {
			e.Errorf("%s: the client requested fresh credentials %d times, want 1", name, n)
		}
		w.Close()
	}

	server, tokens, w := follow(first, requireToken("no such token", nil))
	for range 2 {
		if _, err := e.NextOf(w); err != nil {
			e.Fatal(err)
		}
	}
	for range 2 {
		if got, err := e.NextOf(w); !errors.Is(err, listwatch.Unauthorized) {
			e.Errorf("all tokens refused: got %s, want an error of code Unauthorized", harness.Got(got, err))
		}
	}
	e.Pause(time.Hour, 3*time.Second)
	if n := len(server.RequestTimes()); n != 3 || tokens.refreshes.Load() != 1 {
		e.Errorf("all tokens refused: got %d requests to the server and %d for fresh credentials, want 3 and 1", n,
			tokens.refreshes.Load())
	}
}

// tokenExpiries runs a client against a server whose first three watches have no events and end
// after a minute, because the token has expired. The client must refresh the token once each time.
func tokenExpiries(e *harness.Env) {
	expires := e.Accept(transport.Options{}, func(s *transport.Stream, done <-chan struct{}) {
		select {
		case <-time.After(e.Either(time.Minute, 2*time.Second)):
		case <-done:
		}
		refusal := &listwatch.Error{
			Code: listwatch.Unauthorized, Status: http.StatusUnauthorized, Reason: "Unauthorized",
		}
		frame, err := s.Encoder.Frame(framing.FromError(refusal))
		if err == nil {
			_ = s.Sender.Send([][]byte{frame})
		}
		_ = s.Sender.Close(transport.Finished)
	})
	_, route := e.ServeSequence(expires, expires, expires, e.SendThenEnd(harness.AddedEvent("a", "2")))
	tokens := new(tokenSource)
	w := e.Follow(e.RemoteWith(route, func(r *client.Remote) { r.Header = tokens.header }), 1)
	if _, err := e.NextOf(w); err != nil {
		e.Fatalf("three tokens expired, one after the other: %v", err)
	}
	if n := tokens.refreshes.Load(); n != 3 {
		e.Errorf("the client requested fresh credentials %d times, want 3", n)
	}
}

// lifetime is the time after which the credentials of expirySetup expire.
const lifetime = 5 * time.Second

func expiry(e *harness.Env) {
	e.Put("a")
	withToken := transport.Request{Header: http.Header{"Authorization": {"Bearer " + harness.Allowed}}}
	for range 2 { // the second watch has fresh credentials
		start := time.Now()
		s := e.DialRequest("", withToken)
		s.Want("ADDED a")
		err := s.WantError(listwatch.Unauthorized)
		if took := time.Since(start); took < lifetime || took > lifetime+time.Second ||
			err.Status != http.StatusUnauthorized {
			e.Errorf("got status %d after %v, want 401 after %v", err.Status, took, lifetime)
		}
	}
	// A watch that ends before its credentials expire is not affected.
	s := e.DialRequest("timeoutSeconds=2", withToken)
	s.Want("ADDED a")
	s.WantEnd()
}

// receive returns the next value from c, or an empty string after a timeout.
func receive(e *harness.Env, c <-chan string) string {
	ctx, cancel := context.WithTimeout(context.Background(), e.Patience())
	defer cancel()
	select {
	case s := <-c:
		return s
	case <-ctx.Done():
		return ""
	}
}
