package http2

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/NYTimes/gziphandler"
	"github.com/listwatch/listwatch/internal/httpbody"
	"github.com/listwatch/listwatch/internal/testhttp"
	"github.com/listwatch/listwatch/transport/h2"
)

// An exchange is a request that every client sends.
type exchange struct {
	Name    string            `json:"name"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Header  map[string]string `json:"header"`
	Body    int64             `json:"body"`    // the number of bytes of the pattern to send
	Trailer bool              `json:"trailer"` // send the trailer sum, if the client can
	Stream  bool              `json:"stream"`  // send the body as a stream of unknown length

	status int
	length int64 // of the response, if it is a part of the pattern; otherwise negative
}

func exchanges(bulk int64) []exchange {
	path := func(p string) string { return fmt.Sprint(p, "?n=", bulk) }
	return []exchange{
		{Name: "GET", Method: "GET", Path: "/download?n=1000", status: 200, length: 1000},
		{Name: "HEAD", Method: "HEAD", Path: "/download?n=1000", status: 200, length: 0},
		{Name: "no content", Method: "DELETE", Path: "/none", status: 204, length: 0},
		{
			Name: "not modified", Method: "GET", Path: "/unmodified", Header: map[string]string{"if-none-match": `"a"`},
			status: 304, length: 0,
		},
		{
			Name: "large headers", Method: "GET", Path: "/headers",
			Header: map[string]string{"x-large": strings.Repeat("!", 30<<10)}, status: 200, length: 10,
		},
		{Name: "103 Early Hints", Method: "GET", Path: "/hints", status: 200, length: 10},
		{
			Name: "100 Continue", Method: "POST", Path: "/upload", Header: map[string]string{"expect": "100-continue"},
			Body: 1000, status: 200, length: 10,
		},
		{Name: "trailers", Method: "POST", Path: "/echo", Body: 1000, Trailer: true, status: 200, length: 1000},
		{
			Name: "full duplex", Method: "POST", Path: "/echo", Body: 4 << 20, Trailer: true, Stream: true, status: 200,
			length: 4 << 20,
		},
		{Name: "an early response", Method: "POST", Path: "/early", Body: 4 << 20, status: 404, length: -1},
		{Name: "a body beyond the limit", Method: "POST", Path: "/limited", Body: 4 << 20, status: 413, length: -1},
		{
			Name: "gzip", Method: "GET", Path: "/gzip", Header: map[string]string{"accept-encoding": "gzip"},
			status: 200,
			length: -1,
		},
		{Name: "TimeoutHandler in time", Method: "GET", Path: "/timeout/download?n=1000", status: 200, length: 1000},
		{Name: "TimeoutHandler too late", Method: "GET", Path: "/timeout/hold", status: 503, length: -1},
		{
			Name: "through ReverseProxy", Method: "POST", Path: "/proxy/echo", Body: 1 << 20, Trailer: true,
			status: 200,
			length: 1 << 20,
		},
		{Name: "103 through ReverseProxy", Method: "GET", Path: "/proxy/hints", status: 200, length: 10},
		{Name: "an abort before the head", Method: "GET", Path: "/abort", status: 0, length: 0},
		{Name: "an abort within the body", Method: "GET", Path: "/abort?n=1000", status: 200, length: 1000},
		{Name: "a large download", Method: "GET", Path: path("/download"), status: 200, length: bulk},
		{Name: "a large upload", Method: "POST", Path: "/upload", Body: bulk, status: 200, length: 10},
		{Name: "GET at the end", Method: "GET", Path: "/download?n=1000", status: 200, length: 1000},
	}
}

// handlers are the handlers that both servers call. The response header proto has the protocol of
// the request.
func handlers(t *testing.T) *http.ServeMux {
	mux := http.NewServeMux()
	handle := func(path string, f http.HandlerFunc) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Proto", r.Proto)
			// Otherwise, a ReverseProxy sets it if data arrives with the header.
			w.Header().Set("Content-Type", "application/octet-stream")
			f(w, r)
		})
	}
	handle("/download", func(w http.ResponseWriter, r *http.Request) {
		n := number(r)
		w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
		io.Copy(w, pattern(n))
	})
	handle("/none", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	handle("/unmodified", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"a"`)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader("content"))
	})
	handle("/headers", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Large", r.Header.Get("X-Large"))
		w.Header()["X-Many"] = strings.Split(strings.Repeat("a,b,c,", 10), ",")
		io.Copy(w, pattern(10))
	})
	handle("/hints", func(w http.ResponseWriter, _ *http.Request) {
		for _, link := range []string{"</a.css>; rel=preload; as=style", "</b.js>; rel=preload; as=script"} {
			w.Header().Add("Link", link)
			w.WriteHeader(http.StatusEarlyHints)
		}
		io.Copy(w, pattern(10))
	})
	handle("/echo", func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Trailer", "Sum")
		w.WriteHeader(http.StatusOK)
		http.NewResponseController(w).Flush()
		if n, err := io.Copy(w, r.Body); err != nil || r.ContentLength >= 0 && n != r.ContentLength {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Sum", r.Trailer.Get("Sum"))
		w.Header().Set(http.TrailerPrefix+"Late", "yes")
	})
	handle("/early", http.NotFound)
	handle("/limited", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, 1000)); err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		}
	})
	handle("/upload", func(w http.ResponseWriter, r *http.Request) {
		sum := newSum()
		n, err := io.Copy(sum, r.Body)
		if err != nil || sum.text() != sumOf(n) {
			http.Error(w, fmt.Sprintf("%d bytes, %v", n, err), http.StatusBadRequest)
			return
		}
		io.Copy(w, pattern(10))
	})
	handle("/hold", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	handle("/abort", func(w http.ResponseWriter, r *http.Request) {
		if n := number(r); n > 0 {
			io.Copy(w, pattern(n))
			http.NewResponseController(w).Flush()
			<-time.After(200 * time.Millisecond) // Chromium may drop data that arrives with it
		}
		panic(http.ErrAbortHandler)
	})
	text := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("listwatch ", 1000)) }
	handle("/gzip", gziphandler.GzipHandler(http.HandlerFunc(text)).ServeHTTP)
	handle("/timeout/", http.StripPrefix("/timeout", http.TimeoutHandler(mux, 200*time.Millisecond, "late")).ServeHTTP)
	mux.Handle("/grpc.testing.TestService/", newGRPCServer(t))
	backend := testhttp.Start(t, mux, testhttp.Options{Sockets: true}) // HTTP/1.1
	mux.Handle("/proxy/", http.StripPrefix("/proxy", reverseProxy(t, backend.URL(""), http.DefaultTransport)))
	return mux
}

func number(r *http.Request) int64 {
	n, _ := strconv.ParseInt(r.FormValue("n"), 10, 64) // absent means 0
	return n
}

func reverseProxy(t *testing.T, target string, transport http.RoundTripper) http.Handler {
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	return httpbody.Forward(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }, Transport: transport, FlushInterval: -1,
	})
}

// A server serves the handlers over TLS.
type server struct {
	*testhttp.Server
	mux *http.ServeMux
}

// start starts our server, or net/http's.
func start(t *testing.T, netHTTP bool) *server {
	mux := handlers(t)
	return &server{
		mux: mux,
		Server: testhttp.Start(t, mux, testhttp.Options{TLS: true, Sockets: true, Configure: func(hs *http.Server) {
			h2.Configure(hs, h2.Config{NetHTTP: netHTTP})
		}}),
	}
}

// period is the period of the pattern, whose byte i is i modulo 251.
const period = 251

var periods = bytes.Repeat(onePeriod(), 256)

func onePeriod() []byte {
	p := make([]byte, period)
	for i := range p {
		p[i] = byte(i)
	}
	return p
}

// pattern returns a reader of the first n bytes of the pattern.
func pattern(n int64) io.Reader { return io.LimitReader(&endless{}, n) }

type endless struct{ at int }

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, periods[e.at:])
	e.at = (e.at + n) % period
	return n, nil
}
