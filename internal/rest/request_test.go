package rest

import (
	"net/url"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
)

// parse returns the request with the parameters in text.
func parse(text string) (Request, error) {
	v, err := url.ParseQuery(text)
	if err != nil {
		return Request{}, err
	}
	p := Params{Values: v}
	return p.Request(false, "")
}

func TestEmptyBooleanMeansTrue(t *testing.T) {
	for query, want := range map[string]bool{
		"": false, "allowWatchBookmarks": true, "allowWatchBookmarks=": true,
		"allowWatchBookmarks=0": false, "allowWatchBookmarks=1": true,
	} {
		if q, err := parse(query); err != nil || q.Bookmarks != want {
			t.Errorf("%s: got %v, error %v, want %v", query, q.Bookmarks, err, want)
		}
	}
}

func TestEachParameterHasARole(t *testing.T) {
	var all []string
	for _, role := range []Role{Selects, Reads, Responds} {
		for _, name := range Names(role) {
			if RoleOf(name) != role {
				t.Errorf("%s: got role %d, want %d", name, RoleOf(name), role)
			}
			all = append(all, name)
		}
	}
	if len(all) != len(parameters) {
		t.Errorf("got the parameters %q, want all %d", all, len(parameters))
	}
	if got := RoleOf("other"); got != 0 {
		t.Errorf("an unknown parameter has role %d, want none", got)
	}
}

// A meaning is what a request means. All fields of the query are compared, so that a field that Set
// forgets is noticed.
type meaning struct {
	listwatch.Query
	Key          string // of the selection
	SendsInitial bool
	Watch        bool
}

func meaningOf(q Request) meaning {
	c := meaning{Query: q.Query, Key: q.Key(), Watch: q.Watch}
	c.Selection = listwatch.Selection{} // compared by its key
	c.Bookmarks = q.Watch               // a watch always requests them, and a list has none
	if q.Watch {
		c.SendsInitial, c.InitialEvents = q.SendsInitialEvents(), 0
		c.Match = 0 // has no effect
	}
	return c
}

// opaque skips the fields of selectors, which meaningOf has replaced by a key.
var opaque = cmp.Exporter(func(reflect.Type) bool { return true })

// checkRoundTrip sets the parameters of q and parses them again.
func checkRoundTrip(t *testing.T, q Request) {
	t.Helper()
	v := url.Values{"limit": {"7"}, "continue": {"stale"}} // Set must replace them
	Set(v, q.Query, q.Watch)
	again, err := parse(v.Encode())
	if err != nil {
		t.Fatalf("%s: %v", v.Encode(), err)
	}
	if diff := cmp.Diff(meaningOf(q), meaningOf(again), opaque); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", v.Encode(), diff)
	}
	for name := range v {
		if RoleOf(name) == 0 {
			t.Errorf("Set has set %q, which is not in the list of parameters", name)
		}
	}
}

// FuzzParameters parses parameters, sets those of the query that they mean, and parses them again.
func FuzzParameters(f *testing.F) {
	for _, seed := range []string{
		"", "watch=1", "watch=1&resourceVersion=0&allowWatchBookmarks=1",
		"watch=1&resourceVersion=7&conflate=0&fields=spec,-spec.a",
		"watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=9&allowWatchBookmarks=1" +
			"&initialEventsSince=5&initialEventsState=e.x",
		"watch=1&allowWatchBookmarks=1&initialEventsState=e.x",
		"watch=1&sendInitialEvents=0&resourceVersionMatch=NotOlderThan",
		"watch=1&sendInitialEvents=0&resourceVersionMatch=NotOlderThan&resourceVersion=3&conflate=1.5s",
		"limit=5&resourceVersion=7", "limit=5&continue=abc&resourceVersion=0", "limit=-1&resourceVersion=0",
		"resourceVersion=7&resourceVersionMatch=Exact", "resourceVersion=7&resourceVersionMatch=NotOlderThan&limit=2",
		"labelSelector=a+in+(b,c),!d&fieldSelector=metadata.name!%3Dx", "timeoutSeconds=5&pretty=1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if q, err := parse(text); err == nil {
			checkRoundTrip(t, q)
		}
	})
}

// FuzzQuery sets the parameters of a query, and parses them.
func FuzzQuery(f *testing.F) {
	f.Add("a", "b", "app=web", "spec.a=b", "spec", uint8(2), uint64(7), uint8(1), int64(5), "", true)
	f.Add("", "", "", "", "", uint8(0), uint64(0), uint8(0), int64(0), "token", false)
	f.Fuzz(func(t *testing.T, namespace, name, labels, fields, projection string,
		start uint8, version uint64, choice uint8, n int64, token string, watch bool,
	) {
		q := Request{Watch: watch}
		var errs [3]error
		q.Labels, errs[0] = listwatch.ParseLabelSelector(labels)
		q.Fields, errs[1] = listwatch.ParseFieldSelector(fields)
		q.Projection, errs[2] = listwatch.ParseProjection(projection)
		if slices.ContainsFunc(errs[:], func(err error) bool { return err != nil }) {
			t.Skip()
		}
		for path, value := range map[string]string{listwatch.FieldNamespace: namespace, listwatch.FieldName: name} {
			if value != "" {
				q.Fields = q.Fields.And(listwatch.FieldEquals(path, value))
			}
		}
		if q.Start = listwatch.Start(start % 3); q.Start == listwatch.StartAt {
			q.Version = listwatch.Version(max(version, 1))
		}
		if watch {
			q.InitialEvents, q.Bookmarks = listwatch.InitialEvents(choice%3), true
			q.Conflate = min(max(time.Duration(n), -1), maxConflation)
			if q.SendsInitialEvents() && version != 0 {
				q.Since = listwatch.State{Version: listwatch.Version(version), ID: token}
			}
		} else if q.Limit = int(min(max(n, 0), 1<<31-1)); token != "" {
			q.Start, q.Version, q.Continue = 0, 0, token
		} else if q.Start == listwatch.StartAt {
			q.Match = listwatch.Match(choice % 2)
		}
		if p := (Params{Values: url.Values{"text": {namespace, name, token, labels, fields}}}); p.checkText() != nil {
			t.Skip()
		}
		checkRoundTrip(t, q)
	})
}

func TestNamespaceAndNameBecomeFieldSelectors(t *testing.T) {
	v := url.Values{
		"fieldSelector": {"spec.a=b"}, "labelSelector": {"app=web"}, "fields": {"status"},
		"timeout": {"5s"},
	}
	Set(v, listwatch.Query{Selection: listwatch.Selection{Namespace: "a", Name: "b"}}, false)
	want := url.Values{
		"fieldSelector": {"spec.a=b,metadata.name=b,metadata.namespace=a"}, "labelSelector": {"app=web"},
		"fields": {"status"}, "timeout": {"5s"},
	}
	if diff := cmp.Diff(want, v); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
}

func TestVerbOfMethod(t *testing.T) {
	for _, tt := range []struct {
		method       string
		named, watch bool
		want         string
	}{
		{"GET", false, false, "list"},
		{"HEAD", true, false, "get"},
		{"QUERY", false, true, "watch"},
		{"GET", true, true, "watch"},
		{"POST", false, true, "create"},
		{"PUT", true, false, "update"},
		{"PATCH", true, false, "patch"},
		{"DELETE", true, false, "delete"},
		{"DELETE", false, false, "deletecollection"},
		{"OPTIONS", false, false, ""},
	} {
		if got := VerbOf(tt.method, tt.named, tt.watch); got != tt.want {
			t.Errorf("%s, named %t, watch %t: got %q, want %q", tt.method, tt.named, tt.watch, got, tt.want)
		}
	}
}

func TestMethodsOfVerbs(t *testing.T) {
	for want, verbs := range map[string][]string{
		"GET, HEAD, QUERY":                     {"list"},
		"GET, HEAD, QUERY, POST, DELETE":       {"deletecollection", "create", "list", "watch"},
		"GET, HEAD, QUERY, PUT, PATCH, DELETE": {"get", "update", "patch", "delete"},
		"POST":                                 {"create"},
		"":                                     nil,
	} {
		if got := Methods(verbs); got != want {
			t.Errorf("%q: got %q, want %q", verbs, got, want)
		}
	}
}
