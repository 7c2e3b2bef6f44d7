package adapters

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// clientHello is the first line that a client command writes (docs/conformance-hook.md).
type clientHello struct {
	Can []string
}

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
	// Code is Corrupt if the server violated the protocol or a limit, and Unsupported if the server
	// sent something that the client does not know.
	Code string
	// Transport is the transport of a stream that a resuming client has opened.
	Transport string
}

// transportAbilities maps the names of transports to their names in the control hook.
var transportAbilities = map[string]string{"chunked": "h1", "h2": "h2", "websocket": "ws"}

// ExecClient starts a command that controls a client, and returns a Process whose target tests the
// client against correct and broken servers. The standard error of the command goes to notes.
// timeout is the time that a case waits for an expected event; if zero, it is 10 seconds. The
// caller must close the Process.
func ExecClient(ctx context.Context, command string, notes io.Writer, timeout time.Duration) (*Process, error) {
	var hello clientHello
	h, err := startHook(ctx, command, notes, &hello)
	if err != nil {
		return nil, err
	}
	c := &execClient{h, hello.Can}
	p := &Process{hookProcess: h, Target: reference.New("exec",
		reference.Interceptors{TransportClient: c.transportClient, Client: c.source})}
	p.Target.SupportsFakeTime, p.Target.Patience = false, timeout
	p.Target.Ping = func(context.Context) error { return h.failure() }
	p.Target.AdapterError = h.takeInvalid
	for _, variant := range harness.Variants() {
		if slices.Contains(hello.Can, harness.TransportOf(variant)) {
			p.Target.Variants = append(p.Target.Variants, variant)
		}
	}
	if p.Target.Variants == nil {
		_ = p.Close() // the cause is already known
		return nil, untestable(fmt.Sprintf("client of command %q", command),
			invalidf(`"can" must contain at least one of h1, h2 and ws`))
	}
	if !slices.Contains(hello.Can, "resume") {
		p.Target.Notes = append(p.Target.Notes,
			"the client does not resume watches, so cases about resuming are skipped")
	}
	return p, nil
}

// An execClient is a client that the suite controls through the control hook.
type execClient struct {
	*hookProcess
	can []string
}

// transportClient replaces one of this module's transport clients with the client under
// test.
func (e *execClient) transportClient(replaced transport.Client) transport.Client {
	return &execTransport{e, replaced.Name(), networkOf(replaced)}
}

// source replaces this module's resuming client with the client under test. It returns nil
// if the client under test cannot resume.
func (e *execClient) source(replaced *client.Remote) listwatch.Source {
	if !slices.Contains(e.can, "resume") {
		return nil
	}
	return &execSource{e, replaced}
}

// watch asks the client to watch u over a network, and returns the receiver of its replies.
func (e *execClient) watch(n transport.Network, u *url.URL, r watchRequest) (*execReceiver, error) {
	if u.Scheme == "https" {
		return nil, harness.MissingAbility("the control hook has no request that names the CA to trust")
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
		s.replies.add(a)
	})
	s.release = sync.OnceValue(func() error {
		stop()
		return errors.Join(e.send(map[string]any{"close": map[string]int{"id": id}}), relay.close())
	})
	r.ID, r.URL, r.ResourceVersion = id, u.String(), u.Query().Get("resourceVersion")
	if err := e.send(map[string]any{"watch": r}); err != nil {
		stop()
		return nil, errors.Join(err, relay.close())
	}
	return s, nil
}

// An execTransport is a transport.Client that uses the client under test.
type execTransport struct {
	*execClient
	name    string // name of the transport that it replaces
	network transport.Network
}

// Name returns the name of the transport.
func (e *execTransport) Name() string { return e.name }

// Dial asks the client to watch. If the client lacks an ability, the error is a
// [harness.MissingAbility].
func (e *execTransport) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	ability := transportAbilities[e.name]
	if err := checkFramings(r.Framings); err != nil {
		return nil, err
	}
	if !slices.Contains(e.can, ability) || len(r.Codings) > 0 {
		return nil, harness.MissingAbility("the client does not support this transport or compression")
	}
	request := watchRequest{Transport: ability, Headers: map[string]string{}, Limit: r.Limit}
	for name := range r.Header {
		request.Headers[name] = r.Header.Get(name)
	}
	s, err := e.watch(e.network, r.URL, request)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { s.end(context.Cause(ctx)) })
	first, err := s.replies.next(ctx, e.hookProcess)
	if err == nil && first.Status/100 != 2 && first.Status != http.StatusSwitchingProtocols {
		err = replyError(first)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	s.header = http.Header{}
	for name, value := range first.Headers {
		s.header.Set(name, value)
	}
	return s, nil
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
var localCodes = map[string]listwatch.Code{"Corrupt": listwatch.Corrupt, "Unsupported": listwatch.Unsupported}

// replyError returns the error that a reply reports.
func replyError(a clientReply) error {
	if a.Within {
		return &listwatch.Error{Code: listwatch.Corrupt, Message: a.Error, Err: io.ErrUnexpectedEOF}
	}
	if a.Error != "" || a.Status == 0 {
		return &listwatch.Error{Code: cmp.Or(localCodes[a.Code], listwatch.Unavailable), Message: a.Error}
	}
	if e := listwatch.ParseStatus(a.Body); e.Remote {
		return e
	}
	return &listwatch.Error{
		Code: listwatch.CodeOfHTTP(a.Status), Status: a.Status, Remote: true, Message: string(a.Body),
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
