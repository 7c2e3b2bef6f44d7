package adapters

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/reference"
	"github.com/listwatch/listwatch/transport"
)

// clientHello is the first line that a client command writes (docs/conformance-hook.md).
type clientHello struct {
	Can []string
}

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
	p.Target.AdapterError, p.Target.OwnClock = h.takeInvalid, true
	if slices.Contains(hello.Can, "lists") {
		p.Target.Abilities &^= harness.StreamsState
	}
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
	missing := slices.DeleteFunc([]string{"resume", "initial", "idle", "refresh", "tls"},
		func(ability string) bool { return slices.Contains(hello.Can, ability) })
	if len(missing) > 0 {
		p.Target.Notes = append(p.Target.Notes, "the client has not announced "+strings.Join(missing, ", ")+
			", so cases that need it are skipped; see docs/conformance-hook.md")
	}
	return p, nil
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
	request := watchRequest{Transport: ability, Headers: hookHeaders(r.Header), Limit: r.Limit}
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
