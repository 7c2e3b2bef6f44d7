package mutation

import (
	"bytes"
	"net/http"
	"net/url"
)

// OnRequest returns a handler that changes a request before the server sees it.
func OnRequest(change func(r *http.Request)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			change(r)
			next.ServeHTTP(w, r)
		})
	}
}

// OnQuery is onRequest for the parameters.
func OnQuery(change func(q url.Values)) func(http.Handler) http.Handler {
	return OnRequest(func(r *http.Request) {
		q := r.URL.Query()
		change(q)
		r.URL.RawQuery = q.Encode()
	})
}

// WithHeader returns a handler that sets a header of every request.
func WithHeader(name, value string) func(http.Handler) http.Handler {
	return OnRequest(func(r *http.Request) { r.Header.Set(name, value) })
}

// OnHeader returns a handler that changes the headers of a response before they go out. It can't do that to one that is taken over.
func OnHeader(change func(h http.Header)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(&headed{w, change}, r)
		})
	}
}

type headed struct {
	http.ResponseWriter
	change func(h http.Header)
}

// WriteHeader changes the headers.
func (w *headed) WriteHeader(status int) {
	w.change(w.Header())
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *headed) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// OnErrors returns a handler that changes the responses whose status is an error.
func OnErrors(change func(status int, body []byte) (int, []byte)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			f := &failing{ResponseWriter: w}
			next.ServeHTTP(f, r)
			if f.status != 0 {
				status, body := change(f.status, f.body.Bytes())
				w.Header().Del("Content-Length")
				w.WriteHeader(status)
				_, _ = w.Write(body)
			}
		})
	}
}

// failing keeps back a response that is an error.
type failing struct {
	http.ResponseWriter
	status int // 0: no error
	body   bytes.Buffer
}

// WriteHeader keeps back an error.
func (f *failing) WriteHeader(status int) {
	if status >= 400 {
		f.status = status
		return
	}
	f.ResponseWriter.WriteHeader(status)
}

// Write keeps back the body of an error.
func (f *failing) Write(p []byte) (int, error) {
	if f.status != 0 {
		return f.body.Write(p)
	}
	return f.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (f *failing) Unwrap() http.ResponseWriter { return f.ResponseWriter }

// Upgrading returns a handler that answers whoever asks for an upgrade with 101 and these lines, and says nothing more.
func Upgrading(lines func(r *http.Request) string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if len(r.Header.Values("Upgrade")) == 0 {
				next.ServeHTTP(w, r)
				return
			}
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer c.Close()
			_, _ = c.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" + lines(r) + "\r\n"))
		})
	}
}
