package client

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// List requests one page and does not retry. After a failure the caller may retry when the
// RetryAfter of the error has passed. If a continue token has expired and the server offers a new
// token, [listwatch.Error.Continue] holds the new token.
//
// Objects keep the bytes that the server sent, with one exception: items of Kubernetes' typed
// lists lack kind and apiVersion. List adds these two as the first members, so that an object
// has the same bytes as in a watch. If the versions of the server are not decimal numbers, the
// error is [listwatch.Unsupported].
func (r *Remote) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	page, _, err := r.list(ctx, q)
	return page, err
}

// list is like List and also returns the epoch that the server reported.
func (r *Remote) list(ctx context.Context, q listwatch.Query) (page listwatch.Page, epoch string, err error) {
	if err := checkQuery("list", q); err != nil {
		return page, "", err
	}
	u, err := r.parseURL()
	if err != nil {
		return page, "", transport.DialError(ctx, "list", err)
	}
	r.init()
	err = r.atNamespace(u, q, func(u *url.URL, q listwatch.Query) error {
		page, epoch, err = r.listAt(ctx, u, q)
		return err
	})
	return page, epoch, err
}

// atNamespace calls request with the URL of the namespace of q, and with q without the namespace.
// If the URL does not exist, it calls request with u and q: a server may lack the URLs of
// namespaces, and kinds may have no namespaces.
func (r *Remote) atNamespace(
	u *url.URL, q listwatch.Query, request func(*url.URL, listwatch.Query) error,
) error {
	at := namespaceURL(u, q.Namespace)
	if at == nil || r.PlainPaths || r.state.lacksNamespaces.Load() {
		return request(u, q)
	}
	all := q
	all.Namespace = ""
	err := request(at, all)
	if listwatch.CodeOf(err) != listwatch.NotFound {
		return err
	}
	if err = request(u, q); err == nil {
		r.state.lacksNamespaces.Store(true)
	}
	return err
}

// listAt requests the list at u, which is the URL of the collection or of its namespace.
func (r *Remote) listAt(
	ctx context.Context, u *url.URL, q listwatch.Query,
) (page listwatch.Page, epoch string, err error) {
	p, projection, err := parametersOf(r, u, q, false)
	if err == nil {
		err = r.authorized(ctx, false, func(h http.Header) error {
			page, epoch, err = r.listOnce(ctx, withParameters(u, p), h, projection)
			return err
		})
	}
	if err != nil {
		return listwatch.Page{}, "", transport.DialError(ctx, "list", err)
	}
	r.learnEpoch(epoch)
	return page, epoch, nil
}

func (r *Remote) listOnce(
	ctx context.Context, u *url.URL, h http.Header, projection listwatch.Projection,
) (page listwatch.Page, epoch string, err error) {
	read := func(h http.Header, body io.Reader) error {
		r.Trace.responded(h)
		epoch = h.Get(transport.EpochHeader)
		if page, err = r.readList(body); err != nil {
			return err
		}
		projection = missing(projection, h)
		for i, o := range page.Items {
			page.Items[i] = projection.Reduce(o)
		}
		return nil
	}
	err = r.state.fallback.query.send(u, func(method string) error {
		if method == http.MethodGet {
			return r.do(ctx, method, u, h, nil, read)
		}
		o := objectRequest{body: []byte(u.RawQuery), contentType: transport.QueryType}
		return r.do(ctx, method, withoutQuery(u), o.header(h), o.body, func(h http.Header, body io.Reader) error {
			if err := transport.CheckQuery(h); err != nil {
				return err
			}
			return read(h, body)
		})
	})
	return page, epoch, err
}

// readList reads the body of a list.
func (r *Remote) readList(body io.Reader) (listwatch.Page, error) {
	limit, total := framing.LimitOrDefault(r.MaxObjectBytes), cmp.Or(r.MaxListBytes, DefaultMaxListBytes)
	e, ok := r.encoding().(framing.ListEncoding)
	if !ok {
		if err := listwatch.Describe(r).RequireJSON("a list over HTTP"); err != nil {
			return listwatch.Page{}, err
		}
		b := newListBody(body, int64(limit), total)
		page, err := b.read()
		if err == nil {
			r.learnKind(b.itemAPIVersion, b.itemKind)
		}
		return page, err
	}
	list, err := e.ReadList(&boundedReader{r: body, total: total, allowed: math.MaxInt64}, limit)
	if err == nil {
		err = checkPage(&list.Page)
	}
	if err != nil {
		return listwatch.Page{}, listBodyError(err)
	}
	r.learnKind(list.APIVersion, strings.TrimSuffix(list.Kind, "List"))
	return list.Page, nil
}

// checkPage checks a page that an encoding has read.
func checkPage(page *listwatch.Page) error {
	for _, o := range page.Items {
		if o.Key.Name == "" || o.Version == 0 {
			return corruptList(fmt.Sprintf("the list has an object %q of version %d", o.Key, o.Version), nil)
		}
	}
	switch {
	case page.Version == 0:
		return errUnversionedList
	case page.Continue == "":
		page.Remaining = 0
	}
	return nil
}

// A boundedReader returns an error if a decoder reads beyond the allowed offset. A decoder does so
// only if a value, or the whole list, is larger than its limit.
type boundedReader struct {
	r io.Reader
	// total is the maximum size of the whole list. A negative value means no limit.
	total   int64
	allowed int64
	read    int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	limit := b.allowed
	if b.total >= 0 {
		limit = min(limit, b.total)
	}
	if b.read >= limit {
		// The limit is reached, so the response must end here.
		n, err := b.r.Read(p[:min(1, len(p))])
		if n > 0 {
			err = corruptList(fmt.Sprintf("an object or the list exceeds the limit of %d bytes", limit), nil)
		}
		return 0, err
	}
	n, err := b.r.Read(p[:min(int64(len(p)), limit-b.read)])
	b.read += int64(n)
	return n, err
}
