package loop

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/internal/h2peer"
	"github.com/listwatch/listwatch/internal/testhttp"
)

// A fixture is a server of the loop with net/http's client.
type fixture struct {
	*testhttp.Server
	client *http.Client
	loop   *Server
	http   *http.Server
}

// start starts a server in memory, in clear text unless secure is true.
func start(t *testing.T, h http.HandlerFunc, secure bool, configure ...func(*http.Server)) *fixture {
	t.Helper()
	f := &fixture{loop: &Server{}}
	f.Server = testhttp.Start(t, h, testhttp.Options{TLS: secure, Configure: func(hs *http.Server) {
		hs.Protocols = new(http.Protocols)
		hs.Protocols.SetHTTP2(true)
		hs.Protocols.SetUnencryptedHTTP2(true)
		for _, c := range configure {
			c(hs)
		}
		f.loop.Register(hs)
		f.http = hs
	}})
	tr := &http.Transport{
		DialContext: f.Dial, TLSClientConfig: f.ClientTLS, Protocols: new(http.Protocols),
		ExpectContinueTimeout: time.Hour,
	}
	tr.Protocols.SetHTTP2(true)
	tr.Protocols.SetUnencryptedHTTP2(true)
	f.client = &http.Client{Transport: tr}
	t.Cleanup(f.client.CloseIdleConnections)
	return f
}

// do sends a request and reads the response.
func (f *fixture) do(t *testing.T, method string, body io.Reader, header http.Header) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, f.URL("/path?query"), body)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(r.Header, header)
	resp, err := f.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(data)
}

func TestBodiesAndTrailersGoBothWays(t *testing.T) {
	for name, secure := range map[string]bool{"clear text": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Trailer", "Sum")
					if _, err := io.Copy(w, r.Body); err != nil {
						t.Error(err)
					}
					w.Header().Set("Sum", r.Trailer.Get("Sum"))
					w.Header().Set(http.TrailerPrefix+"Late", "yes")
				}, secure)
				data := strings.Repeat("0123456789abcdef", 1<<16)
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL("/"),
					io.MultiReader(strings.NewReader(data)))
				if err != nil {
					t.Fatal(err)
				}
				r.Trailer = http.Header{"Sum": {"42"}}
				resp, err := f.client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				got, err := io.ReadAll(resp.Body)
				if err != nil || string(got) != data {
					t.Errorf("got %d bytes, %v; want the %d bytes of the request", len(got), err, len(data))
				}
				if resp.Trailer.Get("Sum") != "42" || resp.Trailer.Get("Late") != "yes" {
					t.Errorf("got trailers %v, want Sum and Late", resp.Trailer)
				}
			})
		})
	}
}

func TestRequestsAreAsInNetHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got *http.Request
		f := start(t, func(_ http.ResponseWriter, r *http.Request) { got = r }, true)
		f.do(t, http.MethodGet, nil, http.Header{"Cookie": {"a=1; b=2"}, "Te": {"trailers"}})
		if got.Method != http.MethodGet || got.URL.String() != "/path?query" || got.RequestURI != "/path?query" ||
			got.Proto != "HTTP/2.0" || got.ProtoMajor != 2 {
			t.Errorf("got %+v", got)
		}
		if got.Host == "" || got.RemoteAddr == "" || got.TLS == nil || got.ContentLength != 0 || got.Body == nil {
			t.Errorf("got %+v", got)
		}
		if c := got.Header.Get("Cookie"); c != "a=1; b=2" {
			t.Errorf("got cookies %q, want them in one field", c)
		}
		if srv := got.Context().Value(http.ServerContextKey); srv != f.http {
			t.Errorf("got server %v in the context", srv)
		}
		<-got.Context().Done() // ends after the response
	})
}

func TestResponseHeadersAreCompleted(t *testing.T) {
	tests := []struct {
		name, method string
		handler      http.HandlerFunc
		want         http.Header
		body         string
	}{
		{
			"short body", http.MethodGet, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") },
			http.Header{"Content-Length": {"6"}, "Content-Type": {"text/html; charset=utf-8"}},
			"<html>",
		},
		{
			"flushed body", http.MethodGet,
			func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); io.WriteString(w, "late") },
			http.Header{},
			"late",
		},
		{
			"no body", http.MethodGet, func(http.ResponseWriter, *http.Request) {},
			http.Header{"Content-Length": {"0"}},
			"",
		},
		{
			"HEAD", http.MethodHead,
			func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "1000") },
			http.Header{"Content-Length": {"1000"}},
			"",
		},
		{
			"HEAD with a body", http.MethodHead,
			func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") },
			http.Header{"Content-Length": {"6"}, "Content-Type": {"text/html; charset=utf-8"}},
			"",
		},
		{
			"304", http.MethodGet, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "1000")
				w.WriteHeader(http.StatusNotModified)
			}, http.Header{}, "",
		},
		{
			"204", http.MethodGet, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusNoContent)
				if _, err := io.WriteString(w, "x"); err != http.ErrBodyNotAllowed {
					panic(err)
				}
			}, http.Header{}, "",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				resp, body := start(t, tt.handler, false).do(t, tt.method, nil, nil)
				resp.Header.Del("Date")
				if body != tt.body || len(resp.Header) != len(tt.want) {
					t.Errorf("got %q with %v, want %q with %v", body, resp.Header, tt.body, tt.want)
				}
				for name := range tt.want {
					if resp.Header.Get(name) != tt.want.Get(name) {
						t.Errorf("got %s %q, want %q", name, resp.Header.Get(name), tt.want.Get(name))
					}
				}
			})
		})
	}
}

func TestInformationalResponsesArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</style.css>")
			w.Header().Set("Content-Length", "4")
			w.WriteHeader(http.StatusEarlyHints)
			io.Copy(w, r.Body)
		}, false)
		var got []int
		continued := false
		trace := &httptrace.ClientTrace{
			Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				got = append(got, code)
				if h.Get("Content-Length") != "" { // RFC 9110, section 8.6
					t.Errorf("status %d has Content-Length", code)
				}
				return nil
			},
			Got100Continue: func() { continued = true },
		}
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodPost, f.URL("/"),
			strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Expect", "100-continue")
		resp, err := f.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body, err := io.ReadAll(resp.Body); string(body) != "body" || err != nil {
			t.Errorf("got body %q, %v", body, err)
		}
		if !continued || len(got) == 0 || got[0] != http.StatusEarlyHints {
			t.Errorf("got informational responses %v, continued %v; want 103 and 100", got, continued)
		}
	})
}

func TestAResetEndsTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		f := start(t, func(w http.ResponseWriter, r *http.Request) {
			//lint:ignore SA1019 the wrappers of Kubernetes API servers require it
			gone := w.(http.CloseNotifier).CloseNotify()
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			<-gone
			_, err := w.Write(make([]byte, 1<<20))
			ended <- err
		}, false)
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL("/"), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := f.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		cancel()
		if err := <-ended; err == nil {
			t.Error("Write to a stream that was reset returned no error")
		}
	})
}

func TestDeadlinesEndReadsAndWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		result := make(chan error, 2)
		f := start(t, func(w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			rc.SetReadDeadline(time.Now().Add(time.Second))
			_, err := r.Body.Read(make([]byte, 1))
			result <- err
			rc.SetWriteDeadline(time.Now().Add(time.Second))
			for err = nil; err == nil; {
				_, err = w.Write(make([]byte, 64<<10)) // the client does not read
			}
			result <- err
		}, false)
		body, hold := io.Pipe()
		defer hold.Close()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL("/"), body)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		resp, err := f.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		for range 2 {
			if err := <-result; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("got %v, want %v", err, os.ErrDeadlineExceeded)
			}
		}
		if d := time.Since(begin); d != 2*time.Second {
			t.Errorf("the deadlines took %v, want 2s", d)
		}
	})
}

func TestAFailedHandlerResetsItsStream(t *testing.T) {
	handlers := map[string]http.HandlerFunc{
		"ErrAbortHandler": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"Goexit":          func(http.ResponseWriter, *http.Request) { runtime.Goexit() },
		"panic":           func(http.ResponseWriter, *http.Request) { panic("oops") },
		"short body": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5")
			io.WriteString(w, "abc")
		},
	}
	for name, handler := range handlers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var logged bytes.Buffer
				f := start(t, handler, false, func(hs *http.Server) { hs.ErrorLog = log.New(&logged, "", 0) })
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.URL("/"), nil)
				if err != nil {
					t.Fatal(err)
				}
				if resp, err := f.client.Do(r); err == nil {
					_, err := io.ReadAll(resp.Body)
					resp.Body.Close()
					if err == nil {
						t.Error("the response is complete")
					}
				}
				synctest.Wait()
				if got := strings.Contains(logged.String(), "oops"); got != (name == "panic") {
					t.Errorf("logged %q", logged.String())
				}
			})
		})
	}
}

// An http.Transport that sends the body to a backend closes it while it reads it, if the backend
// has responded early, and then waits for the end of that Read.
func TestCloseOfTheBodyInterruptsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, func(_ http.ResponseWriter, r *http.Request) {
			read := make(chan error)
			go func() {
				_, err := r.Body.Read(make([]byte, 1))
				read <- err
			}()
			synctest.Wait()
			r.Body.Close()
			if err := <-read; err != http.ErrBodyReadAfterClose {
				t.Errorf("Read returned %v, want %v", err, http.ErrBodyReadAfterClose)
			}
		}, false)
		p := h2peer.Client(t, f.dial(t))
		p.Must(post(p, 1))
		p.ReadUntil(h2peer.IsReset(1))
	})
}

func TestUnreadBodiesDoNotHoldTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, func(http.ResponseWriter, *http.Request) {}, false)
		for range 20 { // together more than the connection's window
			resp, _ := f.do(t, http.MethodPost, bytes.NewReader(make([]byte, 256<<10)), nil)
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("got %v", resp.Status)
			}
		}
	})
}

func TestHeadersBeyondTheLimitAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, func(http.ResponseWriter, *http.Request) {}, false,
			func(hs *http.Server) { hs.MaxHeaderBytes = 8 << 10 })
		p := h2peer.Client(t, f.dial(t))
		for i, size := range []int{8 << 10, 13 << 10} {
			id := uint32(2*i + 1)
			p.Must(p.Request(id, ":method", "GET", ":scheme", "http", ":authority", "h", ":path", "/", "x",
				strings.Repeat("x", size)))
			p.ReadUntil(h2peer.IsHeaders(id))
			if got, want := p.Fields[id][":status"], []string{"200", "431"}[i]; got != want {
				t.Errorf("a field of %d bytes: got status %s, want %s", size, got, want)
			}
		}
	})
}

// The body may arrive before the response of status 431 was sent.
func TestHeadersBeyondTheLimitMayHaveABody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, func(http.ResponseWriter, *http.Request) {}, false,
			func(hs *http.Server) { hs.MaxHeaderBytes = 8 << 10 })
		p := h2peer.Client(t, f.dial(t))
		block := append(bytes.Clone(request), h2peer.HeaderBlock("x", strings.Repeat("x", 13<<10))...)
		for id := uint32(1); id < 40; id += 2 {
			var both bytes.Buffer
			framer := http2.NewFramer(&both, nil)
			p.Must(framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true}))
			p.Must(framer.WriteData(id, true, []byte("body")))
			_, err := p.Conn.Write(both.Bytes())
			p.Must(err)
			first := p.ReadUntil(func(f http2.Frame) bool { return f.Header().StreamID == id })
			if got := p.Fields[id][":status"]; got != "431" {
				t.Errorf("stream %d: got %v with status %q, want 431", id, first, got)
			}
		}
	})
}

// While http.Server.ConnState blocks, the connection must still serve requests. States that change
// in the meantime are merged.
func TestConnStateDoesNotHoldTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var states []http.ConnState
		f := start(t, func(http.ResponseWriter, *http.Request) {}, false, func(hs *http.Server) {
			hs.ConnState = func(_ net.Conn, s http.ConnState) {
				if s != http.StateNew {
					<-release
				}
				states = append(states, s)
			}
		})
		p := h2peer.Client(t, f.dial(t))
		for id := uint32(1); id < 20; id += 2 {
			p.Must(headers(p.Framer, int(id/2), true))
			p.ReadUntil(h2peer.IsHeaders(id))
		}
		close(release)
		synctest.Wait()
		p.Conn.Close()
		synctest.Wait()
		want := []http.ConnState{http.StateNew, http.StateActive, http.StateIdle, http.StateClosed}
		if !slices.Equal(states, want) {
			t.Errorf("got states %v, want %v", states, want)
		}
	})
}
