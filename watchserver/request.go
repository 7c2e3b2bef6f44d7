package watchserver

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/listwatch/listwatch"
)

// A request is what the parameters of a list or a watch say.
type request struct {
	listwatch.Query
	watch   bool
	pretty  bool
	timeout time.Duration // zero: not said
}

// parseRequest reads r by the rules of docs/protocol.md. Values that can't be read are answered 400; those that can be read but
// don't go together 422, with the fields as causes, as Kubernetes does (apimachinery, internalversion/validation).
func parseRequest(r *http.Request, t Endpoint) (request, error) {
	p, err := newParams(r)
	if err != nil {
		return request{}, err
	}
	q := request{watch: p.watch(t.Watch), pretty: p.boolean("pretty"), timeout: p.seconds("timeoutSeconds")}
	q.Namespace, q.Name = t.Namespace, t.Name
	q.Labels = selector(p, "labelSelector", listwatch.ParseLabelSelector)
	q.Fields = selector(p, "fieldSelector", listwatch.ParseFieldSelector)
	q.Limit = p.number("limit")
	q.Continue = p.Get("continue")
	q.Bookmarks = p.boolean("allowWatchBookmarks")
	p.start(&q)
	if p.err == nil && t.Name != "" {
		if name, ok := q.Fields.Equality(listwatch.FieldName); ok && name != t.Name {
			p.bad("fieldSelector", "metadata.name is "+name+", but the path names "+t.Name)
		}
	}
	if p.err != nil {
		return q, p.err
	}
	if q.watch {
		if r.Method != http.MethodGet {
			return q, methodNotAllowed(r, http.MethodGet)
		}
		return q, p.checkWatch(&q, r.Header.Get("Last-Event-ID"))
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return q, methodNotAllowed(r, "GET, HEAD")
	}
	return q, p.checkList(&q)
}

// params are the parameters of a request. The first that can't be read is kept as err.
type params struct {
	url.Values
	err error
}

func newParams(r *http.Request) (*params, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "the query of the URL", Err: err}
	}
	for name, all := range values {
		for _, v := range append(all, name) {
			if !utf8.ValidString(v) {
				return nil, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("parameter %q is not valid UTF-8: %q", name, v)}
			}
		}
	}
	return &params{Values: values}, nil
}

func (p *params) bad(name, what string) {
	if p.err == nil {
		p.err = &listwatch.Error{Code: listwatch.Invalid, Message: name + ": " + what}
	}
}

// watch reads the parameter watch: the old documents of Kubernetes show yes, curl users leave the value out, and its client for Python
// writes True and False.
func (p *params) watch(forced bool) bool {
	if !p.Has("watch") {
		return forced
	}
	switch v := p.Get("watch"); strings.ToLower(v) {
	case "1", "true", "yes", "":
		return true
	case "0", "false":
		return forced
	default:
		p.bad("watch", fmt.Sprintf("%q is none of 1, true, yes, 0 and false", v))
		return false
	}
}

func (p *params) boolean(name string) bool {
	v := p.Get(name)
	b, err := strconv.ParseBool(v)
	if v != "" && err != nil {
		p.bad(name, fmt.Sprintf("%q is neither true nor false", v))
	}
	return b
}

func (p *params) number(name string) int {
	v := p.Get(name)
	if v == "" {
		return 0
	}
	n, err := strconv.ParseUint(v, 10, 31)
	if err != nil {
		p.bad(name, fmt.Sprintf("%q is not a whole number that is not negative", v))
	}
	return int(n)
}

func (p *params) seconds(name string) time.Duration {
	return time.Duration(p.number(name)) * time.Second
}

func selector[S any](p *params, name string, parse func(string) (S, error)) S {
	s, err := parse(p.Get(name))
	if err != nil && p.err == nil {
		p.err = err
	}
	return s
}

// start reads where to begin.
func (p *params) start(q *request) {
	rv := p.Get("resourceVersion")
	v, err := listwatch.ParseVersion(rv)
	switch {
	case err != nil:
		if p.err == nil {
			p.err = err
		}
	case rv == "0":
		q.Start = listwatch.Any
	case rv != "":
		q.Start, q.Version = listwatch.At, v
	}
	if !p.Has("sendInitialEvents") {
		return
	}
	if q.InitialEvents = listwatch.No; p.boolean("sendInitialEvents") {
		q.InitialEvents = listwatch.Yes
	}
}

const (
	matchNotOlderThan = "NotOlderThan"
	matchExact        = "Exact"
)

// checkWatch holds the parameters of a watch against each other, and resumes from lastEventID, which an EventSource sends when it
// comes back (HTML, "the Last-Event-ID header").
func (p *params) checkWatch(q *request, lastEventID string) error {
	match := p.Get("resourceVersionMatch")
	var causes []listwatch.Cause
	switch {
	case q.InitialEvents != listwatch.Unset && match != matchNotOlderThan:
		causes = append(causes, forbidden("resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
	case match != "" && q.InitialEvents == listwatch.Unset:
		causes = append(causes, forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
	}
	if match != "" && match != matchNotOlderThan {
		causes = append(causes, unsupported("resourceVersionMatch", match, matchNotOlderThan))
	}
	if q.Continue != "" {
		causes = append(causes, forbidden("continue", "continue is forbidden for watch"))
	}
	if causes != nil {
		return invalid(causes)
	}
	q.Limit = 0
	if lastEventID == "" {
		return nil
	}
	v, err := listwatch.ParseVersion(lastEventID)
	if err != nil || v == 0 {
		return &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("Last-Event-ID %q is not a resourceVersion", lastEventID)}
	}
	if rv := p.Get("resourceVersion"); rv != "" && rv != lastEventID {
		return &listwatch.Error{
			Code:    listwatch.Invalid,
			Message: fmt.Sprintf("resourceVersion %s and Last-Event-ID %s differ; an EventSource that is to resume must be opened without resourceVersion", rv, lastEventID),
		}
	}
	// What the client has seen includes the initial events that the URL asks for.
	q.Start, q.Version, q.InitialEvents = listwatch.At, v, listwatch.Unset
	return nil
}

// checkList holds the parameters of a list against each other: the table of the Kubernetes API concepts, "the resourceVersion parameter".
func (p *params) checkList(q *request) error {
	match := p.Get("resourceVersionMatch")
	var causes []listwatch.Cause
	if match != "" {
		switch {
		case q.Continue != "":
			causes = append(causes, forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"))
		case p.Get("resourceVersion") == "":
			causes = append(causes, forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"))
		case !slices.Contains([]string{matchExact, matchNotOlderThan}, match):
			causes = append(causes, unsupported("resourceVersionMatch", match, matchExact, matchNotOlderThan))
		case match == matchExact && q.Start == listwatch.Any:
			causes = append(causes, forbidden("resourceVersionMatch", `resourceVersionMatch "Exact" is forbidden for resourceVersion "0"`))
		}
	}
	if p.Has("sendInitialEvents") {
		causes = append(causes, forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
	}
	if causes != nil {
		return invalid(causes)
	}
	if q.Continue != "" {
		if q.Start == listwatch.At {
			return &listwatch.Error{Code: listwatch.Invalid, Message: "specifying resource version is not allowed when using continue"}
		}
		q.Start = listwatch.Newest
	}
	// A limit with a version and no match has always meant that very version.
	if match == matchExact || match == "" && q.Limit > 0 && q.Start == listwatch.At {
		q.Match = listwatch.Exact
	}
	return nil
}

func forbidden(field, message string) listwatch.Cause {
	return listwatch.Cause{Reason: "FieldValueForbidden", Message: "Forbidden: " + message, Field: field}
}

func unsupported(field, value string, supported ...string) listwatch.Cause {
	message := fmt.Sprintf("Unsupported value: %q: supported values: %s", value, strings.Trim(fmt.Sprintf("%q", supported), "[]"))
	return listwatch.Cause{Reason: "FieldValueNotSupported", Message: strings.ReplaceAll(message, `" "`, `", "`), Field: field}
}

// invalid is the 422 of parameters that don't go together.
func invalid(causes []listwatch.Cause) error {
	message := "ListOptions is invalid"
	for _, c := range causes {
		message += ": " + c.Field + ": " + c.Message
	}
	return &listwatch.Error{
		Code: listwatch.Invalid, Status: http.StatusUnprocessableEntity, Reason: "Invalid", Message: message,
		Details: &listwatch.Details{Kind: "ListOptions", Group: "meta.k8s.io", Causes: causes},
	}
}
