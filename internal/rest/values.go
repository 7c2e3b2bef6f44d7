package rest

import (
	"net/url"
	"strconv"

	"github.com/listwatch/listwatch"
)

// Set adds the parameters of a list or a watch with q to p, and replaces those that p has, so that
// [Params.Request] returns q. The selectors of p remain, so they select in addition to those of q,
// and so does the projection of p if q has none. A URL identifies one collection, so the namespace
// and the name of q become field selectors, which every server knows.
//
// A watch always requests bookmarks, because they advance the version of a watch that receives no
// events. Such a watch can then resume even if the version of its last event has expired.
func Set(p url.Values, q listwatch.Query, watch bool) {
	for _, name := range Names(Reads) {
		p.Del(name)
	}
	fields := q.Fields
	if q.Namespace != "" {
		fields = fields.And(listwatch.FieldEquals(listwatch.FieldNamespace, q.Namespace))
	}
	if q.Name != "" {
		fields = fields.And(listwatch.FieldEquals(listwatch.FieldName, q.Name))
	}
	addSelector(p, "labelSelector", q.Labels.String())
	addSelector(p, "fieldSelector", fields.String())
	if !q.Projection.Empty() {
		p.Set("fields", q.Projection.String())
	}
	if watch {
		setWatch(p, q)
	} else {
		setList(p, q)
	}
}

// addSelector appends selector to the parameter name. The comma between them means "and".
func addSelector(p url.Values, name, selector string) {
	if existing := p.Get(name); existing != "" && selector != "" {
		selector = existing + "," + selector
	}
	if selector != "" {
		p.Set(name, selector)
	}
}

func setList(p url.Values, q listwatch.Query) {
	if q.Limit > 0 {
		p.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Continue != "" {
		p.Set("continue", q.Continue)
		return
	}
	setStart(p, q)
	switch {
	case q.Start != listwatch.StartAt:
	case q.Match == listwatch.MatchExact:
		p.Set("resourceVersionMatch", matchExact)
	default:
		p.Set("resourceVersionMatch", matchNotOlderThan)
	}
}

func setStart(p url.Values, q listwatch.Query) {
	switch q.Start {
	case listwatch.StartAny:
		p.Set("resourceVersion", "0")
	case listwatch.StartAt:
		p.Set("resourceVersion", q.Version.String())
	}
}

// setWatch requests the initial events explicitly even if the server sends them by default, because
// otherwise the server does not mark their end (KEP-3157).
func setWatch(p url.Values, q listwatch.Query) {
	p.Set("watch", "true")
	p.Set("allowWatchBookmarks", "true")
	if q.Conflate != 0 {
		p.Set("conflate", FormatConflation(q.Conflate))
	}
	setStart(p, q)
	sends := q.SendsInitialEvents()
	if sends || q.Start != listwatch.StartAt {
		p.Set("sendInitialEvents", strconv.FormatBool(sends))
		p.Set("resourceVersionMatch", matchNotOlderThan)
	}
	if since := q.Since; sends && since.Version != 0 {
		p.Set("initialEventsSince", since.Version.String())
		p.Set("initialEventsState", since.ID)
	}
}
