//go:build !race

package field

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
)

// A readScope is the collection and the selection of a list or a watch.
type readScope struct {
	path  string
	query url.Values
}

func (s *sequence) drawScope(r *rapid.T) readScope {
	k := s.drawKind(r)
	scope := readScope{s.collection(k, draw(r, "scope", "a", "b", "")), url.Values{}}
	labels := []string{"", "", "lane=a", "lane!=a", "lane in (a,b)", "lane notin (a,b)", "!lane"}
	if l := draw(r, "labels", labels...); l != "" {
		scope.query.Set("labelSelector", l)
	}
	fields := append([]string{"", "", "", "metadata.name=x", "metadata.name!=x"}, k.fields...)
	if f := draw(r, "fields", fields...); f != "" {
		scope.query.Set("fieldSelector", f)
	}
	return scope
}

func (r readScope) String() string { return r.path + "?" + r.query.Encode() }

// drawVersion returns an earlier version of the cluster.
func (s *sequence) drawVersion(r *rapid.T) string { return draw(r, "version", s.versions...) }

// list compares a list of the newest state or of another one.
func (s *sequence) list(r *rapid.T) {
	scope, accept := s.drawScope(r), draw(r, "form", listForms...)
	if limit := draw(r, "limit", 0, 0, 1, 2, 500); limit != 0 {
		scope.query.Set("limit", strconv.Itoa(limit))
	}
	match := draw(r, "state", "", "", "any", "NotOlderThan", "version", "Exact")
	switch match {
	case "any":
		scope.query.Set("resourceVersion", "0")
	case "NotOlderThan", "version":
		scope.query.Set("resourceVersion", s.versions[len(s.versions)-1])
	case "Exact":
		scope.query.Set("resourceVersion", s.drawVersion(r))
	}
	if match == "NotOlderThan" || match == "Exact" {
		scope.query.Set("resourceVersionMatch", match)
	}
	if match == "any" { // both servers may respond with an older state
		scope.query.Del("limit") // kube-apiserver ignores it
		s.eventual(r, func() string {
			direct, relayed := s.readBoth(r, scope.String(), accept)
			return compareLists(scope.String(), direct, relayed, "any")
		})
		return
	}
	direct, relayed := s.readBoth(r, scope.String(), accept)
	if diff := compareLists(scope.String(), direct, relayed, match); diff != "" {
		r.Fatal(diff)
	}
}

// readBoth sends a read to both servers.
func (s *sequence) readBoth(r *rapid.T, path, accept string) (direct, relayed answer) {
	direct = s.direct.exchange(r, s.test.Context(), http.MethodGet, path, "", accept, "")
	relayed = s.relayed.exchange(r, s.test.Context(), http.MethodGet, path, "", accept, "")
	if relayed.header.Get("Audit-Id") == "" {
		s.counts["read of a cache"]++
	}
	return direct, relayed
}

// compareLists describes the difference of two lists. If match is Exact, the lists must be equal.
// Otherwise their versions may differ.
func compareLists(what string, direct, relayed answer, match string) string {
	if diff := compareAnswers(what, direct, relayed); diff != "" || direct.code != http.StatusOK {
		return diff
	}
	if match == "Exact" && !bytes.Equal(direct.body, relayed.body) {
		return fmt.Sprintf("%s: got %q, want %q", what, relayed.body, direct.body)
	}
	want, wantItems, err := splitList(direct.body)
	got, gotItems, err2 := splitList(relayed.body)
	if err != nil || err2 != nil {
		return fmt.Sprint(what, ": ", err, " and ", err2)
	}
	if !bytes.Equal(gotItems, wantItems) {
		return fmt.Sprintf("%s: got the items %q at %s, want %q at %s", what, gotItems, got.ResourceVersion, wantItems,
			want.ResourceVersion)
	}
	remaining := func(m *metav1.ListMeta) string { return fmt.Sprint(m.Continue != "", m.RemainingItemCount != nil) }
	if remaining(got) != remaining(want) {
		return fmt.Sprintf("%s: got %+v, want %+v", what, got, want)
	}
	if match == "" && numberOf(got) < numberOf(want) { // the relay was asked last
		return fmt.Sprintf("%s: got version %s, want %s or a newer one", what, got.ResourceVersion,
			want.ResourceVersion)
	}
	return ""
}

func numberOf(m *metav1.ListMeta) uint64 {
	v, _ := strconv.ParseUint(m.ResourceVersion, 10, 64) // zero after an error
	return v
}

// compareAnswers describes the difference of the codes of two answers and of their forms.
func compareAnswers(what string, direct, relayed answer) string {
	if direct.code == http.StatusOK && relayed.code == http.StatusOK {
		want, got := direct.header.Get("Content-Type"), relayed.header.Get("Content-Type")
		if want != got {
			return fmt.Sprintf("%s: got Content-Type %q, want %q", what, got, want)
		}
		return ""
	}
	want, got := reasonOf(direct), reasonOf(relayed)
	if want != got {
		return fmt.Sprintf("%s: got %s, want %s: %q and %q", what, got, want, relayed.body, direct.body)
	}
	return ""
}

// reasonOf returns the code of an answer, and the reason in its Status.
func reasonOf(a answer) string {
	var status metav1.Status
	raw, err := rawOf(a.body)
	if err == nil && a.code >= 300 {
		err = status.Unmarshal(raw)
	}
	if err != nil {
		return fmt.Sprint(a.code, " ", err)
	}
	return fmt.Sprint(a.code, " ", status.Reason)
}

// rawOf returns the message in the envelope of an object.
func rawOf(body []byte) ([]byte, error) {
	encoded, ok := bytes.CutPrefix(body, []byte("k8s\x00"))
	if !ok {
		return nil, fmt.Errorf("%.100q is not in Protobuf", body)
	}
	var envelope runtime.Unknown
	err := envelope.Unmarshal(encoded)
	return envelope.Raw, err
}

// splitList returns the metadata and the bytes of the items of a list.
func splitList(body []byte) (*metav1.ListMeta, []byte, error) {
	raw, err := rawOf(body)
	if err != nil {
		return nil, nil, err
	}
	number, wireType, n := protowire.ConsumeTag(raw)
	if number != 1 || wireType != protowire.BytesType {
		return nil, nil, fmt.Errorf("a list begins with field %d", number)
	}
	metadata, m := protowire.ConsumeBytes(raw[n:])
	if m < 0 {
		return nil, nil, protowire.ParseError(m)
	}
	list := new(metav1.ListMeta)
	err = list.Unmarshal(metadata)
	return list, raw[n+m:], err
}

// pages compares the pages of a list. Each server continues the list of any of the two. Objects
// change in between, which pages do not show.
func (s *sequence) pages(r *rapid.T) {
	scope, accept := s.drawScope(r), draw(r, "form", listForms...)
	scope.query.Set("limit", draw(r, "limit", "1", "2"))
	if draw(r, "exact", false, true) {
		scope.query.Set("resourceVersion", s.drawVersion(r))
		scope.query.Set("resourceVersionMatch", "Exact")
	}
	read := func(e *endpoint, token string) answer {
		q := scope
		if token != "" {
			q.query = url.Values{"continue": {token}}
			for _, name := range []string{"limit", "labelSelector", "fieldSelector"} {
				q.query[name] = scope.query[name]
			}
		}
		return e.exchange(r, s.test.Context(), http.MethodGet, q.String(), "", accept, "")
	}
	var forDirect, forRelayed string
	for n := range 8 {
		direct, relayed := read(s.direct, forDirect), read(s.relayed, forRelayed)
		what := fmt.Sprintf("page %d of %s", n, scope)
		if diff := compareLists(what, direct, relayed, "pages"); diff != "" {
			r.Fatal(diff)
		}
		if direct.code != http.StatusOK {
			return
		}
		ofDirect, _, _ := splitList(direct.body) // compareLists has done the same
		ofRelayed, _, _ := splitList(relayed.body)
		if ofDirect.Continue == "" {
			return
		}
		forDirect, forRelayed = ofDirect.Continue, ofRelayed.Continue
		if draw(r, "swap", false, true) {
			forDirect, forRelayed = forRelayed, forDirect
		}
		if draw(r, "change", false, true) {
			s.patch(r)
		}
	}
}

// get compares a get.
func (s *sequence) get(r *rapid.T) {
	_, path := s.drawObject(r, s.drawKind(r))
	accept := draw(r, "form", protobufType, protobufType+partial)
	switch draw(r, "state", "newest", "any", "version") {
	case "any":
		path += "?resourceVersion=0"
	case "version":
		path += "?resourceVersion=" + s.versions[len(s.versions)-1]
	}
	s.eventual(r, func() string { // gets of any state may return an older one
		direct, relayed := s.readBoth(r, path, accept)
		if diff := compareAnswers(path, direct, relayed); diff != "" || direct.code != http.StatusOK {
			return diff
		}
		if !bytes.Equal(direct.body, relayed.body) {
			return fmt.Sprintf("%s: got %q, want %q", path, relayed.body, direct.body)
		}
		return ""
	})
}
