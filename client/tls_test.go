package client

import (
	"net/http"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/servertest"
)

func onlyHTTP1(s *http.Server) {
	s.Protocols = new(http.Protocols)
	s.Protocols.SetHTTP1(true)
}

func TestHTTPSPrefersHTTP2(t *testing.T) {
	for want, configure := range map[string]func(*http.Server){"h2": nil, "chunked": onlyHTTP1} {
		s := startServer(t, servertest.Options{TLS: true, Sockets: true, ConfigureHTTP: configure})
		opened := make(chan string, 1)
		r := &Remote{URL: s.URL("/things"), Network: s.Network, Trace: &Trace{Opened: func(name string, _ listwatch.Version) { opened <- name }}}
		w, err := r.Watch(t.Context(), listwatch.Query{Bookmarks: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := <-opened; got != want {
			t.Errorf("the watch uses %s, want %s", got, want)
		}
		if e := readEvents(t, w, 1)[0]; e.Type != listwatch.Synced {
			t.Errorf("got %s, want SYNCED", format(e))
		}
		if _, err := r.List(t.Context(), listwatch.Query{}); err != nil {
			t.Error(err)
		}
		w.Close()
		r.Close()
	}
}

// Conformance case tls/bad-ca.
func TestUntrustedCertificateIsInvalid(t *testing.T) {
	s := startServer(t, servertest.Options{TLS: true, Sockets: true})
	r := &Remote{URL: s.URL("/things")}
	defer r.Close()
	_, err := r.Watch(t.Context(), listwatch.Query{})
	if listwatch.CodeOf(err) != listwatch.Invalid || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("Watch: got error %v, want %v", err, listwatch.Invalid)
	}
	if _, err := r.List(t.Context(), listwatch.Query{}); listwatch.CodeOf(err) != listwatch.Invalid {
		t.Errorf("List: got error %v, want %v", err, listwatch.Invalid)
	}
}
