package apihttp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
)

type userKey struct{}

// A recorder records how a gate uses the hooks of its server.
type recorder struct {
	authenticated int
	refused       []string // the user and the error of each refusal
}

// gate returns a gate that admits the user in the header User.
func (r *recorder) gate() *Gate {
	return &Gate{
		AllowOrigins:  func() []string { return nil },
		NoCompression: func() bool { return false },
		Limits:        func() Limits { return Limits{URLBytes: 20, HeaderBytes: 200} },
		Sender: func(ctx context.Context, _ *http.Request) (user, client string) {
			user, _ = ctx.Value(userKey{}).(string)
			return user, "192.0.2.1"
		},
		Authenticate: func(request *http.Request) (context.Context, error) {
			r.authenticated++
			user := request.Header.Get("User")
			if user == "" {
				return nil, &listwatch.Error{Code: listwatch.Unauthorized, Message: "no user"}
			}
			return context.WithValue(request.Context(), userKey{}, user), nil
		},
		Refused: func(_ *http.Request, a *Admitted, err error) {
			r.refused = append(r.refused, a.User+": "+listwatch.AsError(err).Message)
		},
		Draining: context.Background,
	}
}

func request(method, target string, fields ...string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	return r
}

func status(h http.Handler, r *http.Request) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func TestHandlerWithoutAGateResponds500(t *testing.T) {
	called := false
	h := HandlerFunc(func(http.ResponseWriter, *http.Request, *Admitted) error { called = true; return nil })
	if code := status(h, request("GET", "/")); code != http.StatusInternalServerError || called {
		t.Errorf("got status %d, called %t, want 500 and no call", code, called)
	}
}

func TestChecksHaveOneOrder(t *testing.T) {
	seen := new(recorder)
	h := seen.gate().Handler(http.NotFoundHandler())
	bad := []string{"Impersonate-User", "bob", "Origin", "https://evil.example", "Large", strings.Repeat("x", 200)}
	for _, tt := range []struct {
		target string
		fields []string
		want   int
	}{
		{"/0123456789012345678901234", bad, http.StatusRequestURITooLong},
		{"/", bad, http.StatusRequestHeaderFieldsTooLarge},
		{"/", bad[:4], http.StatusForbidden},
		{"/", bad[2:4], http.StatusForbidden},
		{"/", nil, http.StatusUnauthorized},
		{"/", []string{"User", "ann"}, http.StatusNotFound},
	} {
		if code := status(h, request("POST", tt.target, tt.fields...)); code != tt.want {
			t.Errorf("%s %v: got status %d, want %d", tt.target, tt.fields, code, tt.want)
		}
	}
	want := []string{
		": the URL is longer than 20 bytes", ": the headers are longer than 200 bytes",
		": impersonation is not supported: send the request without the header Impersonate-User",
		`: web pages of origin "https://evil.example" may not write to this server, whose Host is "example.com"`,
		": no user",
	}
	if diff := cmp.Diff(want, seen.refused); diff != "" || seen.authenticated != 2 {
		t.Errorf("authenticated %d times, want 2\n%s", seen.authenticated, diff)
	}
}

func TestEachCheckHappensOnce(t *testing.T) {
	seen := new(recorder)
	g := seen.gate()
	var admitted []*Admitted
	keep := HandlerFunc(func(_ http.ResponseWriter, _ *http.Request, a *Admitted) error {
		admitted = append(admitted, a)
		return &listwatch.Error{Code: listwatch.NotFound, Message: "missing"}
	})
	inner := g.Handler(keep)
	// The router has a path that needs no credentials, and a path that does.
	router := g.Handler(HandlerFunc(func(w http.ResponseWriter, r *http.Request, a *Admitted) error {
		if r.URL.Path == "/open" {
			return keep(w, r, a)
		}
		admitted = append(admitted, a)
		g.Handler(inner).ServeHTTP(w, r)
		return nil
	}))
	if code := status(router, WithoutCredentials(request("GET", "/open"))); code != http.StatusNotFound ||
		seen.authenticated != 0 {
		t.Errorf("an open path: got status %d, authenticated %d times", code, seen.authenticated)
	}
	if code := status(router, WithoutCredentials(request("GET", "/x"))); code != http.StatusUnauthorized {
		t.Errorf("without credentials: got status %d, want 401", code)
	}
	admitted, seen.refused, seen.authenticated = nil, nil, 0
	if code := status(router, WithoutCredentials(request("GET", "/x", "User", "ann"))); code != http.StatusNotFound {
		t.Errorf("with credentials: got status %d, want 404", code)
	}
	if len(admitted) != 2 || admitted[0] != admitted[1] || seen.authenticated != 1 {
		t.Errorf("authenticated %d times; got %v, want one Admitted twice", seen.authenticated, admitted)
	}
	if diff := cmp.Diff([]string{"ann: missing"}, seen.refused); diff != "" {
		t.Error(diff)
	}
}

// A relay passes a request on unchecked, but checks what it serves itself.
func TestRequestForAnotherServerIsCheckedWhenServed(t *testing.T) {
	seen := new(recorder)
	g := seen.gate()
	served := g.Handler(http.NotFoundHandler())
	relay := g.Handler(HandlerFunc(func(w http.ResponseWriter, r *http.Request, _ *Admitted) error {
		if r.URL.Path == "/served" {
			served.ServeHTTP(w, r)
		}
		return nil
	}))
	impersonated := []string{"User", "ann", "Impersonate-User", "bob"}
	for path, want := range map[string]int{"/passed": http.StatusOK, "/served": http.StatusForbidden} {
		if code := status(relay, ForAnotherServer(request("GET", path, impersonated...))); code != want {
			t.Errorf("%s: got status %d, want %d", path, code, want)
		}
	}
	if len(seen.refused) != 1 || seen.authenticated != 0 {
		t.Errorf("refused %q, authenticated %d times; want one refusal before any authentication", seen.refused,
			seen.authenticated)
	}
}

func TestAnotherServersGateChecksAgain(t *testing.T) {
	outer, inner := new(recorder), new(recorder)
	h := outer.gate().Handler(inner.gate().Handler(http.NotFoundHandler()))
	if code := status(h, request("GET", "/", "User", "ann")); code != http.StatusNotFound || outer.authenticated != 1 ||
		inner.authenticated != 1 {
		t.Errorf("got status %d, authenticated %d and %d times, want once at each gate", code, outer.authenticated,
			inner.authenticated)
	}
}

func TestGateReturnsWhatARequestHasTaken(t *testing.T) {
	g := new(recorder).gate()
	g.Limits = func() Limits { return Limits{Requests: 2, Memory: 8 << 20} }
	take := HandlerFunc(func(_ http.ResponseWriter, _ *http.Request, a *Admitted) error {
		if err := a.Begin(); err != nil {
			return err
		}
		if used, _ := g.Usage(); used.Requests != 1 {
			t.Errorf("got %d seats during the request, want 1", used.Requests)
		}
		panic(http.ErrAbortHandler)
	})
	for range 3 { // one client may take one of the two seats
		func() {
			defer func() { _ = recover() }()
			status(g.Handler(take), request("GET", "/", "User", "ann"))
		}()
	}
	if used, _ := g.Usage(); used != (Usage{}) {
		t.Errorf("got %+v after the requests, want nothing", used)
	}
}
