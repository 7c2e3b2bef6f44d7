package postgres

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// An assignment is the value that a write gives to a column.
type assignment struct {
	at   int    // the column
	text []byte // as SQL reads it, or nil for NULL
	path string // the member of the object that has the value
}

// assign returns the values that a write of data gives to the columns: those that are different
// from old or, if old is nil, those that data has. The error has a [listwatch.Cause] for each
// member that has no column, or has a value that the column cannot hold.
func (s *shape) assign(old *listwatch.Object, data []byte) ([]assignment, error) {
	a := assigner{shape: s, data: data}
	if old != nil {
		a.old = old.Data
	}
	a.checkMembers()
	name, _ := rawjson.String(rawjson.Lookup(data, "metadata", "name"))
	parts := s.parseName(name)
	if parts == nil && name != "" {
		a.refuse(invalid("metadata.name", "must be the values of the primary key, joined by dots"))
	}
	for i := range s.columns {
		a.assignColumn(i, parts)
	}
	return a.all, errors.Join(a.refused...)
}

// parseName returns the values in a name that nameOf has returned, or nil if name is none.
func (s *shape) parseName(name string) [][]byte {
	values := []string{name}
	if len(s.nameFrom) > 1 {
		values = strings.Split(name, ".")
	}
	if len(values) != len(s.nameFrom) || name == "" {
		return nil
	}
	parts := make([][]byte, len(values))
	for i, value := range values {
		parts[i] = []byte{} // not NULL
		if value != "%" {
			parts[i] = append(parts[i], nameUnescaper.Replace(value)...)
		}
	}
	return parts
}

var nameUnescaper = strings.NewReplacer("%25", "%", "%2F", "/", "%2E", ".")

// An assigner collects the assignments of one write.
type assigner struct {
	*shape
	old, data []byte // old is nil in a create
	all       []assignment
	refused   []error
}

func (a *assigner) refuse(err error) { a.refused = append(a.refused, err) }

// The members that have a column, or that the collection sets or ignores.
var (
	objectMembers   = []string{"apiVersion", "kind", "metadata", "spec"}
	metadataMembers = []string{
		"name", "namespace", "labels", "uid", "resourceVersion", "creationTimestamp", "generation",
	}
)

// checkMembers refuses members without a column: they would be lost without an error.
func (a *assigner) checkMembers() {
	a.checkNames(objectMembers)
	a.checkNames(metadataMembers, "metadata")
	if a.labelsAt == absent {
		var labels []string
		for _, at := range a.labels {
			labels = append(labels, a.columns[at].name)
		}
		a.checkNames(labels, "metadata", "labels")
	}
	if a.specAt != absent {
		return
	}
	var shown []string
	for _, c := range a.columns {
		if c.shown {
			shown = append(shown, c.name)
		}
	}
	if spec := rawjson.Lookup(a.data, "spec"); !isEmpty(spec) && spec[0] != '{' {
		a.refuse(invalid("spec", "must be an object with a member for each column"))
	}
	a.checkNames(shown, "spec")
}

// checkNames refuses the members of the object at a path that are not in known, unless they are
// empty. It accepts a member that the old object has. In this case the column was dropped, so the
// write conflicts until the table has been read again.
func (a *assigner) checkNames(known []string, path ...string) {
	object := rawjson.Lookup(a.data, path...)
	if isEmpty(object) || object[0] != '{' {
		return
	}
	err := rawjson.Members(object, func(name string, value rawjson.Span) error {
		at := append(slices.Clone(path), name)
		if raw := value.Of(object); !slices.Contains(known, name) && !isEmpty(raw) &&
			(a.old == nil || !bytes.Equal(raw, rawjson.Lookup(a.old, at...))) {
			problem := "the table has no column for this member"
			if len(path) == 1 && slices.Contains(a.generated, name) {
				problem = "the database generates the value of this column"
			}
			a.refuse(forbidden(strings.Join(at, "."), problem))
		}
		return nil
	})
	if err != nil {
		a.refuse(err)
	}
}

// isEmpty reports whether a member has no value that could be lost.
func isEmpty(raw []byte) bool {
	switch string(raw) {
	case "", "null", "{}", "[]":
		return true
	}
	return false
}

func invalid(path, message string) error {
	return listwatch.Cause{Reason: listwatch.CauseInvalid, Field: path, Message: "Invalid value: " + message}
}

func forbidden(path, message string) error {
	return listwatch.Cause{Reason: listwatch.CauseForbidden, Field: path, Message: "Forbidden: " + message}
}

// assignColumn adds an assignment for column i if a member of the object gives it a new value. A
// column that is both a label and a member of the spec has the value of the one that has changed.
func (a *assigner) assignColumn(i int, name [][]byte) {
	c := &a.columns[i]
	var given []assignment
	add := func(text []byte, err error, path string) {
		if err != nil {
			a.refuse(invalid(path, err.Error()))
			return
		}
		given = append(given, assignment{i, text, path})
	}
	if a.old == nil {
		if at := slices.Index(a.nameFrom, i); at >= 0 && name != nil {
			add(name[at], nil, "metadata.name")
		}
		if i == a.namespaceAt {
			text, err := rawjson.String(rawjson.Lookup(a.data, "metadata", "namespace"))
			add([]byte(text), err, "metadata.namespace")
		}
	}
	if i == a.specAt || c.shown {
		path := []string{"spec", c.name}
		if i == a.specAt {
			path = path[:1]
		}
		if raw, ok := a.changed(true, path...); ok {
			text, err := sqlText(c.kind, raw)
			add(text, err, strings.Join(path, "."))
		}
	}
	if slices.Contains(a.labels, i) {
		if raw, ok := a.changed(!c.shown, "metadata", "labels", c.name); ok {
			text, err := sqlText(&dataType{form: asString}, raw)
			add(text, err, "metadata.labels."+c.name)
		}
	}
	if i == a.labelsAt {
		if raw, ok := a.changed(true, "metadata", "labels"); ok {
			if isEmpty(raw) {
				raw = []byte("{}") // the column may be NOT NULL
			}
			add(raw, nil, "metadata.labels")
		}
	}
	a.choose(given)
}

// changed returns the value at a path if it differs from the old value. A missing value counts as
// different if the old object has a value there and absence is true.
func (a *assigner) changed(absence bool, path ...string) (raw []byte, ok bool) {
	raw = rawjson.Lookup(a.data, path...)
	if a.old == nil || raw == nil && !absence {
		return raw, raw != nil
	}
	old := rawjson.Lookup(a.old, path...)
	isNull := func(raw []byte) bool { return raw == nil || string(raw) == "null" }
	if isNull(raw) || isNull(old) {
		return raw, isNull(raw) != isNull(old)
	}
	return raw, !rawjson.Equal(raw, old)
}

// choose adds the assignment of a column for which several members may give a value.
func (a *assigner) choose(given []assignment) {
	if len(given) == 0 {
		return
	}
	first := given[0]
	for _, other := range given[1:] {
		if string(other.text) != string(first.text) || (other.text == nil) != (first.text == nil) {
			a.refuse(invalid(other.path, "must be equal to "+first.path+", because both are the same column"))
			return
		}
	}
	if a.old != nil && a.isFixed(first.at) {
		a.refuse(invalid(first.path, "field is immutable"))
		return
	}
	a.all = append(a.all, first)
}

// isFixed reports whether an update cannot change a column, because it identifies the object.
func (s *shape) isFixed(at int) bool {
	return slices.Contains(s.identity, at) || at == s.namespaceAt || at == s.uidAt || at == s.createdAt
}

// pathOf returns the path of the member that shows a column, or an empty string if there is none.
func (s *shape) pathOf(name string) string {
	i := slices.IndexFunc(s.columns, func(c column) bool { return c.name == name })
	switch {
	case i == absent:
		return ""
	case slices.Contains(s.nameFrom, i):
		return "metadata.name"
	case i == s.namespaceAt:
		return "metadata.namespace"
	case i == s.specAt:
		return "spec"
	case s.columns[i].shown:
		return "spec." + name
	case slices.Contains(s.labels, i):
		return "metadata.labels." + name
	case i == s.labelsAt:
		return "metadata.labels"
	}
	return ""
}
