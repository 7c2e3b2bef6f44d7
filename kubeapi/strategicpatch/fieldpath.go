package strategicpatch

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch"
)

// maxDepth limits the depth of a patch, because each level requires a pass over everything
// below it.
const maxDepth = 128

// A fieldPath is the path of a field in a patch, for error messages. The zero fieldPath is
// the whole object.
type fieldPath struct {
	parent *fieldPath
	name   string // with its separator; empty for an element of a list
	index  int    // of an element
	depth  int
}

func (p fieldPath) member(name string) fieldPath {
	if p.parent != nil {
		name = "." + name
	}
	return fieldPath{parent: &p, name: name, depth: p.depth + 1}
}

// element returns the path of an element of the list p. It refers to p, so that the paths of all
// elements of a list share it.
func (p *fieldPath) element(i int) fieldPath {
	return fieldPath{parent: p, index: i, depth: p.depth + 1}
}

// String formats p as Kubernetes does: spec.containers[0].image.
func (p fieldPath) String() string {
	var names []string
	for at := &p; at != nil; at = at.parent {
		name := at.name
		if name == "" && at.parent != nil {
			name = "[" + strconv.Itoa(at.index) + "]"
		}
		names = append(names, name)
	}
	var s strings.Builder
	for i := len(names) - 1; i >= 0; i-- {
		s.WriteString(names[i])
	}
	return s.String()
}

// checkDepth returns an error if p is too deep. The error names the top-level field.
func (p fieldPath) checkDepth() error {
	if p.depth <= maxDepth {
		return nil
	}
	for p.depth > 1 {
		p = *p.parent
	}
	return p.invalid("the patch is deeper than %d levels", maxDepth)
}

// invalid returns the error for a patch that is invalid.
func (p fieldPath) invalid(format string, args ...any) error { return p.newError(0, "", format, args) }

// inapplicable returns the error for a patch that cannot be applied to the object.
func (p fieldPath) inapplicable(format string, args ...any) error {
	return p.newError(http.StatusUnprocessableEntity, "Invalid", format, args)
}

func (p fieldPath) newError(status int, reason, format string, args []any) error {
	message, field := fmt.Sprintf(format, args...), p.String()
	e := &listwatch.Error{
		Code: listwatch.Invalid, Status: status, Reason: reason, Message: "the strategic merge patch: " + message,
	}
	if field != "" {
		e.Message = "the strategic merge patch: " + field + ": " + message
		e.Details = &listwatch.Details{
			Causes: []listwatch.Cause{{Reason: listwatch.CauseInvalid, Message: message, Field: field}},
		}
	}
	return e
}

// truncate shortens a value for an error message.
func truncate(value []byte) string {
	const limit = 40
	if len(value) <= limit {
		return string(value)
	}
	return strings.ToValidUTF8(string(value[:limit]), "") + "…"
}
