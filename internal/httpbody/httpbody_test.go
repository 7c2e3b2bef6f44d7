package httpbody_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/internal/httpbody"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/internal/testhttp"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// handler refuses requests for /refused with 401, and reads the bodies of all others.
func handler(stopping context.Context) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpbody.Guard(w, r)
		code := http.StatusOK
		if r.URL.Path == "/refused" {
			httpbody.Settle(w, r)
			code = http.StatusUnauthorized
		} else if r.Method == http.MethodPost {
			data, err := httpbody.Read(stopping, w, r, 1000)
			if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
				code = http.StatusRequestEntityTooLarge
			} else if err != nil {
				code = http.StatusBadRequest
			}
			if err != nil {
				httpbody.Settle(w, r)
			}
			defer fmt.Fprintf(w, "%d bytes", len(data))
		}
		w.WriteHeader(code)
	})
}

// connect opens a connection to a server and sends text.
func connect(t *testing.T, s *testhttp.Server, text string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := s.Dial(t.Context(), "tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

func TestUnfinishedBodyEndsItsConnection(t *testing.T) {
	const length, chunks = "Content-Length: 100\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n"
	for _, tt := range []struct {
		name, text string
		want       int
		within     time.Duration
	}{
		{"accepted", "POST / HTTP/1.1\r\nHost: h\r\n" + length, 400, httpbody.Timeout},
		{"accepted in part", "POST / HTTP/1.1\r\nHost: h\r\n" + length + "{", 400, httpbody.Timeout},
		{"accepted in chunks", "POST / HTTP/1.1\r\nHost: h\r\n" + chunks + "5\r\nab", 400, httpbody.Timeout},
		{"HTTP/1.0", "POST / HTTP/1.0\r\n" + length, 400, httpbody.Timeout},
		{"too large", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n", 413, time.Second},
		{"refused", "POST /refused HTTP/1.1\r\nHost: h\r\n" + length, 401, time.Second},
		{"refused in part", "POST /refused HTTP/1.1\r\nHost: h\r\n" + length + "{", 401, time.Second},
		{"refused with Expect", "POST /refused HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n" + length, 401, 0},
		{"a GET", "GET / HTTP/1.1\r\nHost: h\r\n" + length, 200, 0},
		{"a GET in chunks", "GET / HTTP/1.1\r\nHost: h\r\n" + chunks, 200, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := testhttp.Start(t, handler(t.Context()), testhttp.Options{})
				c, in := connect(t, s, tt.text)
				defer c.Close()
				start := time.Now()
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); res.StatusCode != tt.want || took > tt.within+time.Second {
					t.Errorf("got %d after %v, want %d after %v", res.StatusCode, took, tt.want, tt.within)
				}
				if _, err := io.Copy(io.Discard, in); err != nil {
					t.Errorf("the end of the connection: %v", err)
				}
				if took := time.Since(start); took > tt.within+2*time.Second {
					t.Errorf("the connection was open for %v", took)
				}
			})
		})
	}
}

func TestFinishedBodyKeepsItsConnection(t *testing.T) {
	body := "Host: h\r\nContent-Length: 5\r\n\r\nhello"
	for _, text := range []string{
		"POST / HTTP/1.1\r\n" + body, "POST /refused HTTP/1.1\r\n" + body, "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := testhttp.Start(t, handler(t.Context()), testhttp.Options{})
			c, in := connect(t, s, text)
			defer c.Close()
			for i := range 2 {
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatalf("%.20q: response %d: %v", text, i+1, err)
				}
				io.Copy(io.Discard, res.Body)
				time.Sleep(time.Hour)
				if i == 0 {
					io.WriteString(c, text)
				}
			}
		})
	}
}

// net/http cancels the context of a request if it cannot read the connection, so the read deadline
// for a body must not remain set after the body.
func TestHandlerMayTakeLongAfterItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testhttp.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			httpbody.Guard(w, r)
			if _, err := httpbody.Read(t.Context(), w, r, -1); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Hour)
			if err := r.Context().Err(); err != nil {
				t.Errorf("the context of the request: %v", err)
			}
		}), testhttp.Options{})
		c, in := connect(t, s, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello")
		defer c.Close()
		if _, err := http.ReadResponse(in, nil); err != nil {
			t.Error(err)
		}
	})
}

func TestStoppingServerDoesNotWaitForBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopping, stop := context.WithCancel(t.Context())
		s := testhttp.Start(t, handler(stopping), testhttp.Options{})
		c, in := connect(t, s, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n{")
		defer c.Close()
		synctest.Wait()
		start := time.Now()
		stop()
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); res.StatusCode != 400 || took > 3*time.Second {
			t.Errorf("got %d after %v, want 400 within 3 s", res.StatusCode, took)
		}
	})
}

func TestHTTP10ConnectionsAlwaysEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testhttp.Start(t, handler(t.Context()), testhttp.Options{})
		// net/http drops the Transfer-Encoding and would take the chunk for another request.
		c, in := connect(t, s,
			"POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
		defer c.Close()
		rest, err := io.ReadAll(in)
		if strings.Count(string(rest), "HTTP/1") != 1 || err != nil {
			t.Errorf("got %q, %v, want one response and the end", rest, err)
		}
	})
}
