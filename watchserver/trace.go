package watchserver

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
)

// A Trace has hooks for logging, metrics and tracing, which a [Server] calls. Each hook may be
// nil. The hooks of one watch are called one after the other, but not on the goroutine of its
// handler. Hooks of several watches are called concurrently. Hooks must not block.
//
// The context of a hook is the context of the request, with the values that middleware has
// added, so [UserOf] returns the user with all groups. It may have ended. No hook receives the
// headers of the request, because they may contain credentials.
//
// An open watch does not prove that its client is alive. Over HTTP/2 and WebSocket, pings end the
// watch of a frozen client, such as a suspended process. Over HTTP/1.1, a frozen client is not
// detected while no object changes, because the kernel of its machine still accepts data.
type Trace struct {
	// Refused is called after an error response to a request. If the request has exceeded a limit,
	// errors.As finds an interface{ Limit() string } in err. Limit returns the name of the limit,
	// such as "watches_per_client". There are few names, and they do not depend on the request.
	Refused func(ctx context.Context, r Request, err error)
	// Listed is called after the response to a list.
	Listed func(ctx context.Context, l List)
	// Changed is called after the response to a write of kubeapi or crudserver that succeeded.
	Changed func(ctx context.Context, c Change)
	// Opened is called when a watch has been accepted, before its first event is written.
	Opened func(ctx context.Context, w Watch)
	// Sent is called after each write of a watch.
	Sent func(ctx context.Context, w Watch, sent Write)
	// Closed is called when a watch has ended. err is nil if reason is [EndComplete]. Otherwise
	// it gives the details.
	Closed func(ctx context.Context, w Watch, reason EndReason, err error)
}

// JoinTraces returns a Trace whose hooks call the hooks of all traces, in order. Traces that are
// nil are ignored.
func JoinTraces(traces ...*Trace) *Trace {
	traces = slices.DeleteFunc(slices.Clone(traces), func(t *Trace) bool { return t == nil })
	joined := &Trace{
		Refused: func(ctx context.Context, r Request, err error) {
			callAll(traces, func(t *Trace) bool { return t.Refused != nil }, func(t *Trace) { t.Refused(ctx, r, err) })
		},
		Listed: func(ctx context.Context, l List) {
			callAll(traces, func(t *Trace) bool { return t.Listed != nil }, func(t *Trace) { t.Listed(ctx, l) })
		},
		Changed: func(ctx context.Context, c Change) {
			callAll(traces, func(t *Trace) bool { return t.Changed != nil }, func(t *Trace) { t.Changed(ctx, c) })
		},
		Opened: func(ctx context.Context, w Watch) {
			callAll(traces, func(t *Trace) bool { return t.Opened != nil }, func(t *Trace) { t.Opened(ctx, w) })
		},
		Closed: func(ctx context.Context, w Watch, reason EndReason, err error) {
			callAll(traces, func(t *Trace) bool { return t.Closed != nil }, func(t *Trace) {
				t.Closed(ctx, w, reason, err)
			})
		},
	}
	// Leave Sent nil if no trace has this hook, because the hook costs time in each write.
	sent := slices.DeleteFunc(slices.Clone(traces), func(t *Trace) bool { return t.Sent == nil })
	if len(sent) > 0 {
		joined.Sent = func(ctx context.Context, w Watch, written Write) {
			for _, t := range sent {
				t.Sent(ctx, w, written)
			}
		}
	}
	return joined
}

func callAll(traces []*Trace, has func(*Trace) bool, call func(*Trace)) {
	for _, t := range traces {
		if has(t) {
			call(t)
		}
	}
}

// A Request describes a request.
type Request struct {
	// Client is the name of the client for the limits of one client: the user's name or, if the
	// user is unknown or unauthenticated, the IP address.
	Client string `json:"client"`
	// User is the name of the user whom Access.Authenticator or [WithUser] has identified. It is
	// empty if the user is unknown.
	User string `json:"user,omitempty"`
	// Method and Proto are as in http.Request, such as "GET" and "HTTP/1.1".
	Method string `json:"method"`
	Proto  string `json:"proto"`
	// Path is the path of the URL. It does not include the query, which may contain credentials or
	// selectors that name users.
	Path string `json:"path"`
	// RemoteAddr is the address of the connection, which may be the address of a proxy.
	RemoteAddr string `json:"remoteAddr"`
	// Resource is the resource that the request addresses. It is zero if the path names none.
	Resource Resource `json:"resource,omitzero"`
}

// A Resource identifies a collection, as the labels of a metric do.
type Resource struct {
	// Group and Version are the two parts of the apiVersion. The group may be empty.
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	// Name is the plural name, such as "pods". If the handler does not know it, Name is the kind,
	// such as "Pod".
	Name string `json:"name"`
}

// A Change describes a write that succeeded.
type Change struct {
	Request
	// Verb is the verb of Kubernetes: create, update, patch, delete or deletecollection.
	Verb string
	// Key is the key of the object. The name is empty for deletecollection.
	Key listwatch.Key
	// Version is the version of the object in the response. It is zero for deletecollection.
	Version listwatch.Version
	// DryRun is true if the write was only checked.
	DryRun bool
	// Took is the time from the start of the request to the end of the response.
	Took time.Duration
}

// A List describes the response to a list.
type List struct {
	Request
	// Items is the number of objects in the page.
	Items int
	// Bytes is the number of bytes of the body that were written, after compression. It is zero
	// for HEAD.
	Bytes int64
	// Version is the version of the page.
	Version listwatch.Version
	// Took is the time from the start of the list to the end of the response.
	Took time.Duration
}

// A Watch describes an open watch, for hooks and for operators.
type Watch struct {
	Request
	// ID is unique within the Server.
	ID uint64 `json:"id"`
	// Transport is the name of the transport, such as "h2".
	Transport string `json:"transport"`
	// MediaType is the media type of the framing, such as "application/json".
	MediaType string `json:"mediaType"`
	// Compression is the compression of the stream: "gzip", "zstd" or "permessage-deflate". It
	// is empty if the stream is not compressed.
	Compression string `json:"compression,omitempty"`
	// Fields is the projection of the watch; see [listwatch.Projection.String]. It is empty if the
	// watch has whole objects. For a union, it has one line for each part with a projection: the
	// kind and the projection.
	Fields string    `json:"fields,omitempty"`
	Opened time.Time `json:"opened"`
	// Events is the number of events written.
	Events int64 `json:"events"`
	// Bytes is the number of bytes written, after compression.
	Bytes int64 `json:"bytes"`
	// Version is the version of the last event or bookmark written.
	Version listwatch.Version `json:"resourceVersion,string"`
	// Writing is the duration of the current write so far, which is long if the client does
	// not read. It is zero if no write is in progress.
	Writing time.Duration `json:"writing"`
	// CaughtUp is true while the watch has no pending events.
	CaughtUp bool `json:"caughtUp"`
}

// A Write describes one write of a watch. Over HTTP/2 a write ends when its bytes are in the buffer
// of the connection, and the next write begins when the client has read them.
type Write struct {
	// Events is the number of events written. It is zero for a heartbeat or an ERROR event.
	Events int
	// Bytes is the number of bytes written, after compression.
	Bytes int
	// Took is the duration of the write.
	Took time.Duration
	// Lag is the time from the commit of the oldest event in the write to the end of the write. It
	// is zero if the Source does not report the time of commits (see listwatch.Event.Committed), or
	// if every event in the write is older than the watch, because the time then depends on when
	// the client connected.
	Lag time.Duration
	// Err is the error of the write, after which the watch ends.
	Err error
}

// An EndReason is the reason why a watch ended. It can be the value of a label of a metric.
type EndReason string

// The reasons why a watch ends.
const (
	// EndComplete means that the time of the watch was up, or that its Source has ended it.
	EndComplete EndReason = "complete"
	// EndClientGone means that the client has disconnected, or does not answer pings.
	EndClientGone EndReason = "client gone"
	// EndTooSlow means that the client accepted no data for Limits.WriteTimeout.
	EndTooSlow EndReason = "too slow"
	// EndDrained means that Drain has ended the watch.
	EndDrained EndReason = "drained"
	// EndExpired means that the history that the watch needs was dropped: status 410.
	EndExpired EndReason = "expired"
	// EndRefused means that the watch was accepted, but ended because its user lost the right to
	// it. The status is 401, for example when Endpoint.Until has passed, or 403.
	EndRefused EndReason = "refused"
	// EndCanceled means that the program ended the watch with another error: the request's context
	// has ended, or [Server.End] was called. If the context was canceled without a cause, the
	// reason over HTTP/2 is EndClientGone, because such an end looks like a disconnect of the
	// client.
	EndCanceled EndReason = "canceled"
	// EndFailed means any other error, for example of the Source.
	EndFailed EndReason = "failed"
)

func describeRequest(r *http.Request, a *apihttp.Admitted) Request {
	return Request{
		Client: a.Client, User: a.User, Method: r.Method, Proto: r.Proto,
		Path:       strings.Clone(r.URL.EscapedPath()), // a watch must not keep the whole URL
		RemoteAddr: r.RemoteAddr, Resource: Resource(a.Resource),
	}
}
