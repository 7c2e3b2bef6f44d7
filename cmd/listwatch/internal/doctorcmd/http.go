package doctorcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/listwatch/listwatch/watchserver/echo"
)

// requestTimeout limits the time of each request, and the time until a watch has its first event.
const requestTimeout = 10 * time.Second

func (e *examination) open() {
	newTransport := func(http2 bool) *http.Transport {
		t := &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: e.tls.Clone(), Protocols: new(http.Protocols),
			DisableCompression: true,
			IdleConnTimeout:    time.Minute,
		}
		t.Protocols.SetHTTP1(true)
		t.Protocols.SetHTTP2(http2)
		return t
	}
	e.http1, e.negotiated = newTransport(false), newTransport(true)
}

func (e *examination) close() {
	e.http1.CloseIdleConnections()
	e.negotiated.CloseIdleConnections()
}

func (e *examination) header() http.Header {
	h := http.Header{}
	if e.Token != "" {
		h.Set("Authorization", "Bearer "+e.Token)
	}
	return h
}

// get sends a request. The caller must close the body of the response. get does not follow
// redirects.
func (e *examination) get(ctx context.Context, t *http.Transport, u *url.URL, h http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header = h
	return t.RoundTrip(r)
}

// askEcho requests the report of the echo handler at u. The report shows how the server received
// the request with the headers h.
func (e *examination) askEcho(ctx context.Context, t *http.Transport, u *url.URL,
	h http.Header,
) (*echo.Report, *http.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	response, err := e.get(ctx, t, u, h)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, response, fmt.Errorf("status %s", response.Status)
	}
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind != "application/json" {
		return nil, response, fmt.Errorf("the response is %q, no JSON", response.Header.Get("Content-Type"))
	}
	body, err := plainBody(response)
	if err != nil {
		return nil, response, err
	}
	var r echo.Report
	if err := json.NewDecoder(io.LimitReader(body, 1<<20)).Decode(&r); err != nil {
		return nil, response, err
	}
	return &r, response, nil
}

// withQuery returns a copy of u with a query parameter set to the given value.
func withQuery(u *url.URL, name, value string) *url.URL {
	c := *u
	q := c.Query()
	q.Set(name, value)
	c.RawQuery = q.Encode()
	return &c
}
