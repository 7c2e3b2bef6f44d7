package watchserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/budget"
	"github.com/listwatch/listwatch/internal/httpbody"
)

// CheckRequest returns an error if the URL or the headers of r exceed the limits of s (status 414
// or 431), or if r requests impersonation (status 403). A Server does not support impersonation: if
// it ignored the headers of such a request, it would serve the request with the rights of the
// sender. Serve and Admit call CheckRequest. Handlers that call neither should call it first.
func (s *Server) CheckRequest(r *http.Request) error {
	l := s.Limits
	if limit := cmp.Or(l.URLBytes, DefaultURLBytes); limit > 0 && len(r.URL.Path)+len(r.URL.RawQuery) > limit {
		return &LimitError{"url_bytes", &listwatch.Error{
			Code: listwatch.Invalid, Status: http.StatusRequestURITooLong, Reason: "RequestURITooLong",
			Message: fmt.Sprintf("the URL is longer than %d bytes", limit),
		}}
	}
	limit, size := cmp.Or(l.HeaderBytes, DefaultHeaderBytes), 0
	for name, values := range r.Header {
		if strings.HasPrefix(name, "Impersonate-") {
			return &listwatch.Error{Code: listwatch.Forbidden, Message: "impersonation is not supported: send the request without the header " + name}
		}
		for _, v := range values {
			size += len(name) + len(v) + len(": \r\n")
		}
	}
	if limit > 0 && size > limit {
		return &LimitError{"header_bytes", &listwatch.Error{
			Code: listwatch.Invalid, Status: http.StatusRequestHeaderFieldsTooLarge, Reason: "RequestHeaderFieldsTooLarge",
			Message: fmt.Sprintf("the headers are longer than %d bytes", limit),
		}}
	}
	return nil
}

// GuardBody prevents an unfinished request body from occupying its HTTP/1.1 connection: the
// connection closes if the body does not arrive in time, or if its length is doubtful
// (rfc9112#section-6.1).
//
// Serve calls it. Handlers of other requests on the same port should call it first, read the body
// with [Server.ReadBody], and refuse requests with [Server.Refuse] or [WriteError].
func GuardBody(w http.ResponseWriter, r *http.Request) { httpbody.Guard(w, r) }

// errTooManyWatches refuses a watch because owner has reached the limit called name.
func errTooManyWatches(name, owner string, limit int) error {
	return &LimitError{name, &listwatch.Error{
		Code: listwatch.Unavailable, Status: http.StatusTooManyRequests, Reason: "TooManyRequests",
		Message: fmt.Sprintf("too many watches: %s already has %d open, its limit", owner, limit),
		Details: &listwatch.Details{RetryAfter: time.Second},
	}}
}

// errShuttingDown refuses a watch because the server drains.
func errShuttingDown() error {
	return &listwatch.Error{
		Code: listwatch.Unavailable, Message: "the server is shutting down; retry shortly, or use another server",
		Details: &listwatch.Details{RetryAfter: time.Second},
	}
}

// errListTimeout ends a list that took longer than its timeoutSeconds.
func errListTimeout(d time.Duration) error {
	return &listwatch.Error{
		Code: listwatch.Unavailable, Status: http.StatusGatewayTimeout, Reason: "Timeout",
		Message: fmt.Sprintf("the list was not ready within timeoutSeconds (%v)", d),
		Details: &listwatch.Details{RetryAfter: time.Second},
	}
}

// A usage records the resources that a request has taken from the budget of its Server.
type usage struct {
	server *Server
	client string
	taken  budget.Amount // owned by the request's goroutine
}

type usageKey struct{}

// Begin counts r against Limits.Requests. Handlers of requests that s does not serve itself should
// call it, and must call end when they have responded. An error has status 429. Pass the returned
// request to [Server.ReadBody], which counts its body and its write. The context of that request
// also makes large bodies and responses wait for a processor, so that they do not delay small ones
// and watches.
func (s *Server) Begin(r *http.Request) (counted *http.Request, end func(), err error) {
	u := &usage{server: s, client: s.clientOf(r)}
	if err := u.take(budget.Amount{Requests: 1}); err != nil {
		return nil, nil, err
	}
	ctx := budget.WithTurns(context.WithValue(r.Context(), usageKey{}, u), &s.turns, u.client)
	return r.WithContext(ctx), u.end, nil
}

func (u *usage) end() { u.server.budget.Return(u.client, u.taken) }

// usageOf returns the usage of the request with the context ctx, or nil if Begin was not called.
func usageOf(ctx context.Context) *usage {
	u, _ := ctx.Value(usageKey{}).(*usage)
	return u
}

// take takes resources from the budget. The method end returns them.
func (u *usage) take(more budget.Amount) error {
	stored := int64(0)
	if more.Bytes > 0 {
		stored, _ = u.server.stored.read(u.server.Stored)
	}
	name := u.server.budget.Take(u.client, more, u.server.budgetLimit(stored))
	if name != "" {
		return &LimitError{name, &listwatch.Error{
			Code: listwatch.Unavailable, Status: http.StatusTooManyRequests, Reason: "TooManyRequests",
			Message: "the server, or this client's half of it, is busy (limit: " + name + "); retry later",
			Details: &listwatch.Details{RetryAfter: time.Second},
		}}
	}
	u.taken.Requests += more.Requests
	u.taken.Writes += more.Writes
	u.taken.Bytes += more.Bytes
	return nil
}

// bodyFactor is the memory that a write takes, in multiples of the size of its body.
const bodyFactor = 4

// takeBody takes the memory for the body of r.
func (u *usage) takeBody(r *http.Request, limit int64) error {
	size := r.ContentLength
	if size < 0 { // unknown
		size = limit
	}
	if size < 0 {
		size = 1 << 20
	}
	return u.take(budget.Amount{Bytes: bodyFactor * size})
}

const (
	// listBytes is the memory that a list takes for its buffers and its compressor.
	listBytes = 1 << 20
	// A request takes one seat of Limits.Requests. A list takes one more for each seatBytes, up to
	// maxSeats in all, as a list of many objects does in kube-apiserver.
	seatBytes = 1 << 20
	maxSeats  = 10
)

// takeList takes the memory for a list of items, and its seats except the first, which Begin has
// taken.
func (u *usage) takeList(items []*listwatch.Object) error {
	size := 0
	for _, o := range items {
		size += len(o.Data)
	}
	return u.take(budget.Amount{Requests: int64(min(size/seatBytes, maxSeats-1)), Bytes: listBytes})
}

// ReadBody reads the body of a write. A body of more than limit bytes is refused with status 413,
// and a client that takes longer than 30 s with status 400. A negative limit means no limit. Drain
// shortens the 30 s. If r comes from [Server.Begin], the body counts against Limits.Memory. When
// the body has arrived, the write counts against Limits.Writes. If one of these limits is exceeded,
// the error has status 429. If stored data fills its part of the memory, the error has status 507,
// except for the method DELETE.
func (s *Server) ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if err := s.checkStored(r); err != nil {
		return nil, err
	}
	u := usageOf(r.Context())
	if u != nil && (limit < 0 || r.ContentLength <= limit) {
		if err := u.takeBody(r, limit); err != nil {
			return nil, err
		}
	}
	data, err := httpbody.Read(s.watches.drainContext(), w, r, limit)
	if err == nil && u != nil {
		if err := u.take(budget.Amount{Writes: 1}); err != nil {
			return nil, err
		}
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, BodyTooLarge(limit)
	}
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "the request body could not be read", Err: err}
	}
	return data, nil
}

// GrowBody counts additional memory for a body that [Server.ReadBody] has returned and that grew
// when it was converted to JSON. more is the number of bytes by which it grew. The error has status
// 429.
func (s *Server) GrowBody(r *http.Request, more int) error {
	u := usageOf(r.Context())
	if u == nil || more <= 0 {
		return nil
	}
	return u.take(budget.Amount{Bytes: bodyFactor * int64(more)})
}

// BodyTooLarge returns the error of status 413 that refuses a body of more than limit bytes.
func BodyTooLarge(limit int64) error {
	return &LimitError{"body_bytes", &listwatch.Error{
		Code: listwatch.Invalid, Status: http.StatusRequestEntityTooLarge, Reason: "RequestEntityTooLarge",
		Message: fmt.Sprintf("Request entity too large: limit is %d", limit),
	}}
}

// A LimitError is the error of a request that exceeds a limit, so that refusals can be counted by
// limit. It has the code and status of Err.
type LimitError struct {
	// Limit is a short name of the limit, such as "watches_per_client". The names are few and do
	// not depend on the request.
	Limit string
	// Err is the error that the client receives.
	Err error
}

// Error implements error.
func (e *LimitError) Error() string { return e.Err.Error() }

// Unwrap returns e.Err.
func (e *LimitError) Unwrap() error { return e.Err }

// A Sized is a source whose objects and history are in the memory of this process, such as a
// collection of a store.
type Sized interface{ Stats() listwatch.Stats }

// A Usage holds the resources that requests and stored data use, or their limits.
type Usage struct {
	// Requests is the number of seats that lists, reads and writes have taken, and Writes the
	// number of writes being executed.
	Requests, Writes int64
	// RequestBytes is the memory for bodies and lists.
	RequestBytes int64
	// StoredBytes estimates the memory of the objects and the history of Server.Stored.
	// HistoryBytes is the share of the history.
	StoredBytes, HistoryBytes int64
}

// Usage returns the resources in use, and their limits. In limit, zero means no limit. HistoryBytes
// has no limit of its own.
func (s *Server) Usage() (used, limit Usage) {
	a := s.budget.Used()
	stored, history := s.stored.read(s.Stored)
	used = Usage{Requests: a.Requests, Writes: a.Writes, RequestBytes: a.Bytes, StoredBytes: stored, HistoryBytes: history}
	l := s.budgetLimit(stored)
	limit = Usage{
		Requests: max(l.Requests, 0), Writes: max(l.Writes, 0), RequestBytes: max(l.Bytes, 0), StoredBytes: s.maxStoredBytes(),
	}
	return used, limit
}

// maxStoredBytes returns the part of Limits.Memory that stored data may fill, or 0 if there is no
// limit. The rest is for requests, so that stored data can always be read and deleted.
func (s *Server) maxStoredBytes() int64 {
	return max(cmp.Or(s.Limits.Memory, DefaultMemory), 0) / 4 * 3
}

// budgetLimit returns the limits for requests while stored data takes the given number of bytes.
func (s *Server) budgetLimit(stored int64) budget.Amount {
	l := s.Limits
	a := budget.Amount{Requests: int64(cmp.Or(l.Requests, DefaultRequests)), Writes: int64(cmp.Or(l.Writes, DefaultWrites)), Bytes: cmp.Or(l.Memory, DefaultMemory)}
	if a.Bytes > 0 {
		a.Bytes -= min(stored, s.maxStoredBytes())
	}
	return a
}

// checkStored refuses a write if stored data fills its part of the memory. A delete is always
// allowed, because it makes room.
func (s *Server) checkStored(r *http.Request) error {
	limit := s.maxStoredBytes()
	if limit == 0 || len(s.Stored) == 0 || r.Method == http.MethodDelete {
		return nil
	}
	if stored, _ := s.stored.read(s.Stored); stored < limit {
		return nil
	}
	return &LimitError{"stored_bytes", &listwatch.Error{
		Code: listwatch.Unavailable, Status: http.StatusInsufficientStorage, Reason: "InsufficientStorage",
		Message: fmt.Sprintf("objects and history fill the %d MiB of memory that are for them: delete objects, or retry later", limit>>20),
		Details: &listwatch.Details{RetryAfter: 10 * time.Second},
	}}
}

// A storedMemory caches the size of the stored data for storedInterval.
type storedMemory struct {
	mu sync.Mutex
	// Guarded by mu.
	at              time.Time
	stored, history int64
}

const (
	// storedInterval is the minimum time between two readings of the sizes. A reading takes long if
	// there are many collections.
	storedInterval = 10 * time.Millisecond
	// objectOverhead estimates the memory of an object in addition to its JSON.
	objectOverhead = 512
)

// read returns the memory of sources, and the part of it that is history.
func (m *storedMemory) read(sources []Sized) (stored, history int64) {
	if len(sources) == 0 {
		return 0, 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); m.at.IsZero() || now.Sub(m.at) >= storedInterval {
		m.at, m.stored, m.history = now, 0, 0
		for _, source := range sources {
			stats := source.Stats()
			m.stored += stats.ObjectBytes + int64(stats.Objects)*objectOverhead + stats.HistoryBytes
			m.history += stats.HistoryBytes
		}
	}
	return m.stored, m.history
}
