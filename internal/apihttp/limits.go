package apihttp

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/budget"
)

// Limits limit the resources that requests can use. A negative value, or zero, means no limit.
type Limits struct {
	// URLBytes and HeaderBytes limit the sizes of the URL and of the headers.
	URLBytes, HeaderBytes int
	// Requests is the maximum number of seats in use, and Writes of writes being executed.
	Requests, Writes int64
	// Memory is the maximum number of bytes for stored data and for requests together.
	Memory int64
	// Stored are the collections whose objects and history count against Memory.
	Stored []Sized
	// WriteTimeout limits the time that a client takes to accept each piece of a response that is
	// not a stream.
	WriteTimeout time.Duration
}

// A Sized is a source whose objects and history are in the memory of this process.
type Sized = interface{ Stats() listwatch.Stats }

// check returns an error of status 414 or 431 if the URL or the headers of r are too long.
func (l Limits) check(r *http.Request) error {
	if l.URLBytes > 0 && len(r.URL.Path)+len(r.URL.RawQuery) > l.URLBytes {
		return &LimitError{"url_bytes", &listwatch.Error{
			Code: listwatch.Invalid, Status: http.StatusRequestURITooLong, Reason: "RequestURITooLong",
			Message: fmt.Sprintf("the URL is longer than %d bytes", l.URLBytes),
		}}
	}
	size := 0
	for name, values := range r.Header {
		for _, v := range values {
			size += len(name) + len(v) + len(": \r\n")
		}
	}
	if l.HeaderBytes > 0 && size > l.HeaderBytes {
		return &LimitError{"header_bytes", &listwatch.Error{
			Code: listwatch.Invalid, Status: http.StatusRequestHeaderFieldsTooLarge,
			Reason:  "RequestHeaderFieldsTooLarge",
			Message: fmt.Sprintf("the headers are longer than %d bytes", l.HeaderBytes),
		}}
	}
	return nil
}

// storedBytes returns the part of Memory that stored data may fill, or 0 if there is no limit. The
// rest is for requests, so that stored data can always be read and deleted.
func (l Limits) storedBytes() int64 { return max(l.Memory, 0) / 4 * 3 }

// blockBytes returns the maximum number of bytes of compressed blocks that are kept for further
// responses.
func (l Limits) blockBytes() int64 {
	const unlimited = 64 << 20 // if there is no limit
	if l.Memory <= 0 {
		return unlimited
	}
	return l.Memory / 16
}

// budget returns the limits for requests while stored data and compressed blocks take the given
// numbers of bytes.
func (l Limits) budget(stored, blocks int64) budget.Amount {
	a := budget.Amount{Requests: max(l.Requests, 0), Writes: max(l.Writes, 0), Bytes: max(l.Memory, 0)}
	if a.Bytes > 0 {
		a.Bytes -= min(stored, l.storedBytes()) + blocks
	}
	return a
}

// A Usage is documented at watchserver.Usage.
type Usage struct{ Requests, Writes, RequestBytes, StoredBytes, HistoryBytes int64 }

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
	// Name is a short name of the limit, such as "watches_per_client". The names are few and do
	// not depend on the request.
	Name string
	// Err is the error that the client receives.
	Err error
}

// Error implements error.
func (e *LimitError) Error() string { return e.Err.Error() }

// Limit returns Name. Hooks find this method with errors.As.
func (e *LimitError) Limit() string { return e.Name }

// Unwrap returns e.Err.
func (e *LimitError) Unwrap() error { return e.Err }

// TooMany returns the error of status 429 for a request that would exceed the limit called name.
func TooMany(name, message string) error {
	return &LimitError{name, &listwatch.Error{
		Code: listwatch.Unavailable, Status: http.StatusTooManyRequests, Reason: "TooManyRequests",
		Message: message, Details: &listwatch.Details{RetryAfter: time.Second},
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
	// objectOverhead estimates the memory of an object in addition to its JSON, if its source does
	// not.
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
			objects := stats.ObjectMemory
			if objects == 0 {
				objects = stats.ObjectBytes + int64(stats.Objects)*objectOverhead
			}
			m.stored += objects + stats.HistoryBytes
			m.history += stats.HistoryBytes
		}
	}
	return m.stored, m.history
}
