package client

import (
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

const (
	// maxURLQuery is the length above which the parameters are sent in the body of a QUERY (RFC
	// 10008). Servers and proxies limit the length of a URL to 8 KiB or so.
	maxURLQuery = 4 << 10
	// queryRetryInterval is the time for which the client uses GET after a server has refused
	// QUERY.
	queryRetryInterval = time.Hour
)

// A queryMethod chooses between GET and QUERY. It remembers that the server has refused QUERY. It
// is safe for concurrent use.
type queryMethod struct {
	refused atomic.Pointer[time.Time] // the time of the last refusal
}

// send calls try with the method for a list or a watch of u. If the server refuses QUERY, it calls
// try again with GET.
func (q *queryMethod) send(u *url.URL, try func(method string) error) error {
	refused := q.refused.Load()
	if len(u.RawQuery) <= maxURLQuery || refused != nil && time.Since(*refused) < queryRetryInterval {
		return try(http.MethodGet)
	}
	err := try(transport.MethodQuery)
	if !refusesQuery(err) {
		return err
	}
	// If the GET fails, too, the server may have refused the parameters and not the method.
	if err = try(http.MethodGet); err == nil {
		now := time.Now()
		q.refused.Store(&now)
	}
	return err
}

// withoutQuery returns u without its parameters.
func withoutQuery(u *url.URL) *url.URL {
	c := *u
	c.RawQuery = ""
	return &c
}

// refusesQuery reports whether a GET may succeed after a QUERY has failed with err. A server that
// does not know the method responds with 400, 405 or 501. A server whose authorization rules do not
// know the method, such as Kubernetes, responds with 403.
func refusesQuery(err error) bool {
	if err == nil {
		return false
	}
	e := listwatch.AsError(err)
	if !e.Remote {
		return e.Code == listwatch.Unsupported // see transport.CheckQuery
	}
	return slices.Contains([]int{
		http.StatusBadRequest, http.StatusForbidden, http.StatusMethodNotAllowed,
		http.StatusUnsupportedMediaType, http.StatusNotImplemented,
	}, e.Status)
}
