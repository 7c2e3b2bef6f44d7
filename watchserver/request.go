package watchserver

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
)

// A request holds the parsed parameters of a list or a watch.
type request struct {
	listwatch.Query
	watch   bool
	timeout time.Duration // zero if timeoutSeconds is not set
	weight  int           // the number of watches that a watch counts as
}

// parseRequest parses the parameters of r by the rules of docs/protocol.md. A value that cannot be
// parsed is refused with status 400. A combination that is not allowed is refused with status 422
// and the fields as causes, as in Kubernetes (apimachinery, internalversion/validation).
func parseRequest(r *http.Request, asked *apihttp.Parsed, e Endpoint) (request, error) {
	query, err := asked.Query()
	if err != nil {
		return request{}, err
	}
	p, err := newParams(query)
	if err != nil {
		return request{}, err
	}
	q := request{watch: p.watch(e.Watch), timeout: p.seconds("timeoutSeconds"), weight: weightOf(query)}
	var own listwatch.Selection
	if own.Labels, err = listwatch.ParseLabelSelector(p.Get("labelSelector")); err != nil && p.err == nil {
		p.err = err
	}
	if own.Fields, err = asked.Fields(); err != nil && p.err == nil {
		p.err = err
	}
	if own.Projection, err = asked.Projection(); err != nil && p.err == nil {
		p.err = err
	}
	q.Limit = max(0, p.integer("limit")) // as in Kubernetes, a negative limit means none
	q.Continue = p.Get("continue")
	q.Bookmarks = p.boolean("allowWatchBookmarks")
	p.start(&q)
	if p.err == nil && e.Name != "" {
		if name, ok := own.Fields.Equality(listwatch.FieldName); ok && name != e.Name {
			p.fail("fieldSelector", "metadata.name is "+name+", but the path names "+e.Name)
		}
	}
	q.Selection = e.Selection.And(own)
	if p.err != nil {
		return q, p.err
	}
	if q.watch {
		if r.Method != http.MethodGet {
			return q, apihttp.MethodNotAllowed(r, "GET, QUERY")
		}
		if q.Conflate, err = asked.Conflation(); err != nil {
			return q, err
		}
		return q, p.validateWatch(&q, r.Header.Get("Last-Event-ID"))
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return q, apihttp.MethodNotAllowed(r, "GET, HEAD, QUERY")
	}
	return q, p.validateList(&q)
}

// The values of resourceVersionMatch.
const (
	matchNotOlderThan = "NotOlderThan"
	matchExact        = "Exact"
)

// validateWatch checks the combination of the parameters of a watch.
func (p *params) validateWatch(q *request, lastEventID string) error {
	match := p.Get("resourceVersionMatch")
	var causes []listwatch.Cause
	switch {
	case q.InitialEvents != listwatch.InitialEventsUnset && match != matchNotOlderThan:
		causes = append(
			causes, forbiddenCause("resourceVersionMatch",
				"sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
	case match != "" && q.InitialEvents == listwatch.InitialEventsUnset:
		causes = append(
			causes, forbiddenCause("resourceVersionMatch",
				"resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
	}
	if match != "" && match != matchNotOlderThan {
		causes = append(causes, unsupportedCause("resourceVersionMatch", match, matchNotOlderThan))
	}
	// As in Kubernetes, a watch without a version has NotOlderThan by default, and continue
	// excludes any resourceVersionMatch.
	if q.Continue != "" && (match != "" || q.Start != listwatch.StartAt &&
		q.InitialEvents == listwatch.InitialEventsUnset) {
		causes = append(
			causes, forbiddenCause("resourceVersionMatch",
				"resourceVersionMatch is forbidden when continue is provided"))
	}
	if causes != nil {
		return errInvalidOptions(causes)
	}
	q.Limit, q.Continue = 0, "" // as in Kubernetes, they have no effect on a watch
	if err := resume(q, lastEventID); err != nil {
		return err
	}
	if p.since(q); !q.SendsInitialEvents() || !q.Bookmarks {
		q.Since = listwatch.State{}
	}
	return p.err
}

// since parses the parameters with which a client requests the difference to its own state.
func (p *params) since(q *request) {
	text := p.Get("initialEventsSince")
	v, err := listwatch.ParseVersion(text)
	if err != nil {
		p.fail("initialEventsSince", fmt.Sprintf("%q must be a decimal number below 2^64", text))
	}
	q.Since = listwatch.State{Version: v, ID: p.Get("initialEventsState")}
}

// resume makes q start at lastEventID, which an EventSource sends when it reconnects (HTML,
// "the Last-Event-ID header"). It takes precedence over resourceVersion, because a browser
// reconnects to the URL that the page opened first. If lastEventID is empty, q does not change.
func resume(q *request, lastEventID string) error {
	if lastEventID == "" {
		return nil
	}
	v, err := listwatch.ParseVersion(lastEventID)
	if err != nil || v == 0 {
		return &listwatch.Error{
			Code: listwatch.Invalid, Message: fmt.Sprintf("Last-Event-ID %q must be a resourceVersion", lastEventID),
		}
	}
	// The client has already received the initial events that its URL requests.
	q.Start, q.Version, q.InitialEvents = listwatch.StartAt, v, listwatch.InitialEventsUnset
	return nil
}

// validateList checks the combination of the parameters of a list, by the table in "the
// resourceVersion parameter" of the Kubernetes API concepts.
func (p *params) validateList(q *request) error {
	match := p.Get("resourceVersionMatch")
	var causes []listwatch.Cause
	if match != "" {
		switch {
		case q.Continue != "":
			causes = append(
				causes, forbiddenCause("resourceVersionMatch",
					"resourceVersionMatch is forbidden when continue is provided"))
		case p.Get("resourceVersion") == "":
			causes = append(
				causes, forbiddenCause("resourceVersionMatch",
					"resourceVersionMatch is forbidden unless resourceVersion is provided"))
		case !slices.Contains([]string{matchExact, matchNotOlderThan}, match):
			causes = append(causes, unsupportedCause("resourceVersionMatch", match, matchExact, matchNotOlderThan))
		case match == matchExact && q.Start == listwatch.StartAny:
			causes = append(
				causes, forbiddenCause("resourceVersionMatch",
					`resourceVersionMatch "Exact" is forbidden for resourceVersion "0"`))
		}
	}
	if p.Has("sendInitialEvents") {
		causes = append(causes, forbiddenCause("sendInitialEvents", "sendInitialEvents is forbidden for list"))
	}
	if causes != nil {
		return errInvalidOptions(causes)
	}
	if q.Continue != "" {
		if q.Start == listwatch.StartAt {
			return &listwatch.Error{
				Code: listwatch.Invalid, Message: "specifying resource version is not allowed when using continue",
			}
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

func forbiddenCause(field, message string) listwatch.Cause {
	return listwatch.Cause{Reason: "FieldValueForbidden", Message: "Forbidden: " + message, Field: field}
}

func unsupportedCause(field, value string, supported ...string) listwatch.Cause {
	quoted := make([]string, len(supported))
	for i, v := range supported {
		quoted[i] = strconv.Quote(v)
	}
	return listwatch.Cause{
		Reason: "FieldValueNotSupported", Field: field,
		Message: fmt.Sprintf("Unsupported value: %q: supported values: %s", value, strings.Join(quoted, ", ")),
	}
}

// errInvalidOptions returns the error of status 422 for a combination of parameters.
func errInvalidOptions(causes []listwatch.Cause) error {
	message := "ListOptions is invalid"
	for _, c := range causes {
		message += ": " + c.Field + ": " + c.Message
	}
	return &listwatch.Error{
		Code: listwatch.Invalid, Status: http.StatusUnprocessableEntity, Reason: "Invalid", Message: message,
		Details: &listwatch.Details{Kind: "ListOptions", Group: "meta.k8s.io", Causes: causes},
	}
}

// start parses the parameters that determine where the list or watch starts.
func (p *params) start(q *request) {
	rv := p.Get("resourceVersion")
	v, err := listwatch.ParseVersion(rv)
	switch {
	case err != nil:
		if p.err == nil {
			p.err = err
		}
	case rv == "0":
		q.Start = listwatch.StartAny
	case rv != "":
		q.Start, q.Version = listwatch.StartAt, v
	}
	if !p.Has("sendInitialEvents") {
		return
	}
	if q.InitialEvents = listwatch.InitialEventsNo; p.boolean("sendInitialEvents") {
		q.InitialEvents = listwatch.InitialEventsYes
	}
}
