package clusterrelay

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi/protobody"
	"github.com/listwatch/listwatch/meter"
	"github.com/listwatch/listwatch/watchserver"
)

// An audit counts what clients read, and what changes in the caches. It is safe for concurrent use.
type audit struct {
	since time.Time

	mu sync.Mutex
	// Guarded by mu.
	reads  map[reader]*readsOf
	meters map[string]*meter.Meter // by the full name of the resource, and the encoding
}

func newAudit() *audit {
	return &audit{since: time.Now(), reads: make(map[reader]*readsOf), meters: make(map[string]*meter.Meter)}
}

// A reader is a client, a resource that it reads, and the verb. The client of a request that passes
// through is not known, because the API server identifies it.
type reader struct {
	Client   string `json:"client"`
	Resource string `json:"resource"`
	Verb     string `json:"verb"`
}

// passedOn is the client of requests that pass through.
const passedOn = "(passed through)"

// readsOf counts the requests of a reader, and the events and bytes of their responses.
type readsOf struct {
	reader
	Requests int   `json:"requests"`
	Events   int64 `json:"events"`
	Bytes    int64 `json:"bytes"`
}

func (a *audit) count(r reader, requests, events int, bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.reads[r]
	if c == nil {
		c = &readsOf{reader: r}
		a.reads[r] = c
	}
	c.Requests += requests
	c.Events += int64(events)
	c.Bytes += bytes
}

// trace returns hooks that count the reads that caches answer.
func (a *audit) trace() *watchserver.Trace {
	of := func(r watchserver.Request, verb string) reader {
		return reader{r.Client, fullName(r.Resource.Name, r.Resource.Version, r.Resource.Group), verb}
	}
	return &watchserver.Trace{
		Listed: func(_ context.Context, l watchserver.List) { a.count(of(l.Request, "list"), 1, 0, l.Bytes) },
		Opened: func(_ context.Context, w watchserver.Watch) { a.count(of(w.Request, "watch"), 1, 0, 0) },
		Sent: func(_ context.Context, w watchserver.Watch, sent watchserver.Write) {
			a.count(of(w.Request, "watch"), 0, sent.Events, int64(sent.Bytes))
		},
	}
}

func fullName(plural, version, group string) string {
	return strings.TrimSuffix(plural+"."+version+"."+group, ".")
}

// passed counts the response to a request that passed through, while its body is sent.
func (a *audit) passed(c *call, r *http.Response) {
	if r.StatusCode == http.StatusSwitchingProtocols {
		return // the body is a connection
	}
	by := reader{passedOn, fullName(c.Plural, c.Version, c.Group), c.verb}
	a.count(by, 1, 0, 0)
	r.Body = &countedBody{r.Body, func(n int) { a.count(by, 0, 0, int64(n)) }}
}

// A countedBody calls count with the number of bytes of each read.
type countedBody struct {
	io.ReadCloser
	count func(n int)
}

// Read implements [io.Reader].
func (c *countedBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.count(n)
	return n, err
}

// follow counts the changes in a cache until the cache is closed.
func (a *audit) follow(k *cache) {
	if <-k.settled; k.refusal != nil {
		return
	}
	m := a.meterOf(k)
	for {
		w, err := k.Relay.Watch(context.Background(), listwatch.Query{Start: listwatch.StartAny})
		if err != nil {
			return // the relay is closed
		}
		err = m.Measure(context.Background(), w, 0)
		_ = w.Close() // the watch has ended
		if !errors.Is(err, listwatch.Expired) {
			return
		}
	}
}

// meterOf returns the meter of the resource of k in its encoding. It remains when k is dropped.
func (a *audit) meterOf(k *cache) *meter.Meter {
	r := k.resource
	name := fullName(r.Plural, r.Version, r.Group)
	if k.encoding != nil {
		name += " (" + encodingName(k.encoding) + ")"
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.meters[name]
	if m == nil {
		m = &meter.Meter{Fields: r.Fields}
		if k.encoding != nil {
			m.ToJSON = func(data []byte) ([]byte, error) { return protobody.ToJSON(data, maxAudited) }
		}
		a.meters[name] = m
	}
	return m
}

// maxAudited is the maximum size of the JSON of an object whose changes are measured.
const maxAudited = 16 << 20

// A report is the result of an audit.
type report struct {
	Since   time.Time   `json:"since"`
	Reads   []readsOf   `json:"reads"`   // most bytes first
	Changes []changesOf `json:"changes"` // most bytes first
}

// changesOf are the changes of a resource since its first cache was started, and what clients could
// save.
type changesOf struct {
	Resource string `json:"resource"`
	meter.Report
}

func (a *audit) report() report {
	r := report{Since: a.since, Reads: []readsOf{}, Changes: []changesOf{}}
	a.mu.Lock()
	for c := range maps.Values(a.reads) {
		r.Reads = append(r.Reads, *c)
	}
	meters := maps.Clone(a.meters)
	a.mu.Unlock() // a meter is busy while it compares large objects
	for resource, m := range meters {
		if counted := m.Report(); counted.Changes.Events > 0 {
			r.Changes = append(r.Changes, changesOf{resource, counted})
		}
	}
	slices.SortFunc(r.Reads, func(a, b readsOf) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Client, b.Client),
			cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb))
	})
	slices.SortFunc(r.Changes, func(a, b changesOf) int {
		return cmp.Or(b.Changes.Bytes-a.Changes.Bytes, cmp.Compare(a.Resource, b.Resource))
	})
	return r
}
