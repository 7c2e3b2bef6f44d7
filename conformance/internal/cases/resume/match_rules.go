package resume

import (
	"maps"
	"net/http"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

// A paging selects the paging parameters of a list request.
type paging int

const (
	unpaged paging = iota
	withLimit
	withContinue
)

// A listRule is a row of the table "the resourceVersion parameter" in Kubernetes' API
// concepts.
type listRule struct {
	match  string
	paging paging
	// unset is the expected response if resourceVersion is missing, zero if it is "0", and other if
	// it is another version.
	unset, zero, other listExpectation
}

// listRules has the rows of the table "the resourceVersion parameter" in Kubernetes' API concepts.
// The last rows follow the validation in Kubernetes' apimachinery, which rejects
// resourceVersionMatch together with a continue token, and rejects values other than Exact and
// NotOlderThan.
var listRules = []listRule{
	{"", unpaged, wantMostRecent, wantAny, wantNotOlderThan},
	{"", withLimit, wantMostRecent, wantAny, wantExact},
	{"", withContinue, wantNextPage, wantNextPage, wantBadRequest},
	{"Exact", unpaged, wantInvalid, wantInvalid, wantExact},
	{"Exact", withLimit, wantInvalid, wantInvalid, wantExact},
	{"NotOlderThan", unpaged, wantInvalid, wantAny, wantNotOlderThan},
	{"NotOlderThan", withLimit, wantInvalid, wantAny, wantNotOlderThan},
	{"Exact", withContinue, wantInvalid, wantInvalid, wantInvalid},
	{"NotOlderThan", withContinue, wantInvalid, wantInvalid, wantInvalid},
	{"Newest", unpaged, wantInvalid, wantInvalid, wantInvalid},
}

func matchRules(e *harness.Env) {
	old := e.Put("a")
	for _, name := range []string{"b", "c", "d", "a"} {
		e.Put(name)
	}
	past := e.Newest()
	first := readPage(e.ListRaw("limit=2"))
	e.Delete("b")
	s := listState{e, past, e.Put("d"), first}
	for _, r := range listRules {
		s.check(r, "", r.unset)
		s.check(r, "0", r.zero)
		s.check(r, past.String(), r.other)
	}
	checkContinue(e, first)

	e.CompactHistory()
	e.Put("a")
	readPage(e.ListRaw(harness.From(old) + "&resourceVersionMatch=NotOlderThan"))
	e.ListRaw(harness.From(old)+"&resourceVersionMatch=Exact").WantRefused(http.StatusGone, "Expired")
	e.ListRaw(harness.From(old)+"&limit=2").WantRefused(http.StatusGone, "Expired")
	status := e.ListRaw("limit=2&continue="+first.continueToken).WantRefused(http.StatusGone, "Expired")
	if status.Metadata.Continue == "" {
		e.Error("the response to an expired continue token has no new token")
		return
	}
	if rest := readPage(e.ListRaw("limit=2&continue=" + status.Metadata.Continue)); rest.version <= s.newest {
		e.Errorf("the new continue token lists version %d, want a version after %d", rest.version, s.newest)
	}
}

// listState is the state of the collection in matchRules.
type listState struct {
	*harness.Env
	past, newest listwatch.Version
	// firstPage is the first page of a list with a limit of 2. Its version equals past.
	firstPage listPage
}

// check sends a list request with the parameters of a rule and checks the response.
func (l listState) check(r listRule, rv string, want listExpectation) {
	l.Helper()
	query := "resourceVersion=" + rv
	if rv == "" {
		query = "x=" // an unknown parameter, so that resourceVersion is missing
	}
	if r.match != "" {
		query += "&resourceVersionMatch=" + r.match
	}
	switch r.paging {
	case withLimit:
		query += "&limit=2"
	case withContinue:
		query += "&limit=2&continue=" + l.firstPage.continueToken
	}
	want(listResponse{l.ListRaw(query), l, query, r.paging})
}

// checkContinue reads the remaining pages of a list. Together, all pages must show the state at the
// version of the first page, without later writes.
func checkContinue(e *harness.Env, first listPage) {
	e.Helper()
	items, p := maps.Clone(first.items), first
	if first.remainingItemCount == nil || *first.remainingItemCount != 2 {
		e.Errorf("the first page has remainingItemCount %v, want 2", first.remainingItemCount)
	}
	for p.continueToken != "" {
		p = readPage(e.ListRaw("limit=1&continue=" + p.continueToken))
		maps.Copy(items, p.items)
		if p.version != first.version || len(p.items) != 1 {
			e.Fatalf("got a page of version %d with %d items, want version %d with 1 item", p.version,
				len(p.items), first.version)
		}
	}
	if diff := cmp.Diff(e.StateAt(first.version), items); diff != "" {
		e.Errorf("items of all pages (-want +got):\n%s", diff)
	}
	e.ListRaw("limit=2&continue=garbage").WantRefused(http.StatusBadRequest, "BadRequest")
}

// A listResponse is the response to a list request of matchRules.
type listResponse struct {
	*harness.Response
	state  listState
	query  string
	paging paging
}

// A listExpectation checks a response. The functions of this type are named after the entries
// of the table in Kubernetes' API concepts, such as "Most Recent".
type listExpectation func(listResponse)

func wantMostRecent(r listResponse) { r.wantVersion(r.state.newest, r.state.newest) }

func wantAny(r listResponse) { r.wantVersion(0, r.state.newest) }

func wantNotOlderThan(r listResponse) { r.wantVersion(r.state.past, r.state.newest) }

func wantExact(r listResponse) { r.wantVersion(r.state.past, r.state.past) }

// wantNextPage expects the objects after the first page, at the version of the first page.
func wantNextPage(r listResponse) {
	r.Helper()
	p, first := readPage(r.Response), r.state.firstPage
	if p.version != first.version {
		r.Errorf("%s: got version %d, want the version %d of the first page", r.query, p.version, first.version)
	}
	want := r.StateAt(p.version)
	for name := range first.items {
		delete(want, name)
	}
	r.wantItems(p, want)
}

// wantBadRequest expects 400, the response to a continue token together with a version.
func wantBadRequest(r listResponse) {
	r.Helper()
	r.WantRefused(http.StatusBadRequest, "BadRequest")
}

// wantInvalid expects 422 with causes for all invalid requests that wantBadRequest does not cover.
func wantInvalid(r listResponse) {
	r.Helper()
	s := r.WantRefused(http.StatusUnprocessableEntity, "Invalid")
	if s.Details == nil || len(s.Details.Causes) == 0 {
		r.Errorf("%s: got details %s, want causes", r.query, harness.EncodeJSON(s.Details))
	}
}

// wantVersion expects a list whose version is in a range, with the objects at that version.
// If the request has a limit, the list must have only the first two objects.
func (l listResponse) wantVersion(oldest, newest listwatch.Version) {
	l.Helper()
	p := readPage(l.Response)
	if p.version < oldest || p.version > newest {
		l.Errorf("%s: got version %d, want %d to %d", l.query, p.version, oldest, newest)
	}
	want := l.StateAt(p.version)
	if l.paging == withLimit {
		names := slices.Sorted(maps.Keys(want))
		for _, name := range names[min(2, len(names)):] {
			delete(want, name)
		}
	}
	l.wantItems(p, want)
}

func (l listResponse) wantItems(p listPage, want map[string]listwatch.Version) {
	l.Helper()
	if diff := cmp.Diff(want, p.items); diff != "" {
		l.Errorf("%s: items at version %d (-want +got):\n%s", l.query, p.version, diff)
	}
}
