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
	return requestCounts{c.lists - old.lists, c.streamed - old.streamed, c.resumed - old.resumed, c.refused - old.refused, c.expired - old.expired}
}

// relists returns the number of requests for the complete state.
func (c requestCounts) relists() int { return c.lists + c.streamed }

func (s *requestCounter) snapshot() requestCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

func (s *requestCounter) protocols() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.protos
}

// RoundTrip counts r and its outcome.
func (s *requestCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.RoundTripper.RoundTrip(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if utilnet.IsConnectionRefused(err) {
		s.counts.refused++
	}
	if err != nil {
		return nil, err
	}
	s.protos[resp.Proto]++
	q := r.URL.Query()
	switch {
	case resp.StatusCode != http.StatusOK:
		return resp, nil
	case q.Get("watch") == "":
		if q.Get("continue") == "" {
			s.counts.lists++
		}
		return resp, nil
	case q.Get("sendInitialEvents") == "true":
		s.counts.streamed++
	default:
		s.counts.resumed++
	}
	resp.Body = &watchBody{ReadCloser: resp.Body, counter: s}
	return resp, nil
}

// A watchBody is the body of a watch response. It counts ERROR events with code 410.
type watchBody struct {
	io.ReadCloser
	counter *requestCounter
	line    []byte // the incomplete last line; owned by the reader
}

func (s *watchBody) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	rest := p[:n]
	for {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			s.line = append(s.line, rest...)
			return n, err
		}
		s.line = append(s.line, rest[:end]...)
		if bytes.HasPrefix(s.line, []byte(`{"type":"ERROR"`)) && bytes.Contains(s.line, []byte(`"code":410`)) {
			s.counter.mu.Lock()
			s.counter.counts.expired++
			s.counter.mu.Unlock()
		}
		s.line, rest = s.line[:0], rest[end+1:]
	}
}
