//go:build !race

package kubernetes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// An answer is a response in which symbols replace the values that each server chooses itself:
// versions, UIDs, times, generated names and tokens.
type answer struct {
	code      int
	mediaType string // Content-Type, compared if the request succeeded
	warnings  []string
	body      any
	message   string // the message of a Status, which is not compared
}

func decodeExact(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(v)
}

// answer normalizes a response, and keeps its versions and UIDs for later requests.
func (s *comparedServer) answer(r request, res *http.Response, body []byte) (answer, error) {
	a := answer{code: res.StatusCode, mediaType: res.Header.Get("Content-Type")}
	for _, w := range res.Header.Values("Warning") {
		text, _, _ := strings.Cut(w, ";") // the rest explains the warning
		a.warnings = append(a.warnings,
			duplicateField.ReplaceAllString(strings.Replace(text, "json patch ", "", 1), "duplicate $1"))
	}
	slices.Sort(a.warnings)
	var v any
	if err := decodeExact(body, &v); err != nil || a.mediaType != jsonType && a.mediaType != cborType {
		if a.code >= 300 {
			a.body = "text"
			return a, nil
		}
		return a, fmt.Errorf("%s: %s %s: %s with the body %q: %w", s.name, r.method, r.path, res.Status, body, err)
	}
	if m, ok := v.(map[string]any); ok && a.code < 300 {
		s.remember(r, m)
	}
	if m, ok := v.(map[string]any); ok && m["kind"] == "Status" {
		a.message, _ = m["message"].(string)
	}
	a.body = s.normalize(v)
	return a, nil
}

// remember keeps the version and UID of an object, or the version and token of a list.
func (s *comparedServer) remember(r request, m map[string]any) {
	meta, _ := m["metadata"].(map[string]any)
	version, _ := meta["resourceVersion"].(string)
	if m["items"] != nil {
		key := collectionKey(r.path)
		s.values["list("+key+")"] = version
		s.values["continue("+key+")"], _ = meta["continue"].(string)
		return
	}
	for plural, kind := range kinds {
		if m["kind"] != kind || version == "" {
			continue
		}
		name, _ := meta["name"].(string)
		namespace, _ := meta["namespace"].(string)
		key := "(" + target{plural: plural, namespace: namespace, name: name}.key() + ")"
		if last := s.values["rv"+key]; last != "" && last != version {
			s.values["old"+key] = last
		}
		s.values["rv"+key] = version
		s.values["uid"+key], _ = meta["uid"].(string)
	}
}

// symbol returns the symbol for a value. The n-th value of a kind, such as "version", has the same
// symbol at both servers.
func (s *comparedServer) symbol(kind, value string) string {
	if value == "" || value == "0" {
		return value
	}
	key := kind + value
	if s.symbols[key] == "" {
		s.counts[kind]++
		s.symbols[key] = fmt.Sprintf("%s %d", kind, s.counts[kind])
	}
	return s.symbols[key]
}

var (
	generatedName = regexp.MustCompile(`\bgen(\d+)-[a-z0-9]{5}\b`)
	timestamp     = regexp.MustCompile(`^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)
	// duplicateField matches warnings about a duplicate field in JSON and in YAML.
	duplicateField = regexp.MustCompile(
		`(?:line \d+: key|duplicate field) \\"(?:[^"]*\.)?([^".]*)\\"(?: already set in map)?`)
	age = regexp.MustCompile(`^\d+[smh]$`)
)

// normalize replaces the values in v that each server chooses itself. v is decoded JSON.
func (s *comparedServer) normalize(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v["kind"] == "Status" {
			return normalizeStatus(v)
		}
		_, isList := v["items"]
		_, isTable := v["rows"]
		for _, c := range elements(v["columnDefinitions"]) {
			delete(c, "description") // it is a text for people
		}
		out := make(map[string]any, len(v))
		// Use a fixed order, because it determines the numbers of the symbols.
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if meta, ok := v[name].(map[string]any); ok && name == "metadata" {
				out[name] = s.normalizeMetadata(meta, isList || isTable)
				continue
			}
			out[name] = s.normalize(v[name])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = s.normalize(v[i])
		}
		return out
	case string:
		if age.MatchString(v) {
			return "AGE"
		}
		return generatedName.ReplaceAllString(v, "gen$1-XXXXX")
	}
	return v
}

// isEmpty reports whether v is an empty value. Kubernetes omits such values from the metadata of
// objects, but not from the metadata of lists.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// elements returns the objects of a list.
func elements(v any) (all []map[string]any) {
	list, _ := v.([]any)
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

func (s *comparedServer) normalizeMetadata(meta map[string]any, ofList bool) map[string]any {
	out := s.normalize(meta).(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(meta)) {
		v := meta[name]
		text, _ := v.(string)
		switch {
		case name == "resourceVersion" && ofList:
			out[name] = text != ""
		case isEmpty(v):
			delete(out, name)
		case name == "continue":
			out[name] = "TOKEN"
		case name == "resourceVersion" && meta["deletionTimestamp"] != nil && isEmpty(meta["finalizers"]):
			delete(out, name) // the write has deleted the object
		case name == "resourceVersion" && text != "":
			out[name] = s.symbol("version", text)
		case name == "uid" && text != "":
			out[name] = s.symbol("uid", text)
		case strings.HasSuffix(name, "Timestamp") && timestamp.MatchString(text) && text != "2020-01-01T00:00:00Z":
			out[name] = "TIME"
		case name == "managedFields":
			out[name] = normalizeManagers(v)
		}
	}
	return out
}

// normalizeStatus keeps the code, the reason and the details of a failure, without the texts.
func normalizeStatus(status map[string]any) any {
	details, _ := status["details"].(map[string]any)
	out := map[string]any{}
	for name, v := range details {
		if name != "causes" {
			out[name] = v
		}
	}
	var causes []string
	list, _ := details["causes"].([]any)
	for _, c := range list {
		if c, ok := c.(map[string]any); ok {
			causes = append(causes, fmt.Sprintf("%v %v", c["reason"], c["field"]))
		}
	}
	slices.Sort(causes)
	if causes != nil {
		out["causes"] = fmt.Sprint(slices.Compact(causes))
	}
	if status["status"] == "Success" {
		delete(out, "uid")
	}
	return map[string]any{
		"kind": "Status", "status": status["status"], "code": status["code"],
		"reason": status["reason"], "details": out,
	}
}

// A manager is an entry of managedFields, without its time.
type manager struct {
	name, operation, subresource string
	fields                       *fieldpath.Set
}

func (m manager) key() string { return m.name + " " + m.operation + " " + m.subresource }

func (m manager) String() string { return m.key() + " " + m.fields.String() }

// normalizeManagers decodes managedFields. If it cannot decode v, it returns v unchanged.
func normalizeManagers(v any) any {
	list, _ := v.([]any)
	var all []manager
	for _, e := range list {
		m, _ := e.(map[string]any)
		text, err := json.Marshal(m["fieldsV1"])
		if err != nil {
			return v
		}
		one := manager{fields: &fieldpath.Set{}}
		one.name, _ = m["manager"].(string)
		one.operation, _ = m["operation"].(string)
		one.subresource, _ = m["subresource"].(string)
		if err := one.fields.FromJSON(bytes.NewReader(text)); err != nil {
			return v
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b manager) int { return cmp.Compare(a.key(), b.key()) })
	return all
}

// foldUpdates replaces all entries of updates by a single entry.
func foldUpdates(all []manager) []manager {
	updates := manager{name: "all", operation: "Update", fields: &fieldpath.Set{}}
	var out []manager
	for _, m := range all {
		if m.operation == "Update" {
			updates.fields = updates.fields.Union(m.fields)
		} else {
			out = append(out, m)
		}
	}
	// Kubernetes attributes the fields that mark a deleted object to no manager.
	updates.fields = updates.fields.Difference(fieldpath.NewSet(
		fieldpath.MakePathOrDie("metadata", "deletionTimestamp"),
		fieldpath.MakePathOrDie("metadata", "deletionGracePeriodSeconds"),
	))
	if !updates.fields.Empty() {
		out = append(out, updates)
	}
	return out
}
