package resume

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

// A listed is a list as it came.
type listed struct {
	version  listwatch.Version
	items    map[string]listwatch.Version
	token    string // continue
	metadata listMetadata
}

type listMetadata struct {
	ResourceVersion, Continue string
	RemainingItemCount        *int
}

// page reads the list that the answer must be.
func page(a *harness.Response) listed {
	a.Helper()
	a.WantStatus(http.StatusOK)
	var body struct {
		Kind, APIVersion string
		Metadata         listMetadata
		Items            []struct {
			Metadata struct{ Name, Namespace, ResourceVersion string }
		}
	}
	text := a.ReadAll()
	if err := json.Unmarshal(text, &body); err != nil || body.Kind != a.Kind+"List" || body.Items == nil {
		a.Fatalf("got %s, want a %sList: %v", text, a.Kind, err)
	}
	p := listed{items: map[string]listwatch.Version{}, token: body.Metadata.Continue, metadata: body.Metadata}
	p.version = version(a, body.Metadata.ResourceVersion)
	for _, item := range body.Items {
		name := item.Metadata.Name
		if space := a.CaseNamespace(item.Metadata.Namespace); space != harness.DefaultNamespace {
			name = space + "/" + name
		}
		p.items[name] = version(a, item.Metadata.ResourceVersion)
	}
	return p
}

func version(a *harness.Response, rv string) listwatch.Version {
	a.Helper()
	v, err := listwatch.ParseVersion(rv)
	if err != nil || v == 0 {
		a.Fatalf("got resourceVersion %q: %v", rv, err)
	}
	return v
}

// tries is how often listThenWatch tries.
func tries() int {
	if harness.Raced {
		return 150
	}
	return 1000
}

// listThenWatch lists and then watches from the list's version while another goroutine writes: every write must be in the one or in the
// other. All writes are to this collection, so that the versions of a watch have no holes.
func listThenWatch(e *harness.Env) {
	const before, after = 3, 3 // writes that race with the list, and with the opening of the watch
	writes := make(chan struct{}, before+after)
	var writer sync.WaitGroup
	e.Put("x0")
	writer.Go(func() {
		n := 0
		for range writes {
			n++
			name := fmt.Sprintf("x%d", n%5)
			_, err := e.TryDelete(name)
			if n%7 != 3 || err != nil {
				_, err = e.TryPut(name)
			}
			if err != nil {
				e.Error(err)
			}
		}
	})
	stop := sync.OnceFunc(func() { close(writes); writer.Wait() })
	defer stop()

	type try struct {
		list   listed
		events []listwatch.Event
	}
	all := make([]try, tries())
	lists := lister(e)
	for i := range all {
		t := &all[i]
		harness.SendN(writes, before)
		t.list = lists()
		harness.SendN(writes, after)
		s := e.Dial(harness.From(t.list.version))
		for range after {
			t.events = append(t.events, s.Next())
		}
		s.Close()
	}
	stop()
	model := &harness.Model{History: e.History, State: map[string]listwatch.Version{}}
	for i, t := range all {
		model.Advance(t.list.version)
		state := t.list.items
		if diff := cmp.Diff(model.State, state); diff != "" {
			e.Fatalf("try %d: the list is not the state at its version %d (-want +got):\n%s", i, t.list.version, diff)
		}
		for j, ev := range t.events {
			if want := t.list.version + listwatch.Version(j) + 1; ev.Version != want {
				e.Fatalf("try %d: the list is of version %d and event %d of %d, want %d", i, t.list.version, j, ev.Version, want)
			}
			if state[ev.Object.Key.Name] = ev.Version; ev.Type == listwatch.Deleted {
				delete(state, ev.Object.Key.Name)
			}
		}
		last := t.list.version + listwatch.Version(len(t.events))
		model.Advance(last)
		if diff := cmp.Diff(model.State, state); diff != "" {
			e.Fatalf("try %d: list and events don't make the state at %d (-want +got):\n%s", i, last, diff)
		}
	}
}

// answerOf returns a response of net/http as an answer.
func answerOf(e *harness.Env, resp *http.Response) *harness.Response {
	return &harness.Response{Env: e, Status: resp.StatusCode, Headers: resp.Header, Body: bufio.NewReader(resp.Body)}
}

// lister returns a function that lists everything, over one connection, by net/http.
func lister(e *harness.Env) func() listed {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(e.Transport != "h2")
	protocols.SetHTTP2(e.Transport == "h2")
	protocols.SetUnencryptedHTTP2(e.Transport == "h2")
	t := e.Network.HTTPTransport(protocols)
	e.Cleanup(t.CloseIdleConnections)
	c := &http.Client{Transport: t}
	return func() listed {
		e.Helper()
		resp, err := c.Do((&http.Request{Method: http.MethodGet, URL: e.WatchURL(""), Header: e.WithHeader(http.Header{})}).WithContext(e.Context()))
		if err != nil {
			e.Fatal(err)
		}
		defer resp.Body.Close()
		return page(answerOf(e, resp))
	}
}

// A listRule is one cell of the table "the resourceVersion parameter" in Kubernetes' API concepts.
type listRule struct {
	match, paging string
	// unset, zero and other are what a resourceVersion means that is empty, "0", or a version.
	unset, zero, other string
}

// listRules is that table, with the words it uses. "Invalid" is 422 with causes where two parameters don't go together, as in
// apimachinery's validation, and 400 for a continue token with a version.
var listRules = []listRule{
	{"", "", "Most Recent", "Any", "Not older than"},
	{"", "limit", "Most Recent", "Any", "Exact"},
	{"", "continue", "Continue Token", "Continue Token", "Invalid 400"},
	{"Exact", "", "Invalid 422", "Invalid 422", "Exact"},
	{"Exact", "limit", "Invalid 422", "Invalid 422", "Exact"},
	{"NotOlderThan", "", "Invalid 422", "Any", "Not older than"},
	{"NotOlderThan", "limit", "Invalid 422", "Any", "Not older than"},
	// What the table leaves out: validation forbids a match with a continue token, and knows no other match.
	{"Exact", "continue", "Invalid 422", "Invalid 422", "Invalid 422"},
	{"NotOlderThan", "continue", "Invalid 422", "Invalid 422", "Invalid 422"},
	{"Newest", "", "Invalid 422", "Invalid 422", "Invalid 422"},
}

func matchRules(e *harness.Env) {
	old := e.Put("a")
	for _, name := range []string{"b", "c", "d", "a"} {
		e.Put(name)
	}
	asked := e.Newest()
	first := page(e.ListRaw("limit=2"))
	e.Delete("b")
	newest := e.Put("d")
	for _, r := range listRules {
		for rv, want := range map[string]string{"": r.unset, "0": r.zero, asked.String(): r.other} {
			query := "resourceVersion=" + rv
			if rv == "" {
				query = "x="
			}
			if r.match != "" {
				query += "&resourceVersionMatch=" + r.match
			}
			switch r.paging {
			case "limit":
				query += "&limit=2"
			case "continue":
				query += "&limit=2&continue=" + first.token
			}
			checkList(e, query, want, asked, newest, first)
		}
	}
	checkContinue(e, first)

	e.CompactHistory()
	e.Put("a")
	page(e.ListRaw(harness.From(old) + "&resourceVersionMatch=NotOlderThan"))
	e.ListRaw(harness.From(old)+"&resourceVersionMatch=Exact").WantRefused(http.StatusGone, "Expired")
	e.ListRaw(harness.From(old)+"&limit=2").WantRefused(http.StatusGone, "Expired")
	if s := e.ListRaw("limit=2&continue="+first.token).WantRefused(http.StatusGone, "Expired"); s.Metadata.Continue == "" {
		e.Error("an expired continue token is answered without a fresh one")
	} else if rest := page(e.ListRaw("limit=2&continue=" + s.Metadata.Continue)); rest.version <= newest {
		e.Errorf("the fresh token lists at %d, want the newest state", rest.version)
	}
}

// checkList asks for query and holds what comes against what a cell of the table says.
func checkList(e *harness.Env, query, rule string, asked, newest listwatch.Version, first listed) {
	e.Helper()
	a := e.ListRaw(query)
	switch rule {
	case "Invalid 400":
		a.WantRefused(http.StatusBadRequest, "BadRequest")
		return
	case "Invalid 422":
		if s := a.WantRefused(http.StatusUnprocessableEntity, "Invalid"); s.Details == nil || len(s.Details.Causes) == 0 {
			e.Errorf("%s: got details %+v, want causes", query, s.Details)
		}
		return
	}
	p := page(a)
	ok := false
	switch rule {
	case "Any":
		ok = p.version <= newest
	case "Most Recent":
		ok = p.version == newest
	case "Not older than":
		ok = asked <= p.version && p.version <= newest
	case "Exact":
		ok = p.version == asked
	case "Continue Token":
		ok = p.version == first.version
	}
	if !ok {
		e.Errorf("%s: got version %d, want %s (asked %d, newest %d)", query, p.version, rule, asked, newest)
	}
	want := e.StateAt(p.version)
	switch {
	case rule == "Continue Token":
		for name := range first.items {
			delete(want, name)
		}
	case strings.Contains(query, "limit="):
		for _, name := range slices.Sorted(maps.Keys(want))[2:] {
			delete(want, name)
		}
	}
	if diff := cmp.Diff(want, p.items); diff != "" {
		e.Errorf("%s: items at version %d (-want +got):\n%s", query, p.version, diff)
	}
}

// checkContinue reads the pages of one list to the end: they show one state, however much was written since.
func checkContinue(e *harness.Env, first listed) {
	e.Helper()
	items, p := maps.Clone(first.items), first
	if first.metadata.RemainingItemCount == nil || *first.metadata.RemainingItemCount != 2 {
		e.Errorf("the first page has remainingItemCount %v, want 2", first.metadata.RemainingItemCount)
	}
	for p.token != "" {
		p = page(e.ListRaw("limit=1&continue=" + p.token))
		maps.Copy(items, p.items)
		if p.version != first.version || len(p.items) != 1 {
			e.Fatalf("a page of version %d has %d items, want 1 of %d", p.version, len(p.items), first.version)
		}
	}
	if diff := cmp.Diff(e.StateAt(first.version), items); diff != "" {
		e.Errorf("the pages together (-want +got):\n%s", diff)
	}
	e.ListRaw("limit=2&continue=garbage").WantRefused(http.StatusBadRequest, "BadRequest")
}
