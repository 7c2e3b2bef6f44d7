package adapters

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/certs"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/transport"
)

// A watchRequest asks a client command to watch a URL.
type watchRequest struct {
	ID              int               `json:"id"`
	URL             string            `json:"url"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Transport       string            `json:"transport,omitempty"`
	Headers         map[string]string `json:"headers,omitempty"`
	Limit           int               `json:"limit,omitempty"` // maximum size of one event in bytes
	Resume          bool              `json:"resume,omitempty"`
	// Transports lists the transports that a resuming client may use.
	Transports []string `json:"transports,omitempty"`
	// IdleTimeout is the silence in milliseconds after which a resuming client reconnects.
	IdleTimeout int64 `json:"idleTimeout,omitempty"`
	// Refresh means that the client can request fresh headers, after a 401.
	Refresh bool `json:"refresh,omitempty"`
	// CA is the certificate, in PEM, of the only authority to trust.
	CA string `json:"ca,omitempty"`

	// refresh returns fresh headers. It is nil unless Refresh is set.
	refresh func() map[string]string
}

// A clientReply is a line that a client command writes.
type clientReply struct {
	Status  int
	Headers map[string]string
	Body    json.RawMessage
	Event   *struct {
		Type   string
		Object json.RawMessage
	}
	End   bool
	Error string
	// Within reports that the stream broke in the middle of an event.
	Within bool
	// Code is Expired if the client gives up its version without a 410, Corrupt if the server
	// violated the protocol or a limit, and Unsupported if the server
	// sent something that the client does not know.
	Code string
	// Transport is the transport of a stream that a resuming client has opened.
	Transport string
	// Refresh requests fresh headers. Reset reports that the state starts over.
	Refresh, Reset bool
}

// transportAbilities maps the names of transports to their names in the control hook.
var transportAbilities = map[string]string{"chunked": "h1", "h2": "h2", "websocket": "ws"}

// An execClient is a client that the suite controls through the control hook.
type execClient struct {
	*hookProcess
	can []string
}

// watch asks the client to watch u over a network, and returns the receiver of its replies.
func (e *execClient) watch(n transport.Network, u *url.URL, r watchRequest) (*execReceiver, error) {
	if u.Scheme == "https" {
		if err := e.needs("tls"); err != nil {
			return nil, err
		}
		r.CA = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certs.Trusted().Certificate.Raw}))
	}
	relay, u, err := newForwarder(n, u)
	if err != nil {
		return nil, err
	}
	s := &execReceiver{hookProcess: e.hookProcess, replies: newReplyQueue(), forwarder: relay}
	id, stop := e.subscribe(func(line json.RawMessage) {
		var a clientReply
		if err := json.Unmarshal(line, &a); err != nil {
			a = clientReply{Error: fmt.Sprintf("reply %s: %v", line, err)}
		}
		switch {
		case a.Reset: // the events of the new state follow
		case a.Refresh && r.refresh != nil:
			go e.sendHeaders(r.ID, r.refresh()) // ends when the command reads it or exits
		default:
			s.replies.add(a)
		}
	})
	r.ID = id
	s.release = sync.OnceValue(func() error {
		stop()
		return errors.Join(e.send(map[string]any{"close": map[string]int{"id": id}}), relay.close())
	})
	r.URL, r.ResourceVersion = u.String(), u.Query().Get("resourceVersion")
	if err := e.send(map[string]any{"watch": r}); err != nil {
		stop()
		return nil, errors.Join(err, relay.close())
	}
	return s, nil
}

// sendHeaders sends fresh headers to the watch with the given ID.
func (e *execClient) sendHeaders(id int, headers map[string]string) {
	// If the command has exited, its watches report that.
	_ = e.send(map[string]any{"headers": map[string]any{"id": id, "headers": headers}})
}

// needs returns a [harness.MissingAbility] unless the client has announced the ability.
func (e *execClient) needs(ability string) error {
	if slices.Contains(e.can, ability) {
		return nil
	}
	return harness.MissingAbility(fmt.Sprintf("the client has not announced %q (docs/conformance-hook.md)", ability))
}

// hookHeaders returns h as the control hook writes headers.
func hookHeaders(h http.Header) map[string]string {
	headers := map[string]string{}
	for name := range h {
		headers[name] = h.Get(name)
	}
	return headers
}

// checkFramings returns a [harness.MissingAbility] if the client must use a framing other than
// JSON.
func checkFramings(framings []framing.Framer) error {
	for _, f := range framings {
		if f.MediaType() != (framing.JSON{}).MediaType() {
			return harness.MissingAbility("the client does not support " + f.MediaType())
		}
	}
	return nil
}

// localCodes holds the codes of errors that a client detects without the server.
var localCodes = map[string]listwatch.Code{
	"Corrupt": listwatch.Corrupt, "Unsupported": listwatch.Unsupported, "Expired": listwatch.Expired,
}

// replyError returns the error that a reply reports.
func replyError(a clientReply) error {
	if a.Within {
		return &listwatch.Error{Code: listwatch.Corrupt, Message: a.Error, Err: io.ErrUnexpectedEOF}
	}
	if a.Error != "" || a.Status == 0 {
		return &listwatch.Error{Code: cmp.Or(localCodes[a.Code], listwatch.Unavailable), Message: a.Error}
	}
	if e := kubestatus.Parse(a.Body); e.Remote {
		return e
	}
	return &listwatch.Error{
		Code: kubestatus.CodeOfHTTP(a.Status), Status: a.Status, Remote: true, Message: string(a.Body),
	}
}

// An execReceiver receives the events of one watch of the client.
type execReceiver struct {
	*hookProcess
	replies   *replyQueue
	forwarder *tcpForwarder
	header    http.Header
	// onOpen is called for each stream that a resuming client opens. It may be nil.
	onOpen func(transport string)
	// release closes the watch and its connections.
	release func() error
}

// Receive returns the next event that the client reported.
func (e *execReceiver) Receive() (framing.WatchEvent, error) { return e.receive(context.Background()) }

func (e *execReceiver) receive(ctx context.Context) (framing.WatchEvent, error) {
	for {
		a, err := e.replies.next(ctx, e.hookProcess)
		switch {
		case err != nil:
			return framing.WatchEvent{}, err
		case a.Event != nil:
			return framing.WatchEvent{Type: a.Event.Type, Object: a.Event.Object}, nil
		case a.Status/100 == 2 || a.Status == http.StatusSwitchingProtocols:
			if e.onOpen != nil { // a resuming client reports each stream that it opens
				e.onOpen(a.Transport)
			}
			continue
		case a.End:
			err = io.EOF
		default:
			err = replyError(a)
		}
		// The caller needs the reason for the end, not a failure to release the watch.
		_ = e.end(err)
		return framing.WatchEvent{}, err
	}
}

// Header returns the response headers that the client reported.
func (e *execReceiver) Header() http.Header { return e.header }

// Close asks the client to close the watch.
func (e *execReceiver) Close() error { return e.end(io.EOF) }

// end closes the watch. A waiting Receive returns the cause.
func (e *execReceiver) end(cause error) error {
	e.replies.close(cause)
	return e.release()
}

// A replyQueue holds unread replies.
type replyQueue struct {
	mu sync.Mutex
	// Guarded by mu.
	replies []clientReply
	closed  error // the cause of the close; nil while the queue is open

	ready chan struct{} // holds a token if there may be a new reply
}

func newReplyQueue() *replyQueue { return &replyQueue{ready: make(chan struct{}, 1)} }

func (r *replyQueue) add(a clientReply) {
	r.mu.Lock()
	r.replies = append(r.replies, a)
	r.mu.Unlock()
	r.wake()
}

func (r *replyQueue) wake() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// next waits for the next reply of h.
func (r *replyQueue) next(ctx context.Context, h *hookProcess) (clientReply, error) {
	for {
		a, ok, closed := r.take()
		switch {
		case ok:
			return a, nil
		case closed != nil:
			return a, closed
		}
		select {
		case <-r.ready:
		case <-h.done:
			if a, ok, _ := r.take(); ok {
				return a, nil
			}
			return a, h.failure()
		case <-ctx.Done():
			return a, context.Cause(ctx)
		}
	}
}

func (r *replyQueue) take() (a clientReply, ok bool, closed error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.replies) == 0 {
		return a, false, r.closed
	}
	a = r.replies[0]
	r.replies = r.replies[1:]
	return a, true, nil
}

// close closes the queue with a cause, and reports whether it was open.
func (r *replyQueue) close(cause error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		return false
	}
	r.closed, r.replies = cause, nil
	r.wake()
	return true
}
