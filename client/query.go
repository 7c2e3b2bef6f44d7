package client

import (
	"net/url"
	"strconv"

	"github.com/listwatch/listwatch"
)

// queryParams are the parameters that come from a Query. If Remote.URL contains them, they
// are ignored.
var queryParams = []string{
	"watch", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "allowWatchBookmarks", "limit", "continue", "pretty",
}

// params are the parameters of one request.
type params struct{ url.Values }

// paramsOf returns the parameters of every request for q: the query of u and the selection. The
// URL identifies one collection, so namespace and name become field selectors, which every
// server knows.
func paramsOf(u *url.URL, q listwatch.Query) params {
	p := params{u.Query()}
	for _, name := range queryParams {
		p.Del(name)
	}
	fields := q.Fields
	if q.Namespace != "" {
		fields = fields.And(listwatch.FieldEquals(listwatch.FieldNamespace, q.Namespace))
	}
	if q.Name != "" {
		fields = fields.And(listwatch.FieldEquals(listwatch.FieldName, q.Name))
	}
	p.addSelector("labelSelector", q.Labels.String())
	p.addSelector("fieldSelector", fields.String())
	return p
}

// addSelector appends selector to the selector of the URL. The comma between them means
// "and".
func (p params) addSelector(name, selector string) {
	if existing := p.Get(name); existing != "" && selector != "" {
		selector = existing + "," + selector
	}
	if selector != "" {
		p.Set(name, selector)
	}
}

// url returns u with the parameters p.
func (p params) url(u *url.URL) *url.URL {
	c := *u
	c.RawQuery = p.Encode()
	return &c
}

func (p params) start(q listwatch.Query) {
	switch q.Start {
	case listwatch.Any:
		p.Set("resourceVersion", "0")
	case listwatch.At:
		p.Set("resourceVersion", q.Version.String())
	}
}

// list adds the parameters of a list.
func (p params) list(q listwatch.Query) {
	if q.Limit > 0 {
		p.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Continue != "" {
		p.Set("continue", q.Continue)
		return
	}
	p.start(q)
	if q.Start == listwatch.At {
		match := "NotOlderThan"
		if q.Match == listwatch.Exact {
			match = "Exact"
		}
		p.Set("resourceVersionMatch", match)
	}
}

// watch adds the parameters of a watch from version. It always requests bookmarks: they
// advance the version of a watch that receives no events, so that it can resume even after
// the history of its last event has expired.
func (p params) watch(version listwatch.Version) {
	p.Set("watch", "true")
	p.Set("allowWatchBookmarks", "true")
	p.Set("resourceVersion", version.String())
}

// watchInitial adds the parameters of a watch with initial events. It requests them
// explicitly even if they are the default, because otherwise the server does not mark their
// end (KEP-3157).
func (p params) watchInitial(q listwatch.Query) {
	p.Set("watch", "true")
	p.Set("allowWatchBookmarks", "true")
	p.Set("sendInitialEvents", "true")
	p.Set("resourceVersionMatch", "NotOlderThan")
	p.start(q)
}

// checkQuery returns an error if q cannot be expressed as a request.
func checkQuery(q listwatch.Query, watch bool) error {
	message := ""
	switch {
	case q.Start == listwatch.At && q.Version == 0:
		message = "Query.Version is zero: Start At needs a version"
	case watch && q.Continue != "":
		message = "Query.Continue is set: only a list can be continued"
	case q.Continue != "" && (q.Start != listwatch.Newest || q.Version != 0 || q.Match != 0):
		message = "Query.Start, Version and Match must be zero with a continue token"
	}
	if message == "" {
		return nil
	}
	return &listwatch.Error{Code: listwatch.Invalid, Op: opOf(watch), Message: message}
}

func opOf(watch bool) string {
	if watch {
		return "watch"
	}
	return "list"
}
