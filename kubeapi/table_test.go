package kubeapi

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	asTable    = "application/json;as=Table;v=v1;g=meta.k8s.io"
	asPartial  = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	asPartials = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	// kubectlAccept is the Accept header of kubectl get.
	kubectlAccept = asTable + ",application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)

// A metaTable is a metav1.Table in the form that a client decodes.
type metaTable struct {
	Kind, APIVersion  string
	Metadata          struct{ ResourceVersion, Continue string }
	ColumnDefinitions []struct {
		Name, Type, Format, Description string
		Priority                        int
	}
	Rows []struct {
		Cells  []any
		Object json.RawMessage
	}
}

func readTable(t *testing.T, data string) metaTable {
	t.Helper()
	var m metaTable
	if err := json.Unmarshal([]byte(data), &m); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	if m.Kind != "Table" || m.APIVersion != "meta.k8s.io/v1" || m.Metadata.ResourceVersion == "" {
		t.Errorf("got %s, want a Table of meta.k8s.io/v1 with a resourceVersion", data)
	}
	return m
}

// ageCell matches the age of an object that a test has just created.
var ageCell = regexp.MustCompile(`[|"][0-9]+s[|"]`)

// format formats a table as kubectl get -o wide does, with vertical bars between the
// columns.
func (m metaTable) format() string {
	var b strings.Builder
	for _, c := range m.ColumnDefinitions {
		fmt.Fprint(&b, c.Name, "|")
	}
	for _, r := range m.Rows {
		b.WriteByte('\n')
		for _, c := range r.Cells {
			fmt.Fprint(&b, c, "|")
		}
	}
	return ageCell.ReplaceAllString(b.String(), "|AGE|")
}

func TestTableResponses(t *testing.T) {
	a := startServer(t, nil)
	first := metadata(t, a.want(t, 201, "POST", pods, object("a"))).ResourceVersion
	last := metadata(t, a.want(t, 201, "POST", pods, object("b"))).ResourceVersion
	list := readTable(t, a.want(t, 200, "GET", pods+"?limit=1", "", "Accept", kubectlAccept))
	want := "Name|Ready|Status|Restarts|Age|IP|Node|Nominated Node|Readiness Gates|\na|0/0|Pending|0|AGE|<none>|<none>|<none>|<none>|"
	if diff := cmp.Diff(want, list.format()); diff != "" {
		t.Error(diff)
	}
	if list.Metadata.Continue == "" || list.Metadata.ResourceVersion != last {
		t.Errorf("got metadata %+v, want the list's", list.Metadata)
	}
	one := readTable(t, a.want(t, 200, "GET", pods+"/a", "", "Accept", kubectlAccept))
	if diff := cmp.Diff(want, one.format()); diff != "" || one.Metadata.ResourceVersion != first {
		t.Error(diff, one.Metadata)
	}
	empty := readTable(t, a.want(t, 200, "GET", "/api/v1/configmaps", "", "Accept", kubectlAccept))
	if empty.format() != "Name|Data|Age|" || empty.Rows == nil {
		t.Errorf("got %s %v", empty.format(), empty.Rows)
	}
	gadgets := readTable(t, a.want(t, 200, "GET", "/apis/demo.example.com/v1/gadgets", "", "Accept", kubectlAccept))
	if gadgets.format() != "Name|Age|" || gadgets.ColumnDefinitions[0].Format != "name" {
		t.Errorf("got %+v", gadgets)
	}
}

func TestIncludeObjectSelectsRowContent(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, `{"metadata":{"name":"a"},"spec":{"nodeName":"n"}}`)
	whole := strings.TrimSpace(a.want(t, 200, "GET", pods+"/a", ""))
	partial := strings.TrimSpace(a.want(t, 200, "GET", pods+"/a", "", "Accept", asPartial))
	for query, want := range map[string]string{
		"": partial, "?includeObject=Metadata": partial, "?includeObject=None": "null", "?includeObject=Object": whole,
	} {
		list := readTable(t, a.want(t, 200, "GET", pods+query, "", "Accept", asTable))
		one := readTable(t, a.want(t, 200, "GET", pods+"/a"+query, "", "Accept", asTable))
		if got := string(list.Rows[0].Object); got != want || string(one.Rows[0].Object) != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	a.wantError(t, 400, "BadRequest", "GET", pods+"?includeObject=All", "", "Accept", asTable)
	a.wantError(t, 400, "BadRequest", "GET", pods+"?watch=1&includeObject=All", "", "Accept", asTable)
	a.want(t, 200, "GET", pods+"?includeObject=All", "")
}

func TestPartialMetadataIsUnchanged(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, `{"metadata":{"name":"a","annotations":{"n":"\u0041"}},"spec":{"nodeName":"n"}}`)
	one := a.want(t, 200, "GET", pods+"/a", "", "Accept", asPartial)
	if !strings.HasPrefix(one,
		`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"`) ||
		strings.Contains(one, "spec") || !strings.Contains(one, `"\u0041"`) {
		t.Errorf("got %s, want the unchanged metadata without spec", one)
	}
	list := a.want(t, 200, "GET", pods, "", "Accept", asPartials)
	want := `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"` +
		metadata(t, one).ResourceVersion + `"},"items":[` + strings.TrimSpace(one) + "]}\n"
	if list != want {
		t.Errorf("got %s, want %s", list, want)
	}
}

func TestV1beta1RepresentationsAreSupported(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, object("a"))
	old := strings.NewReplacer(";v=v1;", ";v=v1beta1;", "meta.k8s.io/v1", "meta.k8s.io/v1beta1")
	for path, accepts := range map[string][]string{pods: {asTable, asPartials}, pods + "/a": {asTable, asPartial}} {
		for _, accept := range accepts {
			want := ageCell.ReplaceAllString(old.Replace(a.want(t, 200, "GET", path, "", "Accept", accept)), "AGE")
			got := ageCell.ReplaceAllString(a.want(t, 200, "GET", path, "", "Accept", old.Replace(accept)), "AGE")
			if !strings.Contains(got, "meta.k8s.io/v1beta1") || got != want {
				t.Errorf("%s: %s: got %s, want %s", path, accept, got, want)
			}
		}
	}
}

func TestWriteResponsesUseRepresentation(t *testing.T) {
	a := startServer(t, nil)
	const merge = "application/merge-patch+json"
	for _, c := range []struct {
		code                       int
		method, path, body, format string
	}{
		{201, "POST", pods, object("a"), "application/json"},
		{200, "PUT", pods + "/a", object("a"), "application/json"},
		{200, "PATCH", pods + "/a", `{"metadata":{"finalizers":["a.example/b"]}}`, merge},
		{200, "PATCH", pods + "/a/status", `{"status":{"phase":"Running"}}`, merge},
		{200, "DELETE", pods + "/a", "", "application/json"},
	} {
		table := a.want(t, c.code, c.method, c.path+"?dryRun=All", c.body, "Content-Type", c.format, "Accept", asTable)
		if !strings.Contains(table, `{"kind":"Table"`) || !strings.Contains(table, `"cells":["a",`) {
			t.Errorf("%s: got %s, want a table", c.method, table)
		}
		partial := a.want(t, c.code, c.method, c.path, c.body, "Content-Type", c.format, "Accept", asPartial)
		if !strings.HasPrefix(partial, `{"kind":"PartialObjectMetadata"`) || strings.Contains(partial, "spec") {
			t.Errorf("%s: got %s, want only metadata", c.method, partial)
		}
	}
	a.want(t, 201, "POST", pods, object("b"))
	deleted := a.want(t, 200, "DELETE", pods+"/b", "", "Accept", asTable)
	if !strings.HasPrefix(deleted, `{"kind":"Status"`) {
		t.Errorf("got %s, want a Status", deleted)
	}
	a.wantError(t, 406, "NotAcceptable", "POST", pods, object("c"), "Accept", asPartials)
	a.wantError(t, 404, "NotFound", "GET", pods+"/c", "")
}

func TestUnsupportedRepresentationIsNotAcceptable(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, object("a"))
	for path, accepts := range map[string][]string{
		pods: {
			asPartial, "application/json;as=Table;v=v1;g=other",
			"application/json;as=Table;v=v2;g=meta.k8s.io", "application/yaml;as=Table;v=v1;g=meta.k8s.io",
		},
		pods + "/a":       {asPartials, "application/json;as=Table"},
		pods + "?watch=1": {asPartials, "application/json;as=Chair;v=v1;g=meta.k8s.io"},
	} {
		for _, accept := range accepts {
			a.wantError(t, 406, "NotAcceptable", "GET", path, "", "Accept", accept)
		}
	}
}

// watch opens a watch. It returns a function that reads the next event.
func (a *testServer) watch(t *testing.T, path, accept string) (next func() (kind string, object json.RawMessage)) {
	t.Helper()
	res := a.do(t, http.MethodGet, path, "", "Accept", accept)
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%s: got %d %s", path, res.StatusCode, res.Header.Get("Content-Type"))
	}
	lines := bufio.NewReader(res.Body)
	return func() (string, json.RawMessage) {
		t.Helper()
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		var e struct {
			Type   string
			Object json.RawMessage
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		return e.Type, e.Object
	}
}

func TestOnlyFirstTableDefinesColumns(t *testing.T) {
	a := startServer(t, nil)
	first := metadata(t, a.want(t, 201, "POST", pods, object("a"))).ResourceVersion
	last := metadata(t, a.want(t, 201, "POST", pods, object("b"))).ResourceVersion
	const initial = "?watch=1&allowWatchBookmarks=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan"
	for _, include := range []string{"None", "Metadata"} {
		next := a.watch(t, pods+initial+"&includeObject="+include, kubectlAccept)
		for i, want := range []struct{ kind, name, version string }{
			{"ADDED", "a", first},
			{"ADDED", "b", last},
			{"BOOKMARK", "", last},
		} {
			kind, object := next()
			table := readTable(t, string(object))
			if kind != want.kind || len(table.Rows) != 1 || table.Rows[0].Cells[0] != want.name ||
				table.Metadata.ResourceVersion != want.version {
				t.Errorf("got %s %s, want %v with one row", kind, object, want)
			}
			if headed := table.ColumnDefinitions != nil; headed != (i == 0) {
				t.Errorf("event %d contains column definitions: %t", i, headed)
			}
			if kind == "BOOKMARK" &&
				!strings.Contains(string(table.Rows[0].Object), `"k8s.io/initial-events-end":"true"`) {
				t.Errorf("got %s, want the annotation for every includeObject", object)
			}
		}
	}
	empty := a.watch(t, pods+initial+"&labelSelector=none", kubectlAccept)
	if kind, object := empty(); kind != "BOOKMARK" || readTable(t, string(object)).ColumnDefinitions == nil {
		t.Errorf("got %s %s, want a bookmark with column definitions", kind, object)
	}
	live := a.watch(t, pods+"?watch=1&resourceVersion="+last, kubectlAccept)
	a.want(t, 200, "DELETE", pods+"/a", "")
	kind, object := live()
	if table := readTable(t, string(object)); kind != "DELETED" || table.ColumnDefinitions == nil ||
		table.Metadata.ResourceVersion <= last {
		t.Errorf("got %s %s, want DELETED with column definitions, after version %s", kind, object, last)
	}
}

func TestTableWatchErrorIsStatus(t *testing.T) {
	a := startServer(t, nil)
	kind, object := a.watch(t, pods+"?watch=1&resourceVersion=1", asTable)()
	if kind != "ERROR" || !strings.HasPrefix(string(object), `{"kind":"Status"`) {
		t.Errorf("got %s %s", kind, object)
	}
}

func TestMetadataWatchOmitsContent(t *testing.T) {
	a := startServer(t, nil)
	next := a.watch(t, pods+"?watch=1&allowWatchBookmarks=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan",
		asPartial)
	for _, want := range []string{"BOOKMARK", "ADDED"} {
		kind, object := next()
		if kind != want || !strings.HasPrefix(string(object),
			`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{`) ||
			strings.Contains(string(object), "spec") {
			t.Errorf("got %s %s", kind, object)
		}
		if want == "BOOKMARK" {
			a.want(t, 201, "POST", pods, `{"metadata":{"name":"a"},"spec":{}}`)
		}
	}
}

func TestLargeObjectIsCompressed(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, `{"metadata":{"name":"a"},"spec":{"pad":"`+strings.Repeat("x", 40<<10)+`"}}`)
	res := a.do(t, "GET", pods+"/a", "", "Accept-Encoding", "gzip")
	vary := res.Header.Values("Vary")
	if res.Header.Get("Content-Encoding") != "gzip" || !slices.Contains(vary, "Accept") ||
		!slices.Contains(vary, "Accept-Encoding") {
		t.Errorf("got headers %v, want a gzip response that varies by Accept and Accept-Encoding", res.Header)
	}
	z, err := gzip.NewReader(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if whole := a.want(t, 200, "GET", pods+"/a", ""); err != nil || string(data) != whole {
		t.Errorf("got %d bytes %v, want %d", len(data), err, len(whole))
	}
}

// A client that requests tables or metadata can use differences, too.
func TestDifferencesInOtherRepresentations(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, object("a"))
	a.want(t, 201, "POST", pods, object("b"))
	const initial = "?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	state := regexp.MustCompile(`"resourceVersion":"(\d+)","annotations":\{[^}]*"listwatch.dev/state":"([^"]*)"`)
	has := state.FindStringSubmatch(a.want(t, 200, "GET", pods+initial, ""))
	if has == nil {
		t.Fatal("the end of the initial events has no state")
	}
	a.want(t, 200, "DELETE", pods+"/a", "")
	request := pods + initial + "&initialEventsSince=" + has[1] + "&initialEventsState=" + url.QueryEscape(has[2])
	for _, accept := range []string{"application/json", asTable, asPartial} {
		got := a.want(t, 200, "GET", request, "", "Accept", accept)
		lines := strings.Split(strings.TrimSpace(got), "\n")
		if len(lines) < 2 || !strings.Contains(lines[0], `"DELETED"`) || !strings.Contains(lines[0], `"name":"a"`) ||
			!strings.Contains(lines[1], `"listwatch.dev/initial-events-since":"`+has[1]+`"`) {
			t.Errorf("%s: got %s, want DELETED a and the mark of a difference", accept, got)
		}
	}
	if got := a.want(t, 200, "GET", request, "", "Accept", "application/cbor"); !strings.Contains(got,
		"listwatch.dev/initial-events-since") {
		t.Errorf("CBOR: got %q, want the mark of a difference", got)
	}
}
