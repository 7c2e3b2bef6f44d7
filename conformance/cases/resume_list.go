package cases

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
func (a *answer) page() listed {
	a.Helper()
	a.wantStatus(http.StatusOK)
	var body struct {
		Kind, APIVersion string
		Metadata         listMetadata
		Items            []struct {
			Metadata struct{ Name, Namespace, ResourceVersion string }
		}
	}
	text := a.all()
	if err := json.Unmarshal(text, &body); err != nil || body.Kind != a.Kind+"List" || body.Items == nil {
		a.Fatalf("got %s, want a %sList: %v", text, a.Kind, err)
	}
	p := listed{items: map[string]listwatch.Version{}, token: body.Metadata.Continue, metadata: body.Metadata}
	p.version = a.version(body.Metadata.ResourceVersion)
	for _, item := range body.Items {
		name := item.Metadata.Name
		if space := a.caseSpace(item.Metadata.Namespace); space != namespace {
			name = space + "/" + name
		}
		p.items[name] = a.version(item.Metadata.ResourceVersion)
	}
	return p
}

func (a *answer) version(rv string) listwatch.Version {
	a.Helper()
	v, err := listwatch.ParseVersion(rv)
	if err != nil || v == 0 {
		a.Fatalf("got resourceVersion %q: %v", rv, err)
	}
	return v
}

// tries is how often listThenWatch tries.
func tries() int {
	if raced {
		return 150
	}
	return 1000
}

// listThenWatch lists and then watches from the list's version while another goroutine writes: every write must be in the one or in the
// other. All writes are to this collection, so that the versions of a watch have no holes.
func listThenWatch(e *env) {
	const before, after = 3, 3 // writes that race with the list, and with the opening of the watch
	writes := make(chan struct{}, before+after)
	var writer sync.WaitGroup
	e.put("x0")
	writer.Go(func() {
		n := 0
		for range writes {
			n++
			name := fmt.Sprintf("x%d", n%5)
			_, err := e.tryDelete(name)
			if n%7 != 3 || err != nil {
				_, err = e.tryPut(name)
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
	lists := e.lister()
	for i := range all {
		t := &all[i]
		more(writes, before)
		t.list = lists()
		more(writes, after)
		s := e.dial(from(t.list.version))
		for range after {
			t.events = append(t.events, s.next())
		}
		s.Close()
	}
	stop()
	model := &model{history: e.history, state: map[string]listwatch.Version{}}
	for i, t := range all {
		model.advance(t.list.version)
		state := t.list.items
		if diff := cmp.Diff(model.state, state); diff != "" {
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
		model.advance(last)
		if diff := cmp.Diff(model.state, state); diff != "" {
			e.Fatalf("try %d: list and events don't make the state at %d (-want +got):\n%s", i, last, diff)
		}
	}
}

func more(writes chan<- struct{}, n int) {
	for range n {
		writes <- struct{}{}
	}
}

// answerOf returns a response of net/http as an answer.
func (e *env) answerOf(resp *http.Response) *answer {
	return &answer{env: e, status: resp.StatusCode, header: resp.Header, body: bufio.NewReader(resp.Body)}
}

// lister returns a function that lists everything, over one connection, by net/http.
func (e *env) lister() func() listed {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(e.on != "h2")
	protocols.SetHTTP2(e.on == "h2")
	protocols.SetUnencryptedHTTP2(e.on == "h2")
	t := e.Network.HTTPTransport(protocols)
	e.Cleanup(t.CloseIdleConnections)
	c := &http.Client{Transport: t}
	return func() listed {
		e.Helper()
		resp, err := c.Do((&http.Request{Method: http.MethodGet, URL: e.watched(""), Header: e.withHeader(http.Header{})}).WithContext(e.Context()))
		if err != nil {
			e.Fatal(err)
		}
		defer resp.Body.Close()
		return e.answerOf(resp).page()
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

func matchRules(e *env) {
	old := e.put("a")
	for _, name := range []string{"b", "c", "d", "a"} {
		e.put(name)
	}
	asked := e.newest()
	first := e.list("limit=2").page()
	e.delete("b")
	newest := e.put("d")
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
			e.checkList(query, want, asked, newest, first)
		}
	}
	e.checkContinue(first)

	e.compact()
	e.put("a")
	e.list(from(old) + "&resourceVersionMatch=NotOlderThan").page()
	e.list(from(old)+"&resourceVersionMatch=Exact").refused(http.StatusGone, "Expired")
	e.list(from(old)+"&limit=2").refused(http.StatusGone, "Expired")
	if s := e.list("limit=2&continue="+first.token).refused(http.StatusGone, "Expired"); s.Metadata.Continue == "" {
		e.Error("an expired continue token is answered without a fresh one")
	} else if rest := e.list("limit=2&continue=" + s.Metadata.Continue).page(); rest.version <= newest {
		e.Errorf("the fresh token lists at %d, want the newest state", rest.version)
	}
}

// checkList asks for query and holds what comes against what a cell of the table says.
func (e *env) checkList(query, rule string, asked, newest listwatch.Version, first listed) {
	e.Helper()
	a := e.list(query)
	switch rule {
	case "Invalid 400":
		a.refused(http.StatusBadRequest, "BadRequest")
		return
	case "Invalid 422":
		if s := a.refused(http.StatusUnprocessableEntity, "Invalid"); s.Details == nil || len(s.Details.Causes) == 0 {
			e.Errorf("%s: got details %+v, want causes", query, s.Details)
		}
		return
	}
	p := a.page()
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
	want := e.stateAt(p.version)
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
func (e *env) checkContinue(first listed) {
	e.Helper()
	items, p := maps.Clone(first.items), first
	if first.metadata.RemainingItemCount == nil || *first.metadata.RemainingItemCount != 2 {
		e.Errorf("the first page has remainingItemCount %v, want 2", first.metadata.RemainingItemCount)
	}
	for p.token != "" {
		p = e.list("limit=1&continue=" + p.token).page()
		maps.Copy(items, p.items)
		if p.version != first.version || len(p.items) != 1 {
			e.Fatalf("a page of version %d has %d items, want 1 of %d", p.version, len(p.items), first.version)
		}
	}
	if diff := cmp.Diff(e.stateAt(first.version), items); diff != "" {
		e.Errorf("the pages together (-want +got):\n%s", diff)
	}
	e.list("limit=2&continue=garbage").refused(http.StatusBadRequest, "BadRequest")
}
