package informer

import (
	"strconv"

	"github.com/listwatch/listwatch"
)

// A selection is what a Query asks of memory.
type listFilter struct {
	namespace, name *string // nil: all
	labels          listwatch.LabelSelector
	fields          listwatch.FieldSelector
}

// newSelection refuses what memory can't answer, and says who can.
func newListFilter(q listwatch.Query) (listFilter, error) {
	s := listFilter{labels: q.Labels, fields: q.Fields}
	if err := checkQuery(q); err != nil {
		return s, err
	}
	s.namespace = scope(q.Namespace, q.Fields, listwatch.FieldNamespace)
	s.name = scope(q.Name, q.Fields, listwatch.FieldName)
	return s, nil
}

func checkQuery(q listwatch.Query) error {
	refuse := func(message string) error {
		return &listwatch.Error{Code: listwatch.Invalid, Op: "list from memory", Message: message}
	}
	if err := q.Fields.Check(nil); err != nil {
		return &listwatch.Error{
			Code: listwatch.Invalid, Op: "list from memory", Err: err,
			Message: "memory has no other fields: add an index and ask ByIndex",
		}
	}
	switch {
	case q.Start == listwatch.At || q.Version != 0 || q.Match != listwatch.NotOlderThan:
		return refuse("a version (" + q.Version.String() + ") can't be asked for: wait for it with WaitForVersion, then list")
	case q.Limit > 0:
		return refuse("a limit (" + strconv.Itoa(q.Limit) + ") is for lists over the wire: take a Snapshot and stop where it is enough")
	case q.Continue != "":
		return refuse("a continue token is for lists over the wire: take a Snapshot, which stays as it is")
	case q.InitialEvents != listwatch.Unset || q.Bookmarks:
		return refuse("initial events and bookmarks belong to a watch: follow the informer instead")
	}
	return nil
}

// scope returns the one value that q allows; nil where it allows all. Where a member and a field say different things, the field is left for
// matchesKey to refuse.
func scope(member string, fields listwatch.FieldSelector, path string) *string {
	if member != "" {
		return &member
	}
	if value, ok := fields.Equality(path); ok {
		return &value
	}
	return nil
}

// isOne reports whether at most one key can match.
func (s *listFilter) matchesOneKey() bool { return s.namespace != nil && s.name != nil }

func (s *listFilter) matchesAll() bool {
	return s.namespace == nil && s.name == nil && s.labels.Empty() && s.fields.Empty()
}

func (s *listFilter) matchesKey(k listwatch.Key) bool {
	return (s.namespace == nil || k.Namespace == *s.namespace) && (s.name == nil || k.Name == *s.name) &&
		(s.fields.Empty() || s.fields.Matches(&listwatch.Object{Key: k}))
}

func quote(s string) string { return strconv.Quote(s) }
