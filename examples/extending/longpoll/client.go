package longpoll

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// A Client is the client half. The zero value is ready to use. It must not be copied after the
// first Dial.
type Client struct {
	// Network connects to servers. Do not change it after the first Dial.
	transport.Network

	once sync.Once
	http *http.Client
}

var _ transport.Client = (*Client)(nil)

// Name implements [transport.Client].
func (c *Client) Name() string { return "longpoll" }

// Dial implements [transport.Client].
func (c *Client) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	return transport.DialHTTP(ctx, c.client(), r, 1)
}

// CloseIdleConnections closes the connections that no poll uses.
func (c *Client) CloseIdleConnections() { c.client().CloseIdleConnections() }

func (c *Client) client() *http.Client {
	c.once.Do(func() {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(true)
		c.http = transport.HTTPClient(poller{c.HTTPTransport(protocols)})
	})
	return c.http
}

// A poller is an http.RoundTripper that makes the polls of a stream look like one long response.
type poller struct{ *http.Transport }

// RoundTrip opens a stream. The body of the response has the data of all polls.
func (p poller) RoundTrip(open *http.Request) (*http.Response, error) {
	resp, err := p.send(open.Context(), open, http.MethodGet, tokenOpen)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	token := resp.Header.Get(tokenHeader)
	resp.Body.Close()
	if token == "" {
		return nil, &listwatch.Error{Code: listwatch.Unsupported, Message: "the response has no header " + tokenHeader}
	}
	data, pipe := io.Pipe()
	// poll returns when the stream or its context ends.
	go func() { pipe.CloseWithError(p.poll(open, token, pipe)) }()
	resp.Body = data
	return resp, nil
}

// poll writes the data of all polls to w. It returns nil after a clean end.
func (p poller) poll(open *http.Request, token string, w io.Writer) error {
	for token != tokenEnd {
		resp, err := p.send(open.Context(), open, http.MethodPost, token)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = transport.ResponseError(resp)
		}
		if err == nil {
			token = resp.Header.Get(tokenHeader)
			_, err = io.Copy(w, resp.Body)
			resp.Body.Close()
		}
		if err != nil {
			p.stop(open, token)
			return err
		}
	}
	return nil
}

// stop ends a stream early. If its request fails, the server waits in vain for idleTime.
func (p poller) stop(open *http.Request, token string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(open.Context()), time.Second)
	defer cancel()
	if resp, err := p.send(ctx, open, http.MethodDelete, token); err == nil {
		resp.Body.Close()
	}
}

// send sends one request of the stream. The method of a poll is POST, because net/http and proxies
// may repeat a GET, and repeating a poll would lose data.
func (p poller) send(ctx context.Context, open *http.Request, method, token string) (*http.Response, error) {
	req := open.Clone(ctx)
	req.Method = method
	req.Header.Set(tokenHeader, token)
	return p.Transport.RoundTrip(req)
}
