package adapters

import (
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
	"github.com/listwatch/listwatch/conformance/cases"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// clientHello is the first line of a client's command (docs/conformance-hook.md).
type clientHello struct {
	Can []string
}

// A watchRequest is a line for a client's command.
type watchRequest struct {
	ID              int               `json:"id"`
	URL             string            `json:"url"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Transport       string            `json:"transport,omitempty"`
	Headers         map[string]string `json:"headers,omitempty"`
	Resume          bool              `json:"resume,omitempty"`
}

// A clientAnswer is a line of a client's command.
type clientAnswer struct {
	Status  int
	Headers map[string]string
	Body    json.RawMessage
	Event   *struct {
		Type   string
		Object json.RawMessage
	}
	End   bool
	Error string
	// Within: the stream broke within an event.
	Within bool
}

// transportWords are the names of transports, by those of this module's.
var transportWords = map[string]string{"chunked": "h1", "h2": "h2", "websocket": "ws"}

// ExecClient starts a command that is a client, and returns a target whose servers are this module's, played well or badly. What the command writes to
// its standard error goes to notes. Patience is how long a case waits for what must come; zero: 10 s.
func ExecClient(ctx context.Context, command string, notes io.Writer, patience time.Duration) (*Process, error) {
	var hello clientHello
	h, err := startHook(ctx, command, notes, &hello)
	if err != nil {
		return nil, err
	}
	c := &execClient{h, hello.Can}
	p := &Process{hook: h, Target: cases.Own("exec", cases.Interceptors{TransportClient: c.dialler, Client: c.source})}
	p.Target.SupportsFakeTime, p.Target.Patience = false, patience
	for _, way := range cases.Variants() {
		if slices.Contains(hello.Can, cases.TransportOf(way)) {
			p.Target.Variants = append(p.Target.Variants, way)
		}
	}
	if p.Target.Variants == nil {
		_ = p.Close() // what is wrong is known
		return nil, unusable("the client of "+command, invalidf(`its "can" names none of the transports h1, h2 and ws`))
	}
	if !slices.Contains(hello.Can, "resume") {
		p.Target.Notes = append(p.Target.Notes, "the client does not resume by itself: cases about that are skipped")
	}
	return p, nil
}

// An execClient is a client behind a hook.
type execClient struct {
	*hook
	can []string
}

// dialler returns the client in the place of one of ours.
func (c *execClient) dialler(ours transport.Client) transport.Client {
	return &execDialler{c, ours.Name(), networkOf(ours)}
}

// source returns the client in the place of ours that resumes; nil, if it does not.
func (c *execClient) source(ours *client.Remote) listwatch.Source {
	if !slices.Contains(c.can, "resume") {
		return nil
	}
	return &execSource{c, ours}
}

// watch asks for a watch of u over a network and returns the stream of answers.
func (c *execClient) watch(n transport.Network, u *url.URL, r watchRequest) (*execStream, error) {
	if u.Scheme == "https" {
		return nil, cases.MissingAbility("the client is not told which CAs to trust")
	}
	relay, u, err := newRelay(n, u)
	if err != nil {
		return nil, err
	}
	s := &execStream{hook: c.hook, answers: newQueue(), relay: relay}
	id, stop := c.listen(func(line json.RawMessage) {
		var a clientAnswer
		if err := json.Unmarshal(line, &a); err != nil {
			a = clientAnswer{Error: fmt.Sprintf("the line %s: %v", line, err)}
		}
		s.answers.add(a)
	})
	s.released = sync.OnceValue(func() error {
		stop()
		return errors.Join(c.send(map[string]any{"close": map[string]int{"id": id}}), relay.close())
	})
	r.ID, r.URL, r.ResourceVersion = id, u.String(), u.Query().Get("resourceVersion")
	if err := c.send(map[string]any{"watch": r}); err != nil {
		stop()
		return nil, errors.Join(err, relay.close())
	}
	return s, nil
}

// An execDialler dials over one transport.
type execDialler struct {
	*execClient
	name    string // that of our transport
	network transport.Network
}

// Name is that of the transport.
func (d *execDialler) Name() string { return d.name }

// Dial has the client watch. What it can't do is a [cases.Cannot].
func (d *execDialler) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	word := transportWords[d.name]
	for _, f := range r.Framings {
		if f.MediaType() != (framing.JSON{}).MediaType() {
			return nil, cases.MissingAbility("the client reads no " + f.MediaType())
		}
	}
	if !slices.Contains(d.can, word) || len(r.Codings) > 0 {
		return nil, cases.MissingAbility("the client can't watch like this")
	}
	request := watchRequest{Transport: word, Headers: map[string]string{}}
	for name := range r.Header {
		request.Headers[name] = r.Header.Get(name)
	}
	s, err := d.watch(d.network, r.URL, request)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { s.end(context.Cause(ctx)) })
	first, err := s.answers.next(ctx, d.hook)
	if err == nil && first.Status/100 != 2 && first.Status != http.StatusSwitchingProtocols {
		err = refusal(first)
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

// refusal is what an answer says that is no stream.
func refusal(a clientAnswer) error {
	if a.Within {
		return &listwatch.Error{Code: listwatch.Corrupt, Message: a.Error, Err: io.ErrUnexpectedEOF}
	}
	if a.Error != "" || a.Status == 0 {
		return &listwatch.Error{Code: listwatch.Unavailable, Message: a.Error}
	}
	if e := listwatch.ParseStatus(a.Body); e.Remote {
		return e
	}
	return &listwatch.Error{Code: listwatch.CodeOfHTTP(a.Status), Status: a.Status, Remote: true, Message: string(a.Body)}
}

// An execStream is one watch of a client.
type execStream struct {
	*hook
	answers *queue
	relay   *relay
	header  http.Header
	// released ends the watch at the client, and its connections.
	released func() error
}

// Receive returns the next event that the client has seen.
func (s *execStream) Receive() (framing.WatchEvent, error) { return s.receive(context.Background()) }

func (s *execStream) receive(ctx context.Context) (framing.WatchEvent, error) {
	for {
		a, err := s.answers.next(ctx, s.hook)
		switch {
		case err != nil:
			return framing.WatchEvent{}, err
		case a.Event != nil:
			return framing.WatchEvent{Type: a.Event.Type, Object: a.Event.Object}, nil
		case a.Status/100 == 2 || a.Status == http.StatusSwitchingProtocols:
			continue // a client that resumes opens several
		case a.End:
			err = io.EOF
		default:
			err = refusal(a)
		}
		s.answers.close(err) // nothing comes after it
		return framing.WatchEvent{}, err
	}
}

// Header returns what the client told of the response's headers.
func (s *execStream) Header() http.Header { return s.header }

// Close has the client give the watch up.
func (s *execStream) Close() error { return s.end(io.EOF) }

// end is Close; cause is what a Receive that waits returns.
func (s *execStream) end(cause error) error {
	s.answers.close(cause)
	return s.released()
}
