package watchserver

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/transport"
)

// Limits limit the resources that clients can use. If a field is zero, its default is used;
// a negative value disables the limit.
type Limits struct {
	// Watches is the maximum number of open watches. Further watches are refused with status 429. A
	// watch counts once more for each 4 KiB of selectors. The default is no limit.
	Watches int
	// WatchesPerClient is the maximum number of open watches of one client. Further watches
	// are refused with status 429. The default is no limit.
	WatchesPerClient int
	// Projections is the maximum number of different projections that the open watches of one
	// collection have. A watch with a further projection is refused with status 429, because each
	// projection costs time in each write and memory for the reduced objects. The default is
	// [DefaultProjections].
	Projections int
	// Requests is the maximum number of seats. A read of one object or a write takes a seat from
	// the arrival of its body until its response begins. One client may take half of the seats.
	// Further requests are refused with status 429. Lists take no seat, because only few large
	// lists are encoded at the same time, and the others wait. The default is [DefaultRequests], as
	// in kube-apiserver.
	Requests int
	// Writes is the maximum number of writes being executed. One client may take half of them.
	// Further writes are refused with status 429. The default is [DefaultWrites], as in
	// kube-apiserver.
	Writes int
	// Memory is the maximum number of bytes for stored data and for requests. Stored data is the
	// objects and the history of Stored. When it fills three quarters of Memory, writes other than
	// deletes are refused with status 507. Requests have the rest, and one client may take half of
	// the rest. Requests that would need more are refused with status 429. The part of a body that
	// has arrived counts four times, because parsers copy it. A response above 32 KiB counts as 256
	// KiB, and a list in addition as 8 bytes for each object, because it refers to the objects.
	// Compressed parts of lists may use up to a sixteenth of Memory, which also counts against the
	// rest. The default is [DefaultMemory].
	Memory int64
	// Stored are the collections whose objects and history count against Memory. kubeapi adds its
	// collections.
	Stored []interface{ Stats() listwatch.Stats }
	// URLBytes is the maximum length of the path and the query of a URL. Any request with a longer
	// URL is refused with status 414. The default is [DefaultURLBytes].
	URLBytes int
	// HeaderBytes is the maximum size of the request's headers. Larger headers are refused
	// with status 431. The default is [DefaultHeaderBytes]. http.Server.MaxHeaderBytes
	// limits how many bytes are read at all, by default 128 KiB with h2.Configure.
	HeaderBytes int
	// BatchBytes is the maximum number of bytes of events in one write. An event that is
	// larger is written on its own. The default is [DefaultBatchBytes].
	BatchBytes int
	// WriteTimeout is [transport.Options.WriteTimeout]: a client that accepts no byte for
	// this time is disconnected. The default is [transport.DefaultWriteTimeout].
	WriteTimeout time.Duration
	// Compressors is the maximum number of compressors that hold the history of events for
	// [SharedCompression], each of about a megabyte. There is one for each wire form of each
	// selection that several clients watch. If there are too few compressors, the events of the
	// other selections are compressed separately. The default is [DefaultCompressors].
	Compressors int
}

// Timing configures bookmarks, timeouts and heartbeats. If a field is zero, its default is
// used. Values above a year count as a year.
type Timing struct {
	// Bookmark is the average interval between the bookmarks of a watch that allows them; each
	// interval varies by a quarter. If negative, a watch has bookmarks only at the end of its
	// initial events and at its own end. The default is [DefaultBookmark].
	Bookmark time.Duration
	// Timeout is the minimum duration of a watch without timeoutSeconds. Such a watch ends
	// at a random time between Timeout and twice Timeout, so that clients do not all
	// reconnect at once. If negative, it has no timeout. The default is [DefaultTimeout].
	Timeout time.Duration
	// Heartbeat is the idle time after which a stream sends a heartbeat, if its framing or
	// transport has one. The default, [DefaultHeartbeat], is well below the 60 s after which
	// proxies close idle connections. If negative, no heartbeats are sent.
	Heartbeat time.Duration
	// DrainSpread is the period over which Drain spreads the ends of the watches. If it is zero
	// or negative, all watches end at once, and the clients' own jitter spreads their
	// reconnects.
	DrainSpread time.Duration
}

// maxDuration is the upper bound of the durations in [Timing], so that they can be doubled
// without an overflow.
const maxDuration = 365 * 24 * time.Hour

// orDefault returns d, or byDefault if d is zero, but at most maxDuration.
func (t *Timing) orDefault(d, byDefault time.Duration) time.Duration {
	return min(cmp.Or(d, byDefault), maxDuration)
}

// watchDuration returns the time after which a watch ends, or zero if it has no end. requested is
// the timeout of the request, or zero.
func (t *Timing) watchDuration(requested time.Duration) time.Duration {
	if least := t.orDefault(t.Timeout, DefaultTimeout); requested == 0 && least > 0 {
		return randomBetween(least, 2*least)
	}
	return requested
}

func (t *Timing) heartbeat() time.Duration { return t.orDefault(t.Heartbeat, DefaultHeartbeat) }

// randomBetween returns a random duration of at least low and at most high.
func randomBetween(low, high time.Duration) time.Duration {
	return low + rand.N(max(high-low, 0)+1)
}

// The defaults of [Limits] and [Timing].
const (
	DefaultProjections = 64
	DefaultRequests    = 400
	DefaultWrites      = 200
	DefaultMemory      = 1 << 30
	DefaultURLBytes    = 16 << 10
	DefaultHeaderBytes = 64 << 10
	DefaultBatchBytes  = 64 << 10
	DefaultCompressors = 32
	DefaultBookmark    = time.Minute
	DefaultTimeout     = 30 * time.Minute
	DefaultHeartbeat   = 20 * time.Second
)

// ofRequests returns the limits that a gate applies.
func (l *Limits) ofRequests() apihttp.Limits {
	return apihttp.Limits{
		URLBytes: cmp.Or(l.URLBytes, DefaultURLBytes), HeaderBytes: cmp.Or(l.HeaderBytes, DefaultHeaderBytes),
		Requests: int64(cmp.Or(l.Requests, DefaultRequests)), Writes: int64(cmp.Or(l.Writes, DefaultWrites)),
		Memory: cmp.Or(l.Memory, DefaultMemory), Stored: l.Stored,
		WriteTimeout: cmp.Or(l.WriteTimeout, transport.DefaultWriteTimeout),
	}
}

// A Usage holds the resources that requests and stored data use, or their limits.
type Usage struct {
	// Requests is the number of seats that reads and writes have taken, and Writes the number of
	// writes being executed.
	Requests, Writes int64
	// RequestBytes is the memory for bodies and lists.
	RequestBytes int64
	// StoredBytes estimates the memory of the objects and the history of Limits.Stored.
	// HistoryBytes is the share of the history.
	StoredBytes, HistoryBytes int64
}

// errTooManyWatches returns the error for one more watch when owner has reached the limit called
// name.
func errTooManyWatches(name, owner string, open, limit int) error {
	return apihttp.TooMany(name, fmt.Sprintf(
		"too many watches: %s has %d of at most %d open; a long selector counts as several", owner, open, limit))
}

// errTooManyProjections returns the error for a watch with one more projection.
func errTooManyProjections(limit int) error {
	return apihttp.TooMany("projections", fmt.Sprintf("fields: the open watches of this collection already have "+
		"%d different lists of fields, the limit; use one of theirs, or fewer fields", limit))
}

// errShuttingDown returns the error for a watch that is requested during a drain.
func errShuttingDown() error {
	return &listwatch.Error{
		Code: listwatch.Unavailable, Message: "the server is shutting down; retry shortly, or use another server",
		Details: &listwatch.Details{RetryAfter: time.Second},
	}
}

// errListTimeout returns the error for a list that took longer than its timeoutSeconds.
func errListTimeout(d time.Duration) error {
	return &listwatch.Error{
		Code: listwatch.Unavailable, Status: http.StatusGatewayTimeout, Reason: "Timeout",
		Message: fmt.Sprintf("the list was not ready within timeoutSeconds (%v)", d),
		Details: &listwatch.Details{RetryAfter: time.Second},
	}
}
