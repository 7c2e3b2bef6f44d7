package rest

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
)

// A Request holds the parsed parameters of a list or a watch.
type Request struct {
	listwatch.Query
	Watch   bool
	Timeout time.Duration // zero if timeoutSeconds is not set
}

// Request parses the parameters by the rules of docs/protocol.md. A value that cannot be parsed is
// refused with status 400. A combination that is not allowed is refused with status 422 and the
// fields as causes, as in Kubernetes (apimachinery, internalversion/validation). isWatch makes the
// request a watch without the parameter watch. lastEventID is the header Last-Event-ID.
func (p *Params) Request(isWatch bool, lastEventID string) (q Request, err error) {
	if err := p.checkText(); err != nil {
		return q, err
	}
	v := values{Params: p}
	q.Watch, q.Timeout = v.watch(isWatch), v.seconds("timeoutSeconds")
	q.Selection, err = p.Selection()
	v.keep(err)
	q.Limit = max(0, v.integer("limit")) // as in Kubernetes, a negative limit means none
	q.Continue = p.Get("continue")
	q.Bookmarks = v.boolean("allowWatchBookmarks")
	v.start(&q)
	if v.err != nil {
		return q, v.err
	}
	if q.Watch {
		return q, v.asWatch(&q, lastEventID)
	}
	return q, p.asList(&q)
}

// values parses parameters. err is the error of the first one that cannot be parsed.
type values struct {
	*Params
	err error
}

func (v *values) keep(err error) {
	if v.err == nil {
		v.err = err
	}
}

// watch parses the parameter watch. In addition to booleans it accepts "yes", which old Kubernetes
// documents use, an empty value, which users of curl write, and True and False, which the Python
// client writes. If the parameter is absent or false, the result is byPath.
func (v *values) watch(byPath bool) bool {
	if !v.Has("watch") {
		return byPath
	}
	switch text := v.Get("watch"); strings.ToLower(text) {
	case "1", "true", "yes", "":
		return true
	case "0", "false":
		return byPath
	default:
		v.keep(invalid("watch: %q must be 1, true, yes, 0 or false", text))
		return false
	}
}

// boolean parses a parameter that is false if absent, and true if present and empty, as in
// Kubernetes.
func (v *values) boolean(name string) bool {
	text := v.Get(name)
	if text == "" {
		return v.Has(name)
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		v.keep(invalid("%s: %q must be true or false", name, text))
	}
	return b
}

// integer parses a parameter that is a limit. A value beyond 31 bits is lowered, because such a
// limit is never reached. Any negative value becomes -1.
func (v *values) integer(name string) int {
	text := v.Get(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64) // as in Kubernetes, the number may have a plus sign
	if err != nil {
		v.keep(invalid("%s: %q must be an integer of 64 bits", name, text))
	}
	return int(max(-1, min(n, math.MaxInt32)))
}

func (v *values) seconds(name string) time.Duration {
	n := v.integer(name)
	if n < 0 {
		v.keep(invalid("%s: %q must not be negative", name, v.Get(name)))
	}
	return time.Duration(n) * time.Second
}

// start parses the parameters that determine where the list or watch starts.
func (v *values) start(q *Request) {
	rv := v.Get("resourceVersion")
	version, err := listwatch.ParseVersion(rv)
	switch {
	case err != nil:
		v.keep(err)
	case rv == "0":
		q.Start = listwatch.StartAny
	case rv != "":
		q.Start, q.Version = listwatch.StartAt, version
	}
	if !v.Has("sendInitialEvents") {
		return
	}
	if q.InitialEvents = listwatch.InitialEventsNo; v.boolean("sendInitialEvents") {
		q.InitialEvents = listwatch.InitialEventsYes
	}
}

// The parameter resourceVersionMatch, and its values.
const (
	versionMatch      = "resourceVersionMatch"
	matchNotOlderThan = "NotOlderThan"
	matchExact        = "Exact"
)

// asWatch checks the combination of the parameters of a watch, and parses those that only a watch
// has.
func (v *values) asWatch(q *Request, lastEventID string) (err error) {
	if q.Conflate, err = ParseConflation(v.Get("conflate")); err != nil {
		return err
	}
	match := v.Get(versionMatch)
	var c conflicts
	switch {
	case q.InitialEvents != listwatch.InitialEventsUnset && match != matchNotOlderThan:
		c.forbid(versionMatch, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
	case match != "" && q.InitialEvents == listwatch.InitialEventsUnset:
		c.forbid(versionMatch, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
	}
	if match != "" && match != matchNotOlderThan {
		c.unsupported(versionMatch, match, matchNotOlderThan)
	}
	// As in Kubernetes, a watch without a version has NotOlderThan by default, and continue
	// excludes any resourceVersionMatch.
	if q.Continue != "" && (match != "" || q.Start != listwatch.StartAt &&
		q.InitialEvents == listwatch.InitialEventsUnset) {
		c.forbid(versionMatch, "resourceVersionMatch is forbidden when continue is provided")
	}
	if err := c.err(); err != nil {
		return err
	}
	q.Limit, q.Continue = 0, "" // as in Kubernetes, they have no effect on a watch
	if err := q.resume(lastEventID); err != nil {
		return err
	}
	if v.since(q); !q.SendsInitialEvents() || !q.Bookmarks || q.Since.Version == 0 {
		q.Since = listwatch.State{} // an ID without a version means nothing
	}
	return v.err
}

// since parses the parameters with which a client requests the difference to its own state.
func (v *values) since(q *Request) {
	text := v.Get("initialEventsSince")
	version, err := listwatch.ParseVersion(text)
	if err != nil {
		v.keep(invalid("initialEventsSince: %q must be a decimal number below 2^64", text))
	}
	q.Since = listwatch.State{Version: version, ID: v.Get("initialEventsState")}
}

// resume makes r start at lastEventID, which an EventSource sends when it reconnects (HTML,
// "the Last-Event-ID header"). It takes precedence over resourceVersion, because a browser
// reconnects to the URL that the page opened first. If lastEventID is empty, r does not change.
func (r *Request) resume(lastEventID string) error {
	if lastEventID == "" {
		return nil
	}
	v, err := listwatch.ParseVersion(lastEventID)
	if err != nil || v == 0 {
		return invalid("Last-Event-ID %q must be a resourceVersion", lastEventID)
	}
	// The client has already received the initial events that its URL requests.
	r.Start, r.Version, r.InitialEvents = listwatch.StartAt, v, listwatch.InitialEventsUnset
	return nil
}

// asList checks the combination of the parameters of a list, by the table in "the resourceVersion
// parameter" of the Kubernetes API concepts.
func (p *Params) asList(q *Request) error {
	match := p.Get(versionMatch)
	var c conflicts
	if match != "" {
		switch {
		case q.Continue != "":
			c.forbid(versionMatch, "resourceVersionMatch is forbidden when continue is provided")
		case p.Get("resourceVersion") == "":
			c.forbid(versionMatch, "resourceVersionMatch is forbidden unless resourceVersion is provided")
		case !slices.Contains([]string{matchExact, matchNotOlderThan}, match):
			c.unsupported(versionMatch, match, matchExact, matchNotOlderThan)
		case match == matchExact && q.Start == listwatch.StartAny:
			c.forbid(versionMatch, `resourceVersionMatch "Exact" is forbidden for resourceVersion "0"`)
		}
	}
	if p.Has("sendInitialEvents") {
		c.forbid("sendInitialEvents", "sendInitialEvents is forbidden for list")
	}
	if err := c.err(); err != nil {
		return err
	}
	if q.Continue != "" {
		if q.Start == listwatch.StartAt {
			return invalid("specifying resource version is not allowed when using continue")
		}
		q.Start = listwatch.StartNewest
	}
	// In Kubernetes, limit and resourceVersion without resourceVersionMatch mean that exact
	// version.
	if match == matchExact || match == "" && q.Limit > 0 && q.Start == listwatch.StartAt {
		q.Match = listwatch.MatchExact
	}
	return nil
}

// conflicts are the parameters that the other parameters do not allow.
type conflicts []listwatch.Cause

func (c *conflicts) forbid(field, message string) {
	*c = append(*c, listwatch.Cause{Reason: "FieldValueForbidden", Message: "Forbidden: " + message, Field: field})
}

func (c *conflicts) unsupported(field, value string, supported ...string) {
	for i, v := range supported {
		supported[i] = strconv.Quote(v)
	}
	*c = append(*c, listwatch.Cause{
		Reason: "FieldValueNotSupported", Field: field,
		Message: fmt.Sprintf("Unsupported value: %q: supported values: %s", value, strings.Join(supported, ", ")),
	})
}

// err returns the error of status 422 for c, or nil if there are no conflicts.
func (c conflicts) err() error {
	if len(c) == 0 {
		return nil
	}
	message := "ListOptions is invalid"
	for _, cause := range c {
		message += ": " + cause.Field + ": " + cause.Message
	}
	return &listwatch.Error{
		Code: listwatch.Invalid, Status: http.StatusUnprocessableEntity, Reason: "Invalid", Message: message,
		Details: &listwatch.Details{Kind: "ListOptions", Group: "meta.k8s.io", Causes: c},
	}
}
