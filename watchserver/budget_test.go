package watchserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// from returns r as if it came from the given address.
func from(address string, r *http.Request) *http.Request {
	r.RemoteAddr = address + ":1"
	return r
}

// wantBusy checks that err becomes a response of status 429 with Retry-After, and names the limit.
func wantBusy(t *testing.T, err error, limit string) {
	t.Helper()
	e, ok := errors.AsType[*apihttp.LimitError](err)
	w := httptest.NewRecorder()
	if err != nil {
		watchserver.WriteError(w, httptest.NewRequest("GET", "/", nil), err)
	}
	if !ok || e.Name != limit {
		t.Errorf("got %v, want the limit %s", err, limit)
	}
	if w.Code != 429 || w.Header().Get("Retry-After") == "" {
		t.Errorf("got status %d, %v, want 429 with Retry-After", w.Code, w.Header())
	}
}

func TestRequestsBeyondTheLimitGet429(t *testing.T) {
	s := &watchserver.Server{Limits: watchserver.Limits{Requests: 4}}
	var others []error
	err := begin(s, "192.0.2.1", func() {
		others = append(others, begin(s, "192.0.2.1", func() {
			wantBusy(t, begin(s, "192.0.2.1"), "requests")
			others = append(others, begin(s, "192.0.2.2"))
		}))
	})
	if err := errors.Join(append(others, err)...); err != nil {
		t.Errorf("two reads of one client, and one of another: %v", err)
	}
	if err := begin(s, "192.0.2.1"); err != nil {
		t.Errorf("after the end of the reads: %v", err)
	}
}

func TestListsBeyondTheMemoryGet429(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A list takes 256 KiB, and one client may take half of the memory.
		s := &watchserver.Server{Source: blockedSource{}, Limits: watchserver.Limits{Memory: 1 << 20, Requests: 2}}
		ctx, release := context.WithCancel(t.Context())
		get := func(address string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, from(address, httptest.NewRequestWithContext(ctx, "GET", "/", nil)))
			return w
		}
		for range 2 {
			go get("192.0.2.1")
		}
		synctest.Wait()
		if w := get("192.0.2.1"); w.Code != 429 || w.Header().Get("Retry-After") == "" {
			t.Errorf("the attacker's third list: got %d, %v, want 429 with Retry-After", w.Code, w.Header())
		}
		if err := begin(s, "192.0.2.1"); err != nil {
			t.Errorf("a read while lists take the memory: %v", err)
		}
		go get("192.0.2.2")
		synctest.Wait()
		if used, _ := s.Usage(); used.RequestBytes != 3*256<<10 || used.Requests != 0 {
			t.Errorf("three lists of two clients: got %+v, want 768 KiB and no seat", used)
		}
		release()
		synctest.Wait()
		if used, _ := s.Usage(); used.RequestBytes != 0 {
			t.Errorf("after the end of the lists: got %+v", used)
		}
	})
}

func TestRequestLimitDoesNotEndWatches(t *testing.T) {
	onEachTransport(t, func(s *watchserver.Server) { s.Limits.Requests = 1 }, func(f *fixture, c transport.Client) {
		watch := f.watch(c, "")
		err := begin(f.WatchServer, "192.0.2.1", func() {
			if err := begin(f.WatchServer, "192.0.2.1"); err == nil {
				f.Error("the limit was not reached")
			}
			f.put("a", nil)
			watch.want("ADDED a")
			f.watch(c, "").want("ADDED a")
		})
		if err != nil {
			f.Fatal(err)
		}
	})
}

func TestListsTakeNoSeat(t *testing.T) {
	flags := memory.New[Flag]()
	large := map[string]string{"x": strings.Repeat("x", 200<<10)}
	for i := range 16 {
		if _, err := flags.Create(t.Context(),
			Flag{Metadata: listwatch.Metadata{Name: fmt.Sprint(i), Annotations: large}}); err != nil {
			t.Fatal(err)
		}
	}
	s := &watchserver.Server{Source: flags, Limits: watchserver.Limits{Requests: 1}}
	err := begin(s, "192.0.2.1", func() {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != 200 || w.Body.Len() < 16*200<<10 {
			t.Errorf("a list while all seats are taken: got %d %.100s", w.Code, w.Body)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// admit passes r through the gate of s to serve, and returns its error.
func admit(s *watchserver.Server, r *http.Request, serve apihttp.HandlerFunc) (err error) {
	s.Gate(apihttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted) error {
		err = serve(w, r, a)
		return nil
	})).ServeHTTP(httptest.NewRecorder(), r)
	return err
}

// begin begins a read, and calls the functions in during before it ends.
func begin(s *watchserver.Server, address string, during ...func()) error {
	r := from(address, httptest.NewRequest("GET", "/", nil))
	return admit(s, r, func(_ http.ResponseWriter, _ *http.Request, a *apihttp.Admitted) error {
		err := a.Begin()
		for _, f := range during {
			f()
		}
		return err
	})
}

// write reads the body of a write, and calls the functions in during before it ends. It
// returns an error if the write exceeds a limit.
func write(s *watchserver.Server, address, body string, during ...func()) error {
	r := from(address, httptest.NewRequest("POST", "/", strings.NewReader(body)))
	return admit(s, r, func(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted) error {
		_, err := a.ReadBody(w, r, 10_000)
		for _, f := range during {
			f()
		}
		return err
	})
}

func TestBodiesBeyondTheMemoryGet429(t *testing.T) {
	// A body counts four times, and one client may take half of the memory, so it may send 10,000
	// bytes.
	s := &watchserver.Server{Limits: watchserver.Limits{Memory: 80_000}}
	large := strings.Repeat("x", 6000)
	err := write(s, "192.0.2.1", large, func() {
		wantBusy(t, write(s, "192.0.2.1", large), "memory")
		if err := write(s, "192.0.2.2", large); err != nil {
			t.Errorf("another client: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := write(s, "192.0.2.1", large); err != nil {
		t.Errorf("after the end of the first write: %v", err)
	}
}

// An attacker who never ends the bodies of its writes took all seats.
func TestArrivingBodyTakesNoSeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &watchserver.Server{Limits: watchserver.Limits{Requests: 2, Memory: 100 << 20}}
		body, client := io.Pipe()
		r := from("192.0.2.1", httptest.NewRequest("POST", "/", body))
		r.ContentLength = 3 << 20
		done := make(chan error)
		requireUsage := func(when string, seats, writes, bytes int64) {
			t.Helper()
			synctest.Wait()
			if used, _ := s.Usage(); used.Requests != seats || used.Writes != writes || used.RequestBytes != bytes {
				t.Errorf("%s: got %+v, want %d seats, %d writes and %d bytes", when, used, seats, writes, bytes)
			}
		}
		go func() { // ends with the write
			done <- admit(s, r, func(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted) error {
				_, err := a.ReadBody(w, r, 3<<20)
				if err == nil {
					requireUsage("when the body has arrived", 1, 1, 4*3<<20)
				}
				return err
			})
		}()
		client.Write([]byte("x"))
		requireUsage("after one byte", 0, 0, 4*1<<10)
		client.Write(make([]byte, 1<<20))
		requireUsage("after 1 MiB", 0, 0, 4*(1<<20+64<<10))
		client.Write(make([]byte, 2<<20-1))
		client.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		requireUsage("after the write", 0, 0, 0)
	})
}

// stalledWriter is the response to a client that does not read.
type stalledWriter struct {
	*httptest.ResponseRecorder
	read chan struct{}
}

func (w *stalledWriter) Write(p []byte) (int, error) {
	<-w.read
	return w.ResponseRecorder.Write(p)
}

func TestUnreadResponseTakesMemoryButNoSeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &watchserver.Server{Limits: watchserver.Limits{Requests: 2, Writes: 2, Memory: 4 << 20}}
		for _, method := range []string{"GET", "POST"} {
			w := &stalledWriter{httptest.NewRecorder(), make(chan struct{})}
			done := make(chan struct{})
			go func() { // ends when the client reads
				defer close(done)
				s.Gate(apihttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted) error {
					if method == "GET" {
						if err := a.Begin(); err != nil {
							return err
						}
					} else if _, err := a.ReadBody(w, r, 10); err != nil {
						return err
					}
					apihttp.WriteBody(w, r, 200, make([]byte, 1<<20))
					return nil
				})).ServeHTTP(w, from("192.0.2.1", httptest.NewRequest(method, "/", strings.NewReader("{}"))))
			}()
			synctest.Wait()
			if used, _ := s.Usage(); used.Requests != 0 || used.Writes != 0 || used.RequestBytes < 256<<10 {
				t.Errorf("%s: got %+v, want no seat, and 256 KiB for the response", method, used)
			}
			close(w.read)
			<-done
			if used, _ := s.Usage(); used.RequestBytes != 0 || w.Code != 200 {
				t.Errorf("%s: got status %d and %+v after the response", method, w.Code, used)
			}
		}
	})
}

func TestWritesBeyondTheLimitGet429(t *testing.T) {
	s := &watchserver.Server{Limits: watchserver.Limits{Writes: 2}}
	err := write(s, "192.0.2.1", "x", func() {
		wantBusy(t, write(s, "192.0.2.1", "x"), "writes")
		if err := write(s, "192.0.2.2", "x"); err != nil {
			t.Errorf("another client: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := write(s, "192.0.2.1", "x"); err != nil {
		t.Errorf("after the end of the first write: %v", err)
	}
}

func TestOnlyTrustedProxiesNameTheClient(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for _, tt := range []struct {
		trusted            []netip.Prefix
		connection, header string
		want               string
	}{
		{nil, "10.0.0.1", "192.0.2.1", "10.0.0.1"},
		{proxies, "10.0.0.1", "192.0.2.1", "192.0.2.1"},
		{proxies, "10.0.0.1", "203.0.113.9, 192.0.2.1, 10.0.0.2", "192.0.2.1"},
		{proxies, "192.0.2.7", "203.0.113.9", "192.0.2.7"},
		{proxies, "10.0.0.1", "", "10.0.0.1"},
		{proxies, "10.0.0.1", "unknown", "10.0.0.1"},
	} {
		got := ""
		s := &watchserver.Server{
			Source: blockedSource{}, Access: watchserver.Access{TrustedProxies: tt.trusted}, Trace: &watchserver.Trace{
				Refused: func(_ context.Context, r watchserver.Request, _ error) { got = r.Client },
			},
		}
		r := from(tt.connection, httptest.NewRequest("PUT", "/", nil))
		if tt.header != "" {
			r.Header.Set("X-Forwarded-For", tt.header)
		}
		s.ServeHTTP(httptest.NewRecorder(), r)
		if got != tt.want {
			t.Errorf("from %s with X-Forwarded-For %q: got %q, want %q", tt.connection, tt.header, got, tt.want)
		}
	}
}

func TestKnownUserIsTheClient(t *testing.T) {
	s := &watchserver.Server{Limits: watchserver.Limits{Writes: 2}}
	var as func(user watchserver.User, during ...watchserver.User) error
	as = func(user watchserver.User, during ...watchserver.User) error {
		r := from("192.0.2.1", httptest.NewRequest("POST", "/", strings.NewReader("x")))
		r = r.WithContext(watchserver.WithUser(r.Context(), user))
		return admit(s, r, func(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted) error {
			_, err := a.ReadBody(w, r, 10)
			if err == nil && len(during) > 0 {
				err = as(during[0], during[1:]...)
			}
			return err
		})
	}
	if err := as(watchserver.User{Name: "ann"}, watchserver.User{Name: "bob"}); err != nil {
		t.Errorf("two users at one address: %v", err)
	}
	anonymous := watchserver.User{Name: "anonymous", Groups: []string{"system:unauthenticated"}}
	wantBusy(t, as(anonymous, anonymous), "writes")
}
