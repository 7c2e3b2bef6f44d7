package client

import (
	"net/url"
	"strconv"

	"github.com/listwatch/listwatch"
)

// owned are the parameters that a Query alone decides.
var owned = []string{
	"watch", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "allowWatchBookmarks", "limit", "continue", "pretty",
}

// params are the parameters of one request.
type params struct{ url.Values }

// paramsOf returns what every request for q has: the query of u, and the selection. The URL is that of one collection, so namespace and
// name, too, are selected by field: metadata.namespace and metadata.name are known everywhere.
func paramsOf(u *url.URL, q listwatch.Query) params {
	p := params{u.Query()}
	for _, name := range owned {
		p.Del(name)
	}
	fields := q.Fields
	if q.Namespace != "" {
		fields = fields.And(listwatch.FieldNamespace, q.Namespace)
	}
	if q.Name != "" {
		fields = fields.And(listwatch.FieldName, q.Name)
	}
	p.demand("labelSelector", q.Labels.String())
	p.demand("fieldSelector", fields.String())
	return p
}

// demand adds to what the URL selects already: in a selector a comma means "and".
func (p params) demand(name, selector string) {
	if had := p.Get(name); had != "" && selector != "" {
		selector = had + "," + selector
	}
	if selector != "" {
		p.Set(name, selector)
	}
}

// in returns u with the parameters p.
func (p params) in(u *url.URL) *url.URL {
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

// list completes p for a list.
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

// watch completes p for a watch from version. Bookmarks are always asked for: they are how the version of a quiet watch moves on, so
// that it can be resumed when the history from its last event is gone.
func (p params) watch(version listwatch.Version) {
	p.Set("watch", "true")
	p.Set("allowWatchBookmarks", "true")
	p.Set("resourceVersion", version.String())
}

// watchInitial completes p for a watch that begins with the state. It says so even where that is the default, because only then the
// server says where the state ends (KEP-3157).
func (p params) watchInitial(q listwatch.Query) {
	p.Set("watch", "true")
	p.Set("allowWatchBookmarks", "true")
	p.Set("sendInitialEvents", "true")
	p.Set("resourceVersionMatch", "NotOlderThan")
	p.start(q)
}

// checkQuery refuses what no server could be asked.
func checkQuery(q listwatch.Query, watch bool) error {
	message := ""
	switch {
	case q.Start == listwatch.At && q.Version == 0:
		message = "Start At needs a Version that is not zero"
	case watch && q.Continue != "":
		message = "a watch can't have a continue token"
	case q.Continue != "" && (q.Start != listwatch.Newest || q.Version != 0 || q.Match != 0):
		message = "with a continue token Start, Version and Match must be zero"
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
