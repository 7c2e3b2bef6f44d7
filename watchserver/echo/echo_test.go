package echo_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/listwatch/listwatch/watchserver"
	"github.com/listwatch/listwatch/watchserver/echo"
)

// request returns the response of h.
func request(h *echo.Handler, method, query string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, echo.Path+query, http.NoBody)
	for name, values := range header {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestReportHasNoCredentials(t *testing.T) {
	w := request(&echo.Handler{Server: &watchserver.Server{}}, http.MethodGet, "", http.Header{
		"Via": {"1.1 proxy"}, "Upgrade": {"websocket"}, "Authorization": {"Bearer secret"}, "Cookie": {"a=secret"},
	})
	var r echo.Report
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %v: %s", w.Code, err, w.Body)
	}
	const bytes = len("Via1.1 proxy") + len("Upgradewebsocket") + len("AuthorizationBearer secret") +
		len("Cookiea=secret")
	if len(r.Header) != 2 || r.Header.Get("Via") != "1.1 proxy" || r.HeaderBytes != bytes || r.Protocol != "HTTP/1.1" ||
		r.Time.IsZero() {
		t.Errorf("got %+v, want Via and Upgrade, and %d bytes", r, bytes)
	}
}

func TestStreamHasOneReportPerTick(t *testing.T) {
	w := request(&echo.Handler{Server: &watchserver.Server{}}, http.MethodGet, "?ticks=2", nil)
	lines := 0
	for s := bufio.NewScanner(w.Body); s.Scan(); lines++ {
		if err := json.Unmarshal(s.Bytes(), new(echo.Report)); err != nil {
			t.Error(err)
		}
	}
	if lines != 2 || w.Header().Get("X-Accel-Buffering") != "no" || w.Header().Get("Incremental") != "?1" ||
		!w.Flushed {
		t.Errorf("got %d lines, flushed %t, headers %v", lines, w.Flushed, w.Header())
	}
}

func nobody(*http.Request) (watchserver.User, error) { return watchserver.User{}, nil }

func TestBadRequestsAreRefused(t *testing.T) {
	open, closed := &echo.Handler{Server: &watchserver.Server{}},
		&echo.Handler{Server: &watchserver.Server{Access: watchserver.Access{Authenticator: nobody}}}
	for _, c := range []struct {
		h             *echo.Handler
		method, query string
		want          int
	}{
		{open, "GET", "?ticks=0", http.StatusBadRequest},
		{open, "GET", "?ticks=21", http.StatusBadRequest},
		{open, "GET", "?ticks=x", http.StatusBadRequest},
		{open, "POST", "", http.StatusMethodNotAllowed},
		{closed, "GET", "", http.StatusUnauthorized},
		{closed, "GET", "?ticks=1", http.StatusUnauthorized},
	} {
		if w := request(c.h, c.method, c.query, nil); w.Code != c.want {
			t.Errorf("%s %q: status %d, want %d", c.method, c.query, w.Code, c.want)
		}
	}
}
