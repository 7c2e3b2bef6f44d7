package apierror

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/wsframe"
	"github.com/listwatch/listwatch/kubestatus"
)

// An invalidRequest is a request that the server must refuse, with the expected response.
type invalidRequest struct {
	target string
	header []string
	code   int
	reason string
	// ourServerOnly limits the check to this module's server, because Kubernetes accepts the
	// request or returns a different error. Separate cases define how every server must respond to
	// such a request.
	ourServerOnly bool
}

var longSelector = "?watch=1&labelSelector=" + strings.Repeat("a", 20<<10)

// invalidRequests are watch requests that must fail before a stream starts.
var invalidRequests = []invalidRequest{
	{"?watch=maybe", nil, http.StatusBadRequest, "BadRequest", true},
	{"?watch=1&resourceVersion=abc", nil, http.StatusBadRequest, "BadRequest", true},
	{"?watch=1&labelSelector=!!", nil, http.StatusBadRequest, "BadRequest", false},
	{"?watch=1&fieldSelector=spec.color%3Dred", nil, http.StatusBadRequest, "BadRequest", false},
	{"?watch=1&timeoutSeconds=abc", nil, http.StatusBadRequest, "BadRequest", false},
	{"?watch=1&timeoutSeconds=-1", nil, http.StatusBadRequest, "BadRequest", true},
	{"?watch=1&limit=x", nil, http.StatusBadRequest, "BadRequest", false},
	{"?watch=1&allowWatchBookmarks=perhaps", nil, http.StatusBadRequest, "BadRequest", true},
	{"?watch=1&sendInitialEvents=perhaps", nil, http.StatusBadRequest, "BadRequest", true},
	{"?watch=1&sendInitialEvents=true", nil, http.StatusUnprocessableEntity, "Invalid", false},
	{"?watch=1&resourceVersionMatch=NotOlderThan", nil, http.StatusUnprocessableEntity, "Invalid", false},
	{"?watch=1&continue=x", nil, http.StatusUnprocessableEntity, "Invalid", true},
	{"?watch=1&labelSelector=%ff", nil, http.StatusBadRequest, "BadRequest", false},
	{longSelector, nil, http.StatusRequestURITooLong, "RequestURITooLong", true},
	{"?watch=1", []string{"Accept", "image/png"}, http.StatusNotAcceptable, "NotAcceptable", false},
	{"?watch=1", []string{"Accept", "nonsense;;"}, http.StatusNotAcceptable, "NotAcceptable", true},
	{"/apis/conformance.example.com/v1/gadgets?watch=1", nil, http.StatusNotFound, "NotFound", true},
}

// wantRefused sends r and checks the HTTP status and the Status of the response. If r is only for
// this module's server, wantRefused does nothing with other servers.
func wantRefused(e *harness.Env, r invalidRequest) {
	e.Helper()
	if !r.ourServerOnly || e.Supports(harness.InProcess) {
		e.RequestRaw("GET", r.target, r.header...).WantRefused(r.code, r.reason)
	}
}

func statusShape(e *harness.Env) {
	for _, r := range invalidRequests {
		wantRefused(e, r)
	}
	// Check the raw JSON: Kubernetes always writes these members, under these names.
	var fields map[string]json.RawMessage
	body := e.WatchRaw("sendInitialEvents=true").ReadAll()
	if err := json.Unmarshal(body, &fields); err != nil {
		e.Fatal(err)
	}
	for name, want := range map[string]string{
		"kind": `"Status"`, "apiVersion": `"v1"`, "metadata": `{}`, "status": `"Failure"`,
		"reason": `"Invalid"`, "code": `422`,
	} {
		if got := string(fields[name]); got != want {
			e.Errorf("got %s: %s, want %s", name, got, want)
		}
	}
}

func errorInStream(e *harness.Env) {
	old := e.Put("a")
	e.Put("a")
	e.CompactHistory()
	s := e.Dial(harness.From(old))
	e.Put("a") // this event must not follow the error
	err := s.WantError(listwatch.Expired)
	if err.Status != http.StatusGone || err.Reason != "Expired" || err.Message == "" {
		e.Errorf("got %s, want status 410, reason Expired and a message", harness.EncodeJSON(kubestatus.Of(err)))
	}
	rawErrorInStream(e, old)
}

// rawErrorInStream checks the bytes of a watch that starts at an expired version. After the ERROR
// event, the transport must mark the stream as complete.
func rawErrorInStream(e *harness.Env, old listwatch.Version) {
	a := e.WatchRaw(harness.From(old))
	a.WantAccepted()
	var event []byte
	if a.Transport == "ws" {
		var op byte
		if op, event = a.ReadMessage(); op != wsframe.OpText {
			e.Errorf("got opcode %d, want text", op)
		}
		if op, code := a.ReadMessage(); op != wsframe.OpClose || len(code) < 2 || int(code[0])<<8|int(code[1]) != 1000 {
			e.Errorf("got opcode %d, % x after the error, want close 1000", op, code)
		}
	} else {
		event = a.ReadAll() // fails if the last chunk or END_STREAM is missing
	}
	var got struct {
		Type   string
		Object kubestatus.Status
	}
	if err := json.Unmarshal(event, &got); err != nil || strings.Count(strings.TrimSpace(string(event)), "\n") != 0 {
		e.Fatalf("got %q, want one event: %v", event, err)
	}
	if s := got.Object; got.Type != "ERROR" || s.Kind != "Status" || s.APIVersion != "v1" || s.Status != "Failure" ||
		s.Code != 410 || s.Reason != "Expired" {
		e.Errorf("got %s, want an ERROR event with a Status of code 410 and reason Expired", event)
	}
}

func httpCodeEqualsStatus(e *harness.Env) {
	old := e.Put("a")
	e.Put("a")
	e.CompactHistory()
	more := []invalidRequest{
		{"?" + harness.From(old) + "&resourceVersionMatch=Exact", nil, http.StatusGone, "Expired", false},
		{"?resourceVersion=x", nil, http.StatusBadRequest, "BadRequest", true},
		{"", []string{"Accept", "text/event-stream"}, http.StatusNotAcceptable, "NotAcceptable", true},
		{e.ResourcePath(harness.DefaultNamespace) + "/nobody", nil, http.StatusNotFound, "NotFound", false},
		{"/nowhere", nil, http.StatusNotFound, "NotFound", true},
	}
	for _, r := range append(more, invalidRequests...) {
		wantRefused(e, r)
	}
	e.RequestRaw("PUT", "").WantRefused(http.StatusMethodNotAllowed, "MethodNotAllowed")
	e.RequestRaw("PATCH", e.ResourcePath(harness.DefaultNamespace)).WantRefused(http.StatusMethodNotAllowed,
		"MethodNotAllowed")
	e.RequestRaw("POST", e.ResourcePath(harness.DefaultNamespace), "Content-Type",
		"application/json").WantRefused(http.StatusBadRequest, "BadRequest")
}

func error404(e *harness.Env) {
	for _, path := range []string{
		"/apis/conformance.example.com/v1/gadgets", "/apis/conformance.example.com/v2/things", "/api/v1/things",
		"/apis/conformance.example.com/v1/watch/gadgets", "/nowhere",
	} {
		e.RequestRaw("GET", path+"?watch=1").WantRefused(http.StatusNotFound, "NotFound")
	}
}

func error422Causes(e *harness.Env) {
	noMatch := listwatch.Cause{Reason: "FieldValueForbidden", Field: "resourceVersionMatch"}
	badMatch := listwatch.Cause{Reason: "FieldValueNotSupported", Field: "resourceVersionMatch"}
	noInitial := listwatch.Cause{Reason: "FieldValueForbidden", Field: "sendInitialEvents"}
	for query, want := range map[string][]listwatch.Cause{
		"watch=1&sendInitialEvents=true":                            {noMatch},
		"watch=1&sendInitialEvents=false":                           {noMatch},
		"watch=1&sendInitialEvents=true&resourceVersionMatch=Exact": {noMatch, badMatch},
		"watch=1&resourceVersionMatch=NotOlderThan":                 {noMatch},
		"watch=1&resourceVersionMatch=Exact":                        {noMatch, badMatch},
		"sendInitialEvents=true":                                    {noInitial},
		"resourceVersionMatch=Exact":                                {noMatch},
		"resourceVersionMatch=Exact&resourceVersion=0":              {noMatch},
		"resourceVersionMatch=Whatever&resourceVersion=5":           {badMatch},
		"sendInitialEvents=false&resourceVersionMatch=NotOlderThan": {noMatch, noInitial},
	} {
		s := e.RequestRaw("GET", "?"+query).WantRefused(http.StatusUnprocessableEntity, "Invalid")
		if s.Details == nil {
			e.Errorf("%s: the Status has no details", query)
			continue
		}
		got := s.Details.Causes
		for i, c := range got {
			if c.Message == "" {
				e.Errorf("%s: got a cause without a message", query)
			}
			got[i].Message = ""
		}
		if diff := cmp.Diff(want, got); diff != "" {
			e.Errorf("%s: causes (-want +got):\n%s", query, diff)
		}
	}
}

func errorNegotiated(e *harness.Env) {
	for _, accept := range []string{
		"nonsense", "text/html", "application/json;q=2", "image/png, text/plain;q=0.5", "a/b/c",
	} {
		a := e.WatchRaw("labelSelector=!!", "Accept", accept)
		if a.Status == http.StatusNotAcceptable && !e.Supports(harness.InProcess) {
			// The request has two errors, and a server may report either of them.
			a.WantRefused(http.StatusNotAcceptable, "NotAcceptable")
			continue
		}
		a.WantRefused(http.StatusBadRequest, "BadRequest") // also checks that the body is JSON
	}
}
