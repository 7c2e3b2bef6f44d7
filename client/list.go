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

// List asks for one page, once: what fails is the caller's to try again, after Details.RetryAfter of the error. An Expired continue
// token comes with a fresh one, [listwatch.Error.Continue], where the server has one.
//
// The bytes of the objects are the server's. Where they have no kind and apiVersion, as the items of typed lists in Kubernetes, these
// come first, made from the list's, so that an object has the same bytes as in a watch. A server whose versions are not decimal
// numbers is an error of code Unsupported.
func (r *Remote) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	page, _, err := r.list(ctx, q)
	return page, err
}

// list is List, and also returns the epoch that the answer bore.
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
		page, epoch, err = r.listOnce(ctx, p.in(u), h)
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
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return page, "", &listwatch.Error{Code: listwatch.Invalid, Err: errors.Unwrap(err)}
	}
	if h != nil {
		req.Header = h.Clone()
	}
	req.Header.Set("Accept", "application/json")
	if r.Compress {
		req.Header.Set("Accept-Encoding", httpheader.Preferences(r.codings()))
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
	body, err := r.decoded(resp.Header, &touchingReader{resp.Body, idle})
	if err != nil {
		return page, "", err
	}
	b := newListBody(body, int64(r.limit()), r.listLimit())
	if page, err = b.read(); err != nil {
		return page, "", err
	}
	r.learnKind(b.apiVersion, b.kind)
	return page, resp.Header.Get(transport.EpochHeader), nil
}

func (r *Remote) listLimit() int64 {
	if r.MaxListBytes == 0 {
		return DefaultMaxListBytes
	}
	return r.MaxListBytes
}

// checkList refuses an answer that is no JSON: it may be a proxy's page.
func checkList(h http.Header) error {
	contentType := h.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil || mediaType != "application/json" {
		return unsupportedAnswer("the answer has the Content-Type ", contentType, ", want application/json")
	}
	return nil
}

// decoded returns a body without the content coding that the headers h name.
func (r *Remote) decoded(h http.Header, body io.Reader) (io.Reader, error) {
	name := strings.ToLower(h.Get("Content-Encoding"))
	switch {
	case name == "" || name == "identity":
		return body, nil
	case !slices.Contains(r.codings(), name):
		return nil, unsupportedAnswer("the answer has the content coding ", name, ", which was not asked for")
	}
	return compress.NewReader(name, body)
}

func unsupportedAnswer(before, value, after string) error {
	const most = 64
	return &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusOK, Message: before + strconv.Quote(value[:min(len(value), most)]) + after,
	}
}

// A touchingReader tells a watchdog that something has come.
type touchingReader struct {
	r    io.Reader
	idle *idleTimer
}

func (t *touchingReader) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if n > 0 {
		t.idle.reset()
	}
	return n, err
}
