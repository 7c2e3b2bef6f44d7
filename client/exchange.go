package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/compress"
	"github.com/listwatch/listwatch/internal/httpheader"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
)

// An objectRequest is a request for one object.
type objectRequest struct {
	op, method string
	key        listwatch.Key
	// subresource is the part of the object, or "".
	subresource string
	// query holds parameters in addition to the parameters of Remote.URL.
	query url.Values
	// body is nil if the request has no body. contentType is the type of the body. If it is empty,
	// application/json is used.
	body        []byte
	contentType string
	// minimal requests a response without the object (rfc7240#section-4.2). Servers may ignore it.
	minimal bool
}

// header returns h, the headers that Remote.Header has returned, with the headers of the request.
func (o *objectRequest) header(h http.Header) http.Header {
	if o.body == nil {
		return h
	}
	if h = h.Clone(); h == nil {
		h = http.Header{}
	}
	h.Set("Content-Type", cmp.Or(o.contentType, "application/json"))
	if o.minimal {
		h.Set("Prefer", "return=minimal")
	}
	return h
}

// exchange sends q and returns the object in the response. It returns nil if q is minimal and the
// server sends no object. For a delete it also returns nil if the response is not an object,
// because some servers respond to a delete with a Status.
func (r *Remote) exchange(ctx context.Context, q objectRequest) (o *listwatch.Object, err error) {
	defer func() {
		if err != nil {
			err = transport.DialError(ctx, q.op, err)
		}
	}()
	u, err := r.parseURL()
	if err != nil {
		return nil, err
	}
	if u, err = objectURL(u, q, r.PlainPaths); err != nil {
		return nil, err
	}
	r.init()
	err = r.authorized(ctx, false, func(h http.Header) error {
		return r.do(ctx, q.method, u, q.header(h), q.body, func(h http.Header, body io.Reader) error {
			r.learnEpoch(h.Get(transport.EpochHeader))
			if o, err = r.readObject(body); err != nil && q.method == http.MethodDelete {
				o, err = nil, nil
			}
			return err
		})
	})
	if q.minimal && isNoContent(err) {
		return nil, nil
	}
	return o, err
}

func (r *Remote) readObject(body io.Reader) (*listwatch.Object, error) {
	limit := int64(framing.LimitOrDefault(r.MaxObjectBytes))
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > limit:
		return nil, &listwatch.Error{
			Code:    listwatch.Corrupt,
			Message: fmt.Sprintf("the object exceeds the limit of %d bytes, Remote.MaxObjectBytes", limit),
		}
	}
	o, err := r.parseObject(data)
	switch {
	case err != nil:
		return nil, &listwatch.Error{Code: listwatch.Corrupt, Message: "the response is not an object", Err: err}
	case o.Version == 0:
		return nil, &listwatch.Error{
			Code: listwatch.Unsupported, Message: "the object in the response has no resourceVersion",
		}
	}
	return o, nil
}

// parseObject returns the object in data, which has the encoding of r.
func (r *Remote) parseObject(data []byte) (*listwatch.Object, error) {
	if e := r.encoding(); e != nil {
		return e.Read(data)
	}
	return listwatch.ParseObject(data)
}

// do sends a request that is not a watch, with body unless it is nil. If the response is a success
// with the media type bodyType, do calls read with the headers and the decompressed body. For a
// DELETE it accepts every status 2xx, and read gets an empty body if the body has another type. For
// all other responses do returns an error.
func (r *Remote) do(
	ctx context.Context, method string, u *url.URL, h http.Header, body []byte,
	read func(h http.Header, body io.Reader) error,
) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := newIdleTimer(r.idle(), cancel)
	defer idle.stop()
	defer func() {
		if err != nil && idle.expired.Load() {
			err = errIdle
		}
	}()
	req, err := r.newRequest(ctx, method, u, h, body)
	if err != nil {
		return err
	}
	resp, err := r.state.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := checkMethod(resp, method); err != nil {
		return err
	}
	deleted := method == http.MethodDelete && resp.StatusCode/100 == 2
	if !deleted && resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		return transport.ResponseError(resp, r.Framings...)
	}
	decoded, err := r.decodeBody(resp.Header, &activityReader{resp.Body, idle})
	if err != nil && deleted {
		decoded, err = http.NoBody, nil
	}
	if err != nil {
		return err
	}
	return read(resp.Header, decoded)
}

func (r *Remote) newRequest(
	ctx context.Context, method string, u *url.URL, h http.Header, body []byte,
) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Err: errors.Unwrap(err)}
	}
	if h != nil {
		req.Header = h.Clone()
	}
	req.Header.Set("Accept", r.bodyType())
	if r.Compress {
		req.Header.Set("Accept-Encoding", httpheader.Preferences(r.codings()))
	}
	return req, nil
}

// checkMethod returns an error if net/http has followed a redirect of a write with a GET. The
// result of that GET, even an error, does not show whether the write was performed: a server may
// respond with 303 after a POST that it has performed, and with 302 to a request that must log in
// first.
func checkMethod(resp *http.Response, method string) error {
	if resp.Request == nil || resp.Request.Method == method {
		return nil
	}
	return &listwatch.Error{
		Code: listwatch.Unsupported, Status: resp.StatusCode,
		Message: "the server redirected a " + method + " so that it became a " + resp.Request.Method +
			"; it is unknown whether the " + method + " was performed",
	}
}

// decodeBody removes a content coding from body. The headers h name the coding. decodeBody returns
// an error if the body does not have the media type bodyType but is, for example, the HTML page of
// a proxy.
func (r *Remote) decodeBody(h http.Header, body io.Reader) (io.Reader, error) {
	contentType, want := h.Get("Content-Type"), r.bodyType()
	if mediaType, _, err := mime.ParseMediaType(contentType); err != nil || mediaType != want {
		return nil, unsupportedResponse("the response has Content-Type ", contentType, ", want "+want)
	}
	name := compress.CodingOf(h)
	switch {
	case name == "":
		return body, nil
	case !slices.Contains(r.codings(), name):
		return nil, unsupportedResponse("the response has Content-Encoding ", name, ", which was not requested")
	}
	return compress.NewReader(name, body)
}

func unsupportedResponse(before, value, after string) error {
	const maxQuoted = 64
	return &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusOK,
		Message: before + strconv.Quote(value[:min(len(value), maxQuoted)]) + after,
	}
}

// An activityReader resets an idle timer whenever it reads something.
type activityReader struct {
	reader io.Reader
	idle   *idleTimer
}

func (a *activityReader) Read(p []byte) (int, error) {
	n, err := a.reader.Read(p)
	if n > 0 {
		a.idle.reset()
	}
	return n, err
}

// newHTTPClient returns a copy of HTTPClient. If HTTPClient is nil, it returns a client that
// connects over Network, and uses HTTP/2 if the server offers it during the TLS handshake.
func (r *Remote) newHTTPClient() *http.Client {
	if r.HTTPClient == nil {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(true)
		protocols.SetHTTP2(true)
		return transport.HTTPClient(r.Network.HTTPTransport(protocols))
	}
	c := *r.HTTPClient
	if c.CheckRedirect == nil {
		c.CheckRedirect = transport.HTTPClient(nil).CheckRedirect
	}
	return &c
}

func (r *Remote) defaultTransports() []transport.Client {
	if c := r.HTTPClient; c != nil {
		return []transport.Client{anyVersion{c}, &websocket.Client{HTTPClient: c}}
	}
	h1 := []transport.Client{&chunked.Client{Network: r.Network}, &websocket.Client{Network: r.Network}}
	if u, err := url.Parse(r.URL); err == nil && u.Scheme == "https" {
		return append([]transport.Client{&h2.Client{Network: r.Network}}, h1...)
	}
	return h1
}

// An anyVersion opens watches over the version of HTTP that an http.Client and the server agree on.
// A RoundTripper offers no way to choose the version, so the client is one candidate and not one
// for each version.
type anyVersion struct{ *http.Client }

func (anyVersion) Name() string { return "http" }

func (a anyVersion) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	return transport.DialHTTP(ctx, a.Client, r, 0)
}
