//go:build !race

package lives

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/interop/internal/jsontree"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// A memory holds what a side has sent in a life: values that each side chooses itself.
type memory struct {
	// uids and versions hold the last UID and version of each object, by plural name and name.
	uids, versions map[string]string
	// symbols are the names under which UIDs are compared.
	symbols map[string]string
	counts  map[string]int // the number of UIDs that an object has had
}

func newMemory() *memory {
	return &memory{map[string]string{}, map[string]string{}, map[string]string{noUID: noUID}, map[string]int{}}
}

// learn keeps the UID and the version of an object.
func (m *memory) learn(key string, o map[string]any) {
	meta, _ := o["metadata"].(map[string]any)
	uid, _ := meta["uid"].(string)
	version, _ := meta["resourceVersion"].(string)
	if uid == "" || version == "" {
		return
	}
	m.uids[key], m.versions[key] = uid, version
	if m.symbols[uid] == "" {
		m.counts[key]++
		m.symbols[uid] = fmt.Sprintf("uid(%s#%d)", key, m.counts[key])
	}
}

// reference matches a part of a request that stands for a value that a side has sent.
var reference = regexp.MustCompile(`@(uid|rv)\(([a-z]+/[a-z0-9.-]+)\)`)

// resolve replaces the references in text. An object that has never existed has the UID noUID and
// the version 1.
func (m *memory) resolve(text string) string {
	return reference.ReplaceAllStringFunc(text, func(r string) string {
		parts := reference.FindStringSubmatch(r)
		if parts[1] == "uid" {
			return cmp.Or(m.uids[parts[2]], noUID)
		}
		return cmp.Or(m.versions[parts[2]], "1")
	})
}

var (
	uid     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	instant = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	// version matches a version in the message of a failed precondition.
	version = regexp.MustCompile(`(ResourceVersion in [a-z ]+)(\(\d+\)|: \d+)`)
)

// normalizeText replaces the UIDs and times in a text.
func (m *memory) normalizeText(text string) string {
	text = uid.ReplaceAllStringFunc(text, func(u string) string { return cmp.Or(m.symbols[u], "uid(?)") })
	text = instant.ReplaceAllString(text, "TIME")
	return version.ReplaceAllString(text, "$1 VERSION")
}

// normalize replaces the values in v that each side chooses itself. v is decoded JSON, which is not
// changed.
func (m *memory) normalize(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, value := range v {
			switch name {
			case "resourceVersion":
			case "continue": // an empty one is the same as none
				if value != "" {
					out[name] = value != nil
				}
			case "managedFields":
				out[name] = m.normalizeManagers(value)
			case "causes":
				out[name] = sortConflicts(m.normalize(value))
			case "conversion": // its webhook has another address on each side
				out[name] = normalizeConversion(value)
			default:
				out[name] = m.normalize(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = m.normalize(v[i])
		}
		return out
	case string:
		return m.normalizeText(v)
	case json.Number:
		return v.String()
	case int64:
		return fmt.Sprint(v)
	case float64:
		return fmt.Sprint(v)
	}
	return v
}

// sortConflicts sorts the causes of an error if each of them is a conflict of managers. Kubernetes
// lists the managers in the order of a map. The name of a manager may be in the exceptions, so that
// it must not determine the order.
func sortConflicts(v any) any {
	causes, _ := v.([]any)
	key := func(cause any) string {
		c, _ := cause.(map[string]any)
		return fmt.Sprint(c["field"], " ", updater.ReplaceAllString(fmt.Sprint(c["message"]), ""))
	}
	isOther := func(cause any) bool {
		c, _ := cause.(map[string]any)
		return c["reason"] != string(metav1.CauseTypeFieldManagerConflict)
	}
	if !slices.ContainsFunc(causes, isOther) {
		slices.SortFunc(causes, func(a, b any) int { return cmp.Compare(key(a), key(b)) })
	}
	return v
}

// normalizeConversion returns only the strategy of the conversion of a definition.
func normalizeConversion(v any) any {
	conversion, _ := v.(map[string]any)
	return conversion["strategy"]
}

// An answer is a normalized response.
type answer struct {
	code     int
	warnings []string
	body     any // nil if it is not JSON
}

// answer normalizes a response and keeps the UIDs and versions of its objects.
func (m *memory) answer(r response) answer {
	var body any
	d := json.NewDecoder(bytes.NewReader(r.body))
	d.UseNumber()
	err := d.Decode(&body)
	o, ok := body.(map[string]any)
	if err != nil || !ok {
		return answer{code: r.code} // a text that may begin with a number
	}
	if r.code < http.StatusMultipleChoices {
		m.learnAnswer(o)
	}
	a := answer{code: r.code, body: m.normalize(body)}
	for _, w := range r.warnings {
		a.warnings = append(a.warnings, m.normalizeText(w))
	}
	return a
}

// learnAnswer keeps the UIDs and versions in a response.
func (m *memory) learnAnswer(o map[string]any) {
	for _, k := range kinds {
		switch {
		case o["apiVersion"] == k.apiVersion() && o["kind"] == k.kind:
			meta, _ := o["metadata"].(map[string]any)
			m.learn(fmt.Sprint(k.plural, "/", meta["name"]), o)
		case o["apiVersion"] == k.apiVersion() && o["kind"] == k.kind+"List":
			items, _ := o["items"].([]any)
			for _, item := range items {
				if item, ok := item.(map[string]any); ok {
					meta, _ := item["metadata"].(map[string]any)
					m.learn(fmt.Sprint(k.plural, "/", meta["name"]), item)
				}
			}
		}
	}
}

// state normalizes objects, and keeps their UIDs and versions.
func (m *memory) state(objects map[string]map[string]any) map[string]any {
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		m.learn(key, objects[key])
	}
	out := map[string]any{}
	for key, o := range objects {
		out[key] = m.normalize(o)
	}
	return out
}

// A manager is an entry of managedFields, without its time.
type manager struct {
	name   string // with the operation and the subresource
	update bool
	fields *fieldpath.Set
}

func (m manager) String() string { return m.name + " " + m.fields.String() }

// normalizeManagers decodes managedFields. If it cannot decode v, it returns v unchanged.
func (m *memory) normalizeManagers(v any) any {
	list, _ := v.([]any)
	var all []manager
	for _, e := range list {
		e, _ := e.(map[string]any)
		text, err := json.Marshal(e["fieldsV1"])
		if err != nil {
			return v
		}
		one := manager{
			fmt.Sprint(e["manager"], " ", e["operation"], " ", e["subresource"], " ", e["apiVersion"]),
			e["operation"] == "Update",
			&fieldpath.Set{},
		}
		if err := one.fields.FromJSON(strings.NewReader(m.normalizeText(string(text)))); err != nil {
			return v
		}
		all = append(all, one)
	}
	return all
}

// fold returns the entries of applies, and a single entry of all updates.
func fold(all []manager) []string {
	updates := &fieldpath.Set{}
	var out []string
	for _, m := range all {
		if m.update {
			updates = updates.Union(m.fields)
		} else {
			out = append(out, m.String())
		}
	}
	if !updates.Empty() {
		out = append(out, "updates "+updates.String())
	}
	slices.Sort(out)
	return out
}

// A difference is one part in which two answers, or two states, differ.
type difference struct {
	kind             string // the kind of the object, or of the items of a list; Status for errors
	part             string // code, warnings, or the path of a field
	kubernetes, ours any
}

func (d difference) String() string {
	return fmt.Sprintf("%s %s: Kubernetes has %s, kubetest has %s", d.kind, d.part, show(d.kubernetes), show(d.ours))
}

func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		text = fmt.Append(nil, v)
	}
	const limit = 900
	if len(text) > limit {
		text = append(text[:limit], "…"...)
	}
	return string(text)
}

// compareAnswers returns the differences of two answers. If the codes differ, it returns only this
// difference.
func compareAnswers(k, o answer) []difference {
	kind := k.kind()
	if k.code != o.code {
		text := func(a answer) string { return fmt.Sprint(a.code, " ", show(a.body)) }
		return []difference{{kind, "code", text(k), text(o)}}
	}
	var all []difference
	if !slices.Equal(k.warnings, o.warnings) {
		all = append(all, difference{kind, "warnings", k.warnings, o.warnings})
	}
	if k.body == nil || o.body == nil {
		return all // a path that no API server knows has a text as the response
	}
	return append(all, compareTrees(kind, "", k.body, o.body)...)
}

// kind returns the kind of the object in an answer, or of the items of a list.
func (a answer) kind() string {
	o, _ := a.body.(map[string]any)
	kind, _ := o["kind"].(string)
	return strings.TrimSuffix(kind, "List")
}

// compareStates returns the differences of the objects of the two sides. If an object does not
// exist, the path of the difference is empty.
func compareStates(kubernetes, ours map[string]any) (all []difference) {
	names := maps.Clone(kubernetes)
	maps.Copy(names, ours)
	for _, key := range slices.Sorted(maps.Keys(names)) {
		plural, _, _ := strings.Cut(key, "/")
		all = append(all, compareTrees(kindOf(plural).kind, "", kubernetes[key], ours[key])...)
	}
	return all
}

// compareTrees returns the differences of two normalized JSON values at a path.
func compareTrees(kind, path string, kubernetes, ours any) (all []difference) {
	jsontree.Walk(path, kubernetes, ours, func(path string, k, o any) {
		switch {
		case strings.HasSuffix(path, ".managedFields"):
			all = append(all, compareManagers(kind, path, k, o)...)
		case !reflect.DeepEqual(k, o):
			all = append(all, difference{kind, strings.TrimPrefix(path, "."), k, o})
		}
	})
	return all
}

// lost returns the paths of the members of a body that the object of Kubernetes has, and the object
// of kubetest lacks.
func lost(path string, body, kubernetes, ours any) (all []string) {
	members, ok := body.(map[string]any)
	if !ok {
		if kubernetes != nil && ours == nil {
			all = append(all, path)
		}
		return all
	}
	k, _ := kubernetes.(map[string]any)
	o, _ := ours.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		all = append(all, lost(path+"."+name, members[name], k[name], o[name])...)
	}
	return all
}

// compareManagers compares managedFields. An object of kubetest has no managedFields before the
// first apply. The first apply adds one entry for all earlier updates.
func compareManagers(kind, path string, kubernetes, ours any) []difference {
	k, _ := kubernetes.([]manager)
	o, ok := ours.([]manager)
	if !ok {
		return nil
	}
	before, after := fold(k), fold(o)
	if slices.Equal(before, after) {
		return nil
	}
	return []difference{{kind, strings.TrimPrefix(path, "."), before, after}}
}
