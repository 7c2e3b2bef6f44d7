package oidc

import (
	"cmp"
	"net/http"
	"sync"
	"time"
)

// The provider receives at most maxFetches requests for keys in each fetchPeriod.
const (
	maxFetches  = 5
	fetchPeriod = 5 * time.Second
)

// A throttle limits the rate of requests for keys. Without it, anyone could make this server flood
// the provider with requests, because the key set sends one for each token whose signature fits no
// key. The key set sends one request at a time for all waiting tokens, so a throttle delays only
// tokens with new keys and forged tokens.
type throttle struct {
	next http.RoundTripper

	mu     sync.Mutex
	starts [maxFetches]time.Time // of the last requests; guarded by mu
	oldest int                   // an index of starts; guarded by mu
}

// RoundTrip implements http.RoundTripper.
func (t *throttle) RoundTrip(r *http.Request) (*http.Response, error) {
	timer := time.NewTimer(time.Until(t.reserve()))
	defer timer.Stop()
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-timer.C:
		return t.next.RoundTrip(r)
	}
}

// reserve returns the time at which the next request may start.
func (t *throttle) reserve() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := time.Now()
	if first := t.starts[t.oldest].Add(fetchPeriod); at.Before(first) {
		at = first
	}
	t.starts[t.oldest] = at
	t.oldest = (t.oldest + 1) % maxFetches
	return at
}

// requestTimeout limits a request to the provider if the HTTPClient has no Timeout. All requests
// with tokens wait for the same answer, so a provider that never responds would hold them all.
const requestTimeout = 10 * time.Second

// throttled returns a copy of c that limits the rate and the time of requests.
func throttled(c *http.Client) *http.Client {
	next := c.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	limited := *c
	limited.Transport, limited.Timeout = &throttle{next: next}, cmp.Or(c.Timeout, requestTimeout)
	return &limited
}
