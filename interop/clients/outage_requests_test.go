package clients

import (
	"bytes"
	"io"
	"net/http"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// A requestCounter is the transport of a client and counts its requests.
type requestCounter struct {
	http.RoundTripper // Immutable after construction.

	mu sync.Mutex
	// Guarded by mu.
	counts requestCounts
	protos map[string]int // responses by protocol
}

// requestCounts counts the requests of a client and their outcomes.
type requestCounts struct {
	lists    int // successful lists; all pages of a list count as one
	streamed int // watches that started with initial events
	resumed  int // watches that started at a version
	refused  int // refused connections
	expired  int // watches that ended with code 410
}

func (c requestCounts) since(old requestCounts) requestCounts {
	return requestCounts{
		c.lists - old.lists, c.streamed - old.streamed, c.resumed - old.resumed,
		c.refused - old.refused, c.expired - old.expired,
	}
}

// relists returns the number of requests for the complete state.
func (c requestCounts) relists() int { return c.lists + c.streamed }

func (c *requestCounter) snapshot() requestCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

func (c *requestCounter) protocols() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.protos
}

// RoundTrip counts r and its outcome.
func (c *requestCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.RoundTripper.RoundTrip(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if utilnet.IsConnectionRefused(err) {
		c.counts.refused++
	}
	if err != nil {
		return nil, err
	}
	c.protos[resp.Proto]++
	q := r.URL.Query()
	switch {
	case resp.StatusCode != http.StatusOK:
		return resp, nil
	case q.Get("watch") == "":
		if q.Get("continue") == "" {
			c.counts.lists++
		}
		return resp, nil
	case q.Get("sendInitialEvents") == "true":
		c.counts.streamed++
	default:
		c.counts.resumed++
	}
	resp.Body = &watchBody{ReadCloser: resp.Body, counter: c}
	return resp, nil
}

// A watchBody is the body of a watch response. It counts ERROR events with code 410.
type watchBody struct {
	io.ReadCloser
	counter *requestCounter
	line    []byte // the incomplete last line; owned by the reader
}

func (w *watchBody) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	rest := p[:n]
	for {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			w.line = append(w.line, rest...)
			return n, err
		}
		w.line = append(w.line, rest[:end]...)
		if bytes.HasPrefix(w.line, []byte(`{"type":"ERROR"`)) && bytes.Contains(w.line, []byte(`"code":410`)) {
			w.counter.mu.Lock()
			w.counter.counts.expired++
			w.counter.mu.Unlock()
		}
		w.line, rest = w.line[:0], rest[end+1:]
	}
}
