package client

import (
	"net/http"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/internal/testkit"
)

// withoutProjections makes h ignore the parameter fields, like a server that does not know
// projections.
func withoutProjections(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		q.Del("fields")
		r.URL.RawQuery = q.Encode()
		h.ServeHTTP(w, r)
	})
}

// The objects are reduced, whether the server does it or not.
func TestRemoteReducesWhatTheServerDoesNot(t *testing.T) {
	projection, err := listwatch.ParseProjection("metadata.labels")
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range []struct {
		name string
		wrap func(http.Handler) http.Handler
	}{{"that knows projections", nil}, {"that ignores them", withoutProjections}} {
		t.Run("a server "+server.name, func(t *testing.T) {
			forEachTransport(t, func(t *testing.T, name string) {
				s := startServer(t, servertest.Options{Wrap: server.wrap})
				whole := s.put(t, "a", 1).Data
				want := string(projection.Append(nil, whole))
				if len(want) == len(whole) {
					t.Fatalf("want fewer members than %s", whole)
				}
				for what, r := range map[string]*Remote{"query": s.remote(t, name), "URL": s.remote(t, name)} {
					q := listwatch.Query{Bookmarks: true}
					if what == "URL" {
						r.URL += "?fields=metadata.labels"
					} else {
						q.Projection = projection
					}
					page, err := r.List(t.Context(), q)
					if err != nil || len(page.Items) != 1 || string(page.Items[0].Data) != want {
						t.Errorf("%s: list: got %v, %v, want %s", what, page, err, want)
					}
					events := testkit.Read(t, testkit.Watch(t, r, q), 2)
					if got := string(events[0].Object.Data); got != want {
						t.Errorf("%s: watch: got %s, want %s", what, got, want)
					}
				}
			})
		})
	}
}
