package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/httpheader"
	"github.com/listwatch/listwatch/transport/internal/connio"
)

// HTTPTransport returns a new http.Transport over n that uses only the given protocols. It
// limits the time for dialing, handshakes and response headers, but not for streams. It
// neither requests compression nor uses a proxy.
func (n Network) HTTPTransport(protocols *http.Protocols) *http.Transport {
	dial := n.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAliveConfig: connio.KeepAlive}).DialContext
	}
	t := &http.Transport{
		DialContext: dial, TLSClientConfig: withProtocols(n.TLS, protocols), TLSHandshakeTimeout: handshakeTimeout,
		ResponseHeaderTimeout: 30 * time.Second, MaxResponseHeaderBytes: 256 << 10,
		IdleConnTimeout: 90 * time.Second, DisableCompression: true, Protocols: protocols,
		// With the default, 4 KiB, a watch would receive fewer events in one batch.
		ReadBufferSize: 32 << 10,
	}
	if n.TLSConfig != nil {
		t.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return dialTLS(ctx, dial, network, addr, withProtocols(n.TLSConfig(), protocols))
		}
	}
	return t
}

const handshakeTimeout = 10 * time.Second

// withProtocols returns a copy of config that offers the protocols. config may be nil.
func withProtocols(config *tls.Config, protocols *http.Protocols) *tls.Config {
	if config == nil {
		config = &tls.Config{}
	}
	config = config.Clone()
	config.NextProtos = nil
	if protocols.HTTP2() {
		config.NextProtos = append(config.NextProtos, "h2")
	}
	if protocols.HTTP1() {
		config.NextProtos = append(config.NextProtos, "http/1.1")
	}
	return config
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialTLS opens a connection to addr with config. http.Transport would do the same, but only with a
// configuration that never changes.
func dialTLS(ctx context.Context, dial dialFunc, network, addr string, config *tls.Config) (net.Conn, error) {
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		config.ServerName = host
	}
	raw, err := dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, config)
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, err
	}
	return conn, nil
}

// HTTPClient returns an http.Client over t that follows at most ten redirects. After a redirect
// to another server it sends only the headers Accept, Accept-Encoding and Last-Event-ID, and no
// credentials.
func HTTPClient(t http.RoundTripper) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: checkRedirect}
}

const maxRedirects = 10

func checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return &listwatch.Error{
			Code: listwatch.Unsupported, Message: "more than " + strconv.Itoa(maxRedirects) + " redirects",
		}
	}
	trusted := via[0].URL
	foreign := !sameServer(trusted, r.URL)
	for _, v := range via[1:] {
		// After a redirect to another server, credentials are never sent again, not even to the
		// first server.
		foreign = foreign || !sameServer(trusted, v.URL)
	}
	if foreign {
		kept := http.Header{}
		for _, name := range []string{"Accept", "Accept-Encoding", "Last-Event-Id"} {
			if v, ok := via[0].Header[name]; ok {
				kept[name] = v
			}
		}
		r.Header = kept
	}
	return nil
}

// sameServer reports whether credentials for URL a may be sent to URL b. They may if scheme, host
// and port are the same. They may also be sent from http to https on the same host if both URLs
// have the default ports.
func sameServer(a, b *url.URL) bool {
	if !strings.EqualFold(a.Hostname(), b.Hostname()) {
		return false
	}
	if a.Scheme == b.Scheme {
		return port(a) == port(b)
	}
	return a.Scheme == "http" && port(a) == "80" && port(b) == "443"
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// Do sends r with c. The response is a stream or a WebSocket. c may be configured for short
// requests, so Do differs from c.Do where c.Do would harm a stream:
//   - c.Timeout limits only the time until the headers of the response.
//   - If c.CheckRedirect is nil, Do follows redirects as [HTTPClient] does.
//   - The transport of c does not add a request for compression.
//
// The caller must close the body of the response. Close also releases the resources of c.Timeout.
func Do(c *http.Client, r *http.Request) (*http.Response, error) {
	stream := *c
	stream.Timeout = 0
	if stream.CheckRedirect == nil {
		stream.CheckRedirect = checkRedirect
	}
	if r.Header.Get("Accept-Encoding") == "" {
		r.Header.Set("Accept-Encoding", "identity")
	}
	if c.Timeout <= 0 {
		return stream.Do(r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	timer := time.AfterFunc(c.Timeout, cancel)
	resp, err := stream.Do(r.WithContext(ctx))
	switch inTime := timer.Stop() || r.Context().Err() != nil; {
	case inTime && err == nil:
		resp.Body = cancelOnClose(resp.Body, cancel)
		return resp, nil
	case inTime:
		cancel()
		return resp, err
	case err == nil:
		resp.Body.Close()
	}
	return nil, &listwatch.Error{
		Code: listwatch.Unavailable, Err: os.ErrDeadlineExceeded,
		Message: "no response within " + c.Timeout.String() + ", the Timeout of the http.Client",
	}
}

// A cancelingBody is the body of a response. Its Close also cancels the request.
type cancelingBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b cancelingBody) Close() error {
	err := b.ReadCloser.Close()
	b.cancel()
	return err
}

// cancelOnClose returns body with a Close that also calls cancel. If body is an io.Writer, as after
// status 101, the result is an io.Writer too.
func cancelOnClose(body io.ReadCloser, cancel context.CancelFunc) io.ReadCloser {
	c := cancelingBody{body, cancel}
	if w, ok := body.(io.Writer); ok {
		return struct {
			cancelingBody
			io.Writer
		}{c, w}
	}
	return c
}

// DialHTTP opens a stream with a GET or a QUERY, which it sends with [Do] and c. A [Client] over
// net/http can implement Dial with it. The response must have the given major version of HTTP. If
// major is zero, any version is accepted.
func DialHTTP(ctx context.Context, c *http.Client, r *Request, major int) (Receiver, error) {
	if r.URL.Scheme != "http" && r.URL.Scheme != "https" {
		return nil, &listwatch.Error{
			Code: listwatch.Invalid, Op: "dial",
			Message: "URL scheme " + strconv.Quote(r.URL.Scheme) + ": must be http or https",
		}
	}
	streamCtx, cancel := context.WithCancelCause(ctx)
	receiver, err := open(streamCtx, c, r, major, cancel)
	if err == nil {
		return receiver, nil
	}
	cancel(nil)
	return nil, DialError(ctx, "dial", err)
}

func open(
	ctx context.Context, c *http.Client, r *Request, major int, cancel context.CancelCauseFunc,
) (*responseReceiver, error) {
	req, err := newRequest(ctx, r)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Err: err}
	}
	req.Header.Set("Accept", r.AcceptHeader())
	if len(r.Codings) > 0 {
		req.Header.Set("Accept-Encoding", httpheader.Preferences(r.Codings))
	}
	resp, err := Do(c, req)
	if err != nil {
		return nil, err
	}
	if r.Method == MethodQuery && resp.StatusCode == http.StatusOK {
		err = CheckQuery(resp.Header)
	}
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	receiver, err := receive(resp, r, major, cancel)
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	return receiver, nil
}

// CheckQuery returns an error of code Unsupported if h, the headers of a successful response to a
// QUERY, lack Accept-Query. Such a server may have ignored the method and the parameters, or a
// redirect may have turned the QUERY into a GET without parameters.
func CheckQuery(h http.Header) error {
	if h.Get("Accept-Query") != "" {
		return nil
	}
	return &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusOK,
		Message: "the response to a QUERY has no Accept-Query, so the server may not know the method",
	}
}

// newRequest returns the HTTP request for r, with r.Header.
func newRequest(ctx context.Context, r *Request) (*http.Request, error) {
	u, body := *r.URL, io.Reader(nil)
	if r.Method == MethodQuery {
		body = strings.NewReader(u.RawQuery)
		u.RawQuery = ""
	}
	req, err := http.NewRequestWithContext(ctx, cmp.Or(r.Method, http.MethodGet), u.String(), body)
	if err != nil {
		return nil, err
	}
	if r.Header != nil {
		req.Header = r.Header.Clone()
	}
	if body != nil {
		req.Header.Set("Content-Type", QueryType)
	}
	return req, nil
}

func receive(resp *http.Response, r *Request, major int, cancel context.CancelCauseFunc) (*responseReceiver, error) {
	switch {
	case major != 0 && resp.ProtoMajor != major:
		return nil, &listwatch.Error{
			Code:    listwatch.Unsupported,
			Message: "the server responded with " + resp.Proto + ", must be HTTP/" + strconv.Itoa(major),
		}
	case resp.StatusCode == http.StatusNoContent:
		return nil, &listwatch.Error{
			Code: listwatch.Unknown, Remote: true, Status: http.StatusNoContent,
			Message: "the server responded with 204 No Content: do not reconnect", Err: io.EOF,
		}
	case resp.StatusCode != http.StatusOK:
		return nil, ResponseError(resp, r.Framings...)
	}
	return newReceiver(resp, r, cancel)
}

// DialError returns the error of the operation op, such as "dial", that failed with err. If ctx has
// ended, it is the error of ctx. Otherwise it is a new *[listwatch.Error]. If err is or wraps an
// error of this type, the new error is a copy, whose Op is op unless err has one. If err is an
// error of net/http or crypto/tls, the code is Unsupported if the server uses another protocol,
// Invalid if the URL or the certificates do not match the server, and Unavailable otherwise.
func DialError(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if e, ok := errors.AsType[*listwatch.Error](err); ok {
		e := *e // the caller of Network.Dial or a RoundTripper may share the error
		e.Op = cmp.Or(e.Op, op)
		return &e
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // drop the URL, because its query may contain secrets
	}
	code := listwatch.Unavailable
	_, isCertificateError := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case errors.Is(err, http.ErrSchemeMismatch) || isCertificateError:
		code = listwatch.Invalid
	case isProtocolError(err):
		code = listwatch.Unsupported
	}
	return &listwatch.Error{Code: code, Op: op, Err: err}
}

// isProtocolError reports whether err means that the server uses another protocol.
func isProtocolError(err error) bool {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	// The standard library has no exported types for these errors.
	for _, text := range []string{
		"malformed HTTP",                      // the response is not HTTP/1
		"readLoopPeekFailLocked: %!w(<nil>)",  // the server sent data before the request
		"looked like an HTTP/1.1 header",      // the server sent HTTP/1 instead of HTTP/2 frames
		"remote error: tls: no application p", // ALPN failed (RFC 7301, section 3.2)
	} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}
