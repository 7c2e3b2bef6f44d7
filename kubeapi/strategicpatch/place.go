package strategicpatch

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch"
)

// maxDepth bounds how deep a patch may reach: each level costs a walk over all that is below it.
const maxDepth = 128

// A place is where in a patch something is said, for errors. The zero place is the object itself.
type place struct {
	up    *place
	name  string // with the sign that stands before it
	depth int
}

func (p place) member(name string) place {
	if p.up != nil {
		name = "." + name
	}
	return place{&p, name, p.depth + 1}
}

func (p place) element(i int) place { return place{&p, "[" + strconv.Itoa(i) + "]", p.depth + 1} }

// String returns p as Kubernetes writes it: spec.containers[0].image.
func (p place) String() string {
	var names []string
	for at := &p; at != nil; at = at.up {
		names = append(names, at.name)
	}
	var s strings.Builder
	for i := len(names) - 1; i >= 0; i-- {
		s.WriteString(names[i])
	}
	return s.String()
}

// tooDeep complains where p is deeper than a patch may reach; of the field in which that is.
func (p place) tooDeep() error {
	if p.depth <= maxDepth {
		return nil
	}
	for p.depth > 1 {
		p = *p.up
	}
	return p.bad("the patch reaches deeper than %d levels", maxDepth)
}

// bad is the error that the patch is wrong in itself.
func (p place) bad(format string, args ...any) error { return p.complain(0, "", format, args) }

// misfit is the error that the patch does not fit the object.
func (p place) misfit(format string, args ...any) error {
	return p.complain(http.StatusUnprocessableEntity, "Invalid", format, args)
}

func (p place) complain(status int, reason, format string, args []any) error {
	message, field := fmt.Sprintf(format, args...), p.String()
	e := &listwatch.Error{Code: listwatch.Invalid, Status: status, Reason: reason, Message: "the strategic merge patch: " + message}
	if field != "" {
		e.Message = "the strategic merge patch: " + field + ": " + message
		e.Details = &listwatch.Details{Causes: []listwatch.Cause{{Reason: listwatch.CauseInvalid, Message: message, Field: field}}}
	}
	return e
}

// shorten returns a value as a message can bear it.
func shorten(value []byte) string {
	const most = 40
	if len(value) <= most {
		return string(value)
	}
	return strings.ToValidUTF8(string(value[:most]), "") + "…"
}
