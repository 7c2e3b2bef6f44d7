package client

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/compress"
	"github.com/listwatch/listwatch/internal/httpheader"
	"github.com/listwatch/listwatch/transport"
)

// List requests one page and does not retry. After a failure the caller may retry when the
// RetryAfter of the error has passed. If a continue token has expired and the server offers
// a new one, [listwatch.Error.Continue] holds it.
//
// Objects keep the bytes that the server sent, with one exception: items of Kubernetes' typed
// lists lack kind and apiVersion. List adds these two as the first members, so that an object
// has the same bytes as in a watch. If the versions of the server are not decimal numbers, the
// error is [listwatch.Unsupported].
func (r *Remote) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	page, _, err := r.list(ctx, q)
	return page, err
}

// list is like List and also returns the epoch that the server named.
func (r *Remote) list(ctx context.Context, q listwatch.Query) (page listwatch.Page, epoch string, err error) {
	if err := checkQuery(q, false); err != nil {
		return page, "", err
	}
	u, err := r.parseURL()
	if err != nil {
		return page, "", listError(err)
	}
	r.init()
	p := paramsOf(u, q)
	p.list(q)
	err = r.authorized(ctx, false, func(h http.Header) error {
		page, epoch, err = r.listOnce(ctx, p.url(u), h)
		return err
	})
	if ctx.Err() != nil && err != nil {
		return listwatch.Page{}, "", ctx.Err()
	}
	if err != nil {
		return listwatch.Page{}, "", listError(err)
	}
	r.learnEpoch(epoch)
	return page, epoch, nil
}

func listError(err error) error {
	e := transport.DialError(err)
	if e.Op == "" {
		e.Op = "list"
	}
	return e
}

func (r *Remote) listOnce(ctx context.Context, u *url.URL, h http.Header) (page listwatch.Page, epoch string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := newIdleTimer(r.idle(), cancel)
	defer idle.stop()
	defer func() {
		if err != nil && idle.expired.Load() {
			err = errIdle
		}
	}()
	req, err := r.newListRequest(ctx, u, h)
	if err != nil {
		return page, "", err
	}
	resp, err := r.state.http.Do(req)
	if err != nil {
		return page, "", err
	}
	if resp.StatusCode != http.StatusOK {
		return page, "", transport.ResponseError(resp)
	}
	defer resp.Body.Close()
	if err := checkList(resp.Header); err != nil {
		return page, "", err
	}
	body, err := r.decoded(resp.Header, &activityReader{resp.Body, idle})
	if err != nil {
		return page, "", err
	}
	b := newListBody(body, int64(r.limit()), r.listLimit())
	if page, err = b.read(); err != nil {
		return page, "", err
	}
	r.learnKind(b.itemAPIVersion, b.itemKind)
	return page, resp.Header.Get(transport.EpochHeader), nil
}

func (r *Remote) newListRequest(ctx context.Context, u *url.URL, h http.Header) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Err: errors.Unwrap(err)}
	}
	if h != nil {
		req.Header = h.Clone()
	}
	req.Header.Set("Accept", "application/json")
	if r.Compress {
		req.Header.Set("Accept-Encoding", httpheader.Preferences(r.codings()))
	}
	return req, nil
}

func (r *Remote) listLimit() int64 {
	if r.MaxListBytes == 0 {
		return DefaultMaxListBytes
	}
	return r.MaxListBytes
}

// checkList returns an error if the response is not JSON but, for instance, the HTML page of a
// proxy.
func checkList(h http.Header) error {
	contentType := h.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil || mediaType != "application/json" {
		return unsupportedResponse("the response has Content-Type ", contentType, ", want application/json")
	}
	return nil
}

// decoded returns body without the content coding that h names.
func (r *Remote) decoded(h http.Header, body io.Reader) (io.Reader, error) {
	name := strings.ToLower(h.Get("Content-Encoding"))
	switch {
	case name == "" || name == "identity":
		return body, nil
	case !slices.Contains(r.codings(), name):
		return nil, unsupportedResponse("the response has Content-Encoding ", name, ", which was not requested")
	}
	return compress.NewReader(name, body)
}

func unsupportedResponse(before, value, after string) error {
	const maxQuoted = 64
	return &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusOK, Message: before + strconv.Quote(value[:min(len(value), maxQuoted)]) + after,
	}
}

// An activityReader resets an idle timer whenever it reads something.
type activityReader struct {
	reader io.Reader
	idle   *idleTimer
}

func (r *activityReader) Read(p []byte) (int, error) {
	n, err := r.reader.Read(p)
	if n > 0 {
		r.idle.reset()
	}
	return n, err
}
