package mutants

import (
	"bytes"
	"net/http"
	"net/url"
)

// onRequest returns a function that wraps a handler. The wrapper changes each request
// before the handler sees it.
func onRequest(change func(r *http.Request)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			change(r)
			next.ServeHTTP(w, r)
		})
	}
}

// onQuery is like onRequest, but changes the query parameters.
func onQuery(change func(q url.Values)) func(http.Handler) http.Handler {
	return onRequest(func(r *http.Request) {
		q := r.URL.Query()
		change(q)
		r.URL.RawQuery = q.Encode()
	})
}

// withHeader returns a function that wraps a handler. The wrapper sets a header of each request
// before the handler sees it.
func withHeader(name, value string) func(http.Handler) http.Handler {
	return onRequest(func(r *http.Request) { r.Header.Set(name, value) })
}

// onHeader returns a function that wraps a handler. The wrapper changes the response
// headers before they are sent. It has no effect on a WebSocket.
func onHeader(change func(h http.Header)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(&headerWriter{w, change}, r)
		})
	}
}

type headerWriter struct {
	http.ResponseWriter
	change func(h http.Header)
}

// WriteHeader sends the changed headers.
func (h *headerWriter) WriteHeader(status int) {
	h.change(h.Header())
	h.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (h *headerWriter) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// onErrors returns a function that wraps a handler. The wrapper changes the status and body
// of error responses.
func onErrors(change func(status int, body []byte) (int, []byte)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			f := &errorWriter{ResponseWriter: w}
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

// errorWriter buffers error responses, and passes on all other responses.
type errorWriter struct {
	http.ResponseWriter
	status int // status of the error response; 0 if the response is not an error
	body   bytes.Buffer
}

// WriteHeader buffers the status of an error.
func (e *errorWriter) WriteHeader(status int) {
	if status >= 400 {
		e.status = status
		return
	}
	e.ResponseWriter.WriteHeader(status)
}

// Write buffers the body of an error.
func (e *errorWriter) Write(p []byte) (int, error) {
	if e.status != 0 {
		return e.body.Write(p)
	}
	return e.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (e *errorWriter) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// acceptEveryUpgrade returns a function that wraps a handler. The wrapper responds to upgrade
// requests with 101 and the header lines that lines returns, and then closes the connection.
func acceptEveryUpgrade(lines func(r *http.Request) string) func(http.Handler) http.Handler {
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
			_, _ = c.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
				lines(r) + "\r\n"))
		})
	}
}
