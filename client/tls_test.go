package client

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/transport"
)

func onlyHTTP1(s *http.Server) {
	s.Protocols = new(http.Protocols)
	s.Protocols.SetHTTP1(true)
}

func TestHTTPSPrefersHTTP2(t *testing.T) {
	for want, configure := range map[string]func(*http.Server){"h2": nil, "chunked": onlyHTTP1} {
		synctest.Test(t, func(t *testing.T) {
			s := startServer(t, servertest.Options{TLS: true, ConfigureHTTP: configure})
			opened := make(chan string, 1)
			r := &Remote{
				URL: s.URL("/things"), Network: s.Network,
				Trace: &Trace{Opened: func(name string, _ listwatch.Version) { opened <- name }},
			}
			defer r.Close()
			w := testkit.Watch(t, r, listwatch.Query{Bookmarks: true})
			defer w.Close()
			if got := <-opened; got != want {
				t.Errorf("the watch uses %s, want %s", got, want)
			}
			if e := testkit.Read(t, w, 1)[0]; e.Type != listwatch.Synced {
				t.Errorf("got %s, want SYNCED", format(e))
			}
			if _, err := r.List(t.Context(), listwatch.Query{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// Conformance case tls/bad-ca.
func TestUntrustedCertificateIsInvalid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, servertest.Options{TLS: true})
		r := &Remote{URL: s.URL("/things"), Network: transport.Network{Dial: s.Dial}}
		defer r.Close()
		_, err := r.Watch(t.Context(), listwatch.Query{})
		if listwatch.CodeOf(err) != listwatch.Invalid || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("Watch: got error %v, want %v", err, listwatch.Invalid)
		}
		if _, err := r.List(t.Context(), listwatch.Query{}); listwatch.CodeOf(err) != listwatch.Invalid {
			t.Errorf("List: got error %v, want %v", err, listwatch.Invalid)
		}
	})
}
