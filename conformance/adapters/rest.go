package adapters

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// A restClient sends single requests to a server.
type restClient struct {
	base   *url.URL
	header http.Header
	http   *http.Client
}

func newREST(base *url.URL, o Options) *restClient {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &restClient{base, o.Header, transport.HTTPClient(o.network().HTTPTransport(protocols))}
}

func (r *restClient) close() { r.http.CloseIdleConnections() }

// maxResponseBytes limits the size of a response.
const maxResponseBytes = 256 << 20

// do sends body as JSON and decodes the response into v. body and v may be nil. If the
// server refuses the request, the error is a *listwatch.Error.
func (r *restClient) do(ctx context.Context, method, path string, query url.Values, body, v any) error {
	resp, err := r.send(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes))
	if err != nil {
		return transport.DialError(ctx, "", err)
	}
	if v == nil {
		return nil
	}
	if err := json.Unmarshal(data, v); err != nil {
		return &listwatch.Error{
			Code: listwatch.Corrupt, Message: fmt.Sprintf("%s %s: the response is not JSON: %.80q", method, path, data),
		}
	}
	return nil
}

// send returns the response to a request. The caller must close the response's body. A status other
// than 2xx is an error.
func (r *restClient) send(
	ctx context.Context, method, path string, query url.Values, body any,
) (*http.Response, error) {
	u := r.base.JoinPath(path)
	u.RawQuery = query.Encode()
	var payload io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		payload = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, u.String(), payload)
	if err != nil {
		return nil, err
	}
	for name, values := range r.header {
		request.Header[name] = values
	}
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	resp, err := r.http.Do(request)
	if err != nil {
		return nil, transport.DialError(ctx, "", err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, transport.ResponseError(resp)
	}
	return resp, nil
}
