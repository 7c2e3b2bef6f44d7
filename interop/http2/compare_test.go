package http2

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"hash"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var bulk = flag.Int64("bulk", 64<<20, "the size of the large bodies in bytes")

// A result is what a client saw of the response to an exchange. Clients hide some parts of it.
type result struct {
	Status  int               `json:"status"`
	Early   []int             `json:"early"` // statuses of 1xx
	Header  map[string]string `json:"header"`
	Length  int64             `json:"length"`
	Sum     string            `json:"sum"` // SHA-256 of the body
	Trailer map[string]string `json:"trailer"`
	Error   string            `json:"error"`
}

// A defect is an error that a client reports with net/http's server and not with ours. It need not
// happen each time. In all of them, net/http's server has written the end of a response and the
// RST_STREAM that ends the request together.
type defect struct{ client, exchange, text string }

var defects = []defect{
	{"curl", "an early response", "transfer closed"},
	{"curl", "a body beyond the limit", "transfer closed"},
	{"Node.js", "an early response", "does not close"},
	{"Node.js", "a body beyond the limit", "does not close"},
}

// isKnown reports whether r, with net/http's server, has an error of defects.
func (r result) isKnown(client, exchange string) bool {
	return slices.ContainsFunc(defects, func(d defect) bool {
		return d.client == client && d.exchange == exchange && strings.Contains(r.Error, d.text)
	})
}

// TestClientsSeeTheSameAsWithNetHTTP lets each client send all exchanges to both servers. It
// compares the status, the headers, the bodies, the trailers, and the errors of the clients.
func TestClientsSeeTheSameAsWithNetHTTP(t *testing.T) {
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			size := *bulk >> c.shift
			ours, theirs := c.run(t, start(t, false), exchanges(size)), c.run(t, start(t, true), exchanges(size))
			names, want := slices.Sorted(maps.Keys(ours)), slices.Sorted(maps.Keys(theirs))
			if len(names) == 0 || !slices.Equal(names, want) {
				t.Fatalf("got results of %v with our server, and of %v with net/http's", names, want)
			}
			for name, r := range ours {
				if diff := cmp.Diff(theirs[name], r); diff != "" && !theirs[name].isKnown(c.name, name) {
					t.Errorf("%s: with net/http's server (-) and ours (+), the client saw\n%s", name, diff)
				}
			}
			for _, e := range exchanges(size) {
				if r, ok := ours[e.Name]; ok {
					r.check(t, e)
				}
			}
		})
	}
}

// check checks the response to e, in case both servers are wrong, or the test is.
func (r result) check(t *testing.T, e exchange) {
	switch {
	case e.status == 0 && r.Status == http.StatusBadGateway: // from a ReverseProxy
	case r.Status != e.status:
		t.Errorf("%s: got status %d, want %d: %+v", e.Name, r.Status, e.status, r)
	case (r.Error != "") != strings.HasPrefix(e.Name, "an abort"):
		t.Errorf("%s: got error %q", e.Name, r.Error)
	case e.length >= 0 && e.Name != "an abort within the body" && (r.Length != e.length || r.Sum != sumOf(e.length)):
		t.Errorf("%s: got %d bytes, want %d of the pattern: %+v", e.Name, r.Length, e.length, r)
	case e.Method == "GET" && e.status == 200 && r.Header["proto"] != "HTTP/2.0" && r.Header["proto"] != "HTTP/1.1":
		t.Errorf("%s: got headers %v, want a protocol", e.Name, r.Header)
	}
}

// A sum computes the SHA-256 of a body.
type sum struct{ hash.Hash }

func newSum() sum { return sum{sha256.New()} }

func (s sum) text() string { return hex.EncodeToString(s.Sum(nil)) }

var sums sync.Map

// sumOf returns the sum of the first n bytes of the pattern.
func sumOf(n int64) string {
	if known, ok := sums.Load(n); ok {
		return known.(string)
	}
	s := newSum()
	io.Copy(s, pattern(n))
	sums.Store(n, s.text())
	return s.text()
}
