package adapters

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// A rest sends single requests to a server.
type rest struct {
	base   *url.URL
	header http.Header
	http   *http.Client
}

func newREST(base *url.URL, a Options) *rest {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &rest{base, a.Header, transport.HTTPClient(a.network().HTTPTransport(protocols))}
}

func (r *rest) close() { r.http.CloseIdleConnections() }

// maxAnswer is how many bytes an answer may have: a list that somebody else has filled.
const maxAnswer = 256 << 20

// ask sends body, which may be nil, as JSON, and decodes the answer into v, which may be nil too. What the server refuses is a
// *listwatch.Error.
func (r *rest) ask(ctx context.Context, method, path string, query url.Values, body, v any) error {
	resp, err := r.send(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return transport.DialError(err)
	}
	if v == nil {
		return nil
	}
	if err := json.Unmarshal(data, v); err != nil {
		return &listwatch.Error{Code: listwatch.Corrupt, Message: fmt.Sprintf("%s %s is answered by what is no JSON: %.80q", method, path, data)}
	}
	return nil
}

// send returns the answer to a request, if that is of status 2xx; its body must be closed.
func (r *rest) send(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
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
		return nil, transport.DialError(err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, transport.ResponseError(resp)
	}
	return resp, nil
}

// unusable is what is wrong with a server that can't be tested at all, and what may help.
func unusable(where string, err error) error {
	code, advice := listwatch.CodeOf(err), ""
	_, refused := errors.AsType[*net.OpError](err)
	switch {
	case code == listwatch.Unauthorized:
		advice = "; give a token or a client certificate"
	case code == listwatch.Forbidden:
		advice = "; these credentials may not do what the cases need"
	case isUntrusted(err):
		advice = "; name its CA, or believe any certificate"
	case refused:
		advice = "; does it run?"
	}
	return &listwatch.Error{Code: code, Message: where + " can't be tested" + advice, Err: err}
}
