package faults

import (
	"bytes"
	"io"
	"net/http"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// sessions is the transport of a client and counts what goes over it.
type sessions struct {
	http.RoundTripper // Immutable after construction.

	mu sync.Mutex
	// Guarded by mu.
	counts counts
	protos map[string]int // of the answers
}

// counts are how often something happened.
type counts struct {
	lists    int // answered, whatever the number of their pages
	streamed int // watches that began with the state
	resumed  int // watches that went on from a version
	refused  int // connections
	expired  int // watches that ended with a 410
}

func (c counts) since(was counts) counts {
	return counts{c.lists - was.lists, c.streamed - was.streamed, c.resumed - was.resumed, c.refused - was.refused, c.expired - was.expired}
}

// relists are how often the client asked for the state.
func (c counts) relists() int { return c.lists + c.streamed }

func (s *sessions) now() counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

func (s *sessions) protocols() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.protos
}

// RoundTrip counts r and what becomes of it.
func (s *sessions) RoundTrip(r *http.Request) (*http.Response, error) {
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
	resp.Body = &stream{ReadCloser: resp.Body, sessions: s}
	return resp, nil
}

// A stream is the body of a watch. It notices a 410.
type stream struct {
	io.ReadCloser
	sessions *sessions
	line     []byte // what has come of the last line; one reader owns it
}

func (s *stream) Read(p []byte) (int, error) {
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
			s.sessions.mu.Lock()
			s.sessions.counts.expired++
			s.sessions.mu.Unlock()
		}
		s.line, rest = s.line[:0], rest[end+1:]
	}
}
