package client

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/watchserver"
)

// longSelector selects the objects of n apps, of which web is one.
func longSelector(t *testing.T, n int) listwatch.LabelSelector {
	t.Helper()
	apps := "web"
	for i := range n {
		apps += fmt.Sprintf(",app-%d", i)
	}
	labels, err := listwatch.ParseLabelSelector("app in (" + apps + ")")
	if err != nil {
		t.Fatal(err)
	}
	return labels
}

// serveThings serves two objects, of which one has the app web. wrap may change the handler. The
// second result returns the methods of the requests.
func serveThings(t *testing.T, wrap func(http.Handler) http.Handler) (*httptest.Server, func() []string) {
	t.Helper()
	things, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{
		APIVersion: "example.com/v1", Kind: "Thing", Plural: "things",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"web", "other"} {
		_, err := things.Create(t.Context(), []byte(`{"metadata":{"name":"`+name+`","labels":{"app":"`+name+`"}}}`))
		if err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var methods []string
	handler := wrap(&watchserver.Server{Source: things})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		methods = append(methods, r.Method)
		mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	h2.Configure(s.Config, h2.Config{})
	s.Start()
	t.Cleanup(s.Close)
	return s, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return methods
	}
}

// readWeb lists and watches the things of the app web.
func readWeb(t *testing.T, r *Remote, labels listwatch.LabelSelector) error {
	t.Helper()
	page, err := r.List(t.Context(), listwatch.Query{Selection: listwatch.Selection{Labels: labels}})
	if err != nil {
		return err
	}
	if len(page.Items) != 1 || page.Items[0].Key.Name != "web" {
		t.Errorf("the list has %d objects, want the web", len(page.Items))
	}
	w, err := r.Watch(t.Context(), listwatch.Query{
		Selection: listwatch.Selection{Labels: labels}, InitialEvents: listwatch.InitialEventsYes, Bookmarks: true,
	})
	if err != nil {
		return err
	}
	defer w.Close()
	var got []listwatch.EventType
	for len(got) < 2 {
		events := make([]listwatch.Event, 1)
		n, err := w.Next(t.Context(), events)
		if err != nil {
			return err
		}
		got = append(got, events[:n][0].Type)
	}
	if diff := cmp.Diff([]listwatch.EventType{listwatch.Added, listwatch.Synced}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	return nil
}

func TestLongParametersAreSentInTheBody(t *testing.T) {
	for _, c := range []transport.Client{&chunked.Client{}, &h2.Client{}} {
		t.Run(c.Name(), func(t *testing.T) {
			s, methods := serveThings(t, func(h http.Handler) http.Handler { return h })
			r := &Remote{URL: s.URL, Transports: []transport.Client{c}}
			defer r.Close()
			if err := readWeb(t, r, longSelector(t, 10_000)); err != nil {
				t.Fatal(err)
			}
			if _, err := r.List(t.Context(), listwatch.Query{}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"QUERY", "QUERY", "GET"}, methods()); diff != "" {
				t.Errorf("methods (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefusedQueryFallsBackToGet(t *testing.T) {
	refuse := func(code int) func(http.Handler) http.Handler {
		return func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == transport.MethodQuery {
					w.WriteHeader(code)
					return
				}
				h.ServeHTTP(w, r)
			})
		}
	}
	for name, wrap := range map[string]func(http.Handler) http.Handler{
		"400": refuse(400), "403": refuse(403), "405": refuse(405), "501": refuse(501),
		"the method is ignored": func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == transport.MethodQuery {
					r.Method = http.MethodGet
					h.ServeHTTP(hiddenOffer{w}, r)
					return
				}
				h.ServeHTTP(w, r)
			})
		},
		"a redirect": func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == transport.MethodQuery {
					http.Redirect(w, r, "/", http.StatusSeeOther)
					return
				}
				h.ServeHTTP(hiddenOffer{w}, r)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, methods := serveThings(t, wrap)
			r := &Remote{URL: s.URL, Transports: []transport.Client{&chunked.Client{}}}
			defer r.Close()
			for range 2 {
				if err := readWeb(t, r, longSelector(t, 1_000)); err != nil {
					t.Fatal(err)
				}
			}
			queries := 0
			for _, m := range methods() {
				if m == transport.MethodQuery {
					queries++
				}
			}
			if queries != 1 {
				t.Errorf("got the methods %q, want one QUERY", methods())
			}
		})
	}
}

// hiddenOffer removes Accept-Query, like a server that does not know QUERY.
type hiddenOffer struct{ http.ResponseWriter }

func (h hiddenOffer) Unwrap() http.ResponseWriter { return h.ResponseWriter }

func (h hiddenOffer) Write(p []byte) (int, error) {
	h.Header().Del("Accept-Query")
	return h.ResponseWriter.Write(p)
}

func (h hiddenOffer) WriteHeader(code int) {
	h.Header().Del("Accept-Query")
	h.ResponseWriter.WriteHeader(code)
}

func TestInvalidParametersAreNoRefusalOfQuery(t *testing.T) {
	s, methods := serveThings(t, func(h http.Handler) http.Handler { return h })
	r := &Remote{URL: s.URL + "?labelSelector=" + strings.Repeat("%28", 2_000)}
	defer r.Close()
	for range 2 {
		if _, err := r.List(t.Context(), listwatch.Query{}); listwatch.CodeOf(err) != listwatch.Invalid {
			t.Errorf("got %v, want %v", err, listwatch.Invalid)
		}
	}
	if diff := cmp.Diff([]string{"QUERY", "GET", "QUERY", "GET"}, methods()); diff != "" {
		t.Errorf("methods (-want +got):\n%s", diff)
	}
}
