package harness

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"time"
)

// A server may send no response headers until the first event. Over HTTP/2, nginx does so.
func TestSilentVariantLeavesOthersTime(t *testing.T) {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if r.ProtoMajor == 1 {
			w.Header().Set("Content-Type", JSONMediaType)
			_ = http.NewResponseController(w).Flush() // the client may have closed the connection
		}
		<-r.Context().Done()
	}))
	s.Config.Protocols = protocols
	s.Start()
	defer s.Close()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	served, refused := ProbeVariants(ctx, &Instance{URL: u})
	if !slices.Equal(served, []string{"h1"}) {
		t.Errorf("got the variants %q, want h1; refused: %v", served, refused)
	}
	for name, err := range refused {
		if errors.Is(err, context.DeadlineExceeded) != (name == "h2") {
			t.Errorf("%s: got %v, want a timeout of h2 only", name, err)
		}
	}
}
