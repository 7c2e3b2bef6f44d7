package watchserver_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// eventsQuery sends a watch with the given field Events, as a QUERY or a GET.
func (f *fixture) eventsQuery(method, events, params string) *http.Response {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), method, f.URL("/flags"), strings.NewReader(params))
	if err != nil {
		f.Fatal(err)
	}
	if method == http.MethodGet {
		r.Body, r.ContentLength, r.URL.RawQuery = http.NoBody, 0, params
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json-seq")
	if events != "" {
		r.Header.Set("Events", events)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	tr := f.Network.HTTPTransport(protocols)
	f.Cleanup(tr.CloseIdleConnections)
	resp, err := tr.RoundTrip(r)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { resp.Body.Close() })
	return resp
}

// A watch by QUERY is an Events Query: the state and the notifications in one response.
func TestQueryIsAnEventsQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		f.put("a", nil)
		start := time.Now()
		resp := f.eventsQuery(transport.MethodQuery, "duration=60",
			"watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1")
		for name, want := range map[string]string{
			"Events": "duration=60", "Incremental": "?1", "Content-Type": "application/json-seq",
			"Accept-Query": "application/x-www-form-urlencoded, application/json",
		} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
		f.put("b", nil)
		body, err := io.ReadAll(resp.Body)
		if err != nil || time.Since(start) != time.Minute {
			t.Errorf("the response ended after %v with %v, want a clean end after 60 s", time.Since(start), err)
		}
		records := strings.Split(string(body), "\x1e")[1:]
		for i, want := range []string{`{"type":"ADDED"`, `{"type":"BOOKMARK"`, `{"type":"ADDED"`, `{"type":"BOOKMARK"`} {
			if len(records) < 4 || !strings.HasPrefix(records[i], want) {
				t.Fatalf("got the records %q, want number %d to begin with %s", records, i, want)
			}
		}
	})
}

func TestEventsQueryNegotiatesDuration(t *testing.T) {
	const random = "between 50 and 100" // from the timeout of the server
	tests := []struct{ method, events, params, want string }{
		{transport.MethodQuery, "", "watch=1", random},
		{transport.MethodQuery, "duration=0", "watch=1", random},
		{transport.MethodQuery, "duration=60", "watch=1", "duration=60"},
		{transport.MethodQuery, "duration=1.5", "watch=1", "duration=2"},
		{transport.MethodQuery, "other, duration=1;x=y , last", "watch=1", "duration=1"},
		{transport.MethodQuery, "duration=60", "watch=1&timeoutSeconds=5", "duration=5"},
		{transport.MethodQuery, "duration=-1", "watch=1", random},
		{transport.MethodQuery, "duration=1e3", "watch=1", random},
		{transport.MethodQuery, `duration="60"`, "watch=1", random},
		{transport.MethodQuery, "duration=999999999999", "watch=1", "duration=31536000"},
		{transport.MethodQuery, "duration=60", "limit=1", ""},
		{http.MethodGet, "duration=60", "watch=1", ""},
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.events+" "+tt.params, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, func(s *watchserver.Server) { s.Timing.Timeout = 50 * time.Second })
				resp := f.eventsQuery(tt.method, tt.events, tt.params)
				got := resp.Header.Get("Events")
				var seconds int
				if tt.want == random {
					if _, err := fmt.Sscanf(got, "duration=%d", &seconds); err != nil || seconds < 50 || seconds > 100 {
						t.Errorf("got Events %q, want a duration %s", got, random)
					}
				} else if got != tt.want {
					t.Errorf("got %s and Events %q, want %q", resp.Status, got, tt.want)
				}
			})
		})
	}
}

// The permission of a user ends before the watch would.
func TestEventsQueryEndsWithItsPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		f.endpoint = func(*http.Request) watchserver.Endpoint {
			return watchserver.Endpoint{Source: f.flags, Until: time.Now().Add(7 * time.Second)}
		}
		resp := f.eventsQuery(transport.MethodQuery, "duration=60", "watch=1")
		if got := resp.Header.Get("Events"); got != "duration=7" {
			t.Errorf("got Events %q, want duration=7", got)
		}
	})
}
