package store

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
)

// The errors of a collection have the texts of kube-apiserver, because some clients parse
// them.

// quotedName returns the name of an object as messages show it, such as: pods "a".
func (s CollectionSpec) quotedName(name string) string {
	return fmt.Sprintf("%s %q", s.QualifiedName(), name)
}

// details returns the Details that identify an object. As in Kubernetes, their Kind is the plural.
func (s CollectionSpec) details(name string) *listwatch.Details {
	return &listwatch.Details{Name: name, Group: s.Group(), Kind: s.Plural}
}

func (s CollectionSpec) notFound(key listwatch.Key) error {
	return &listwatch.Error{
		Code: listwatch.NotFound, Message: s.quotedName(key.Name) + " not found", Details: s.details(key.Name),
	}
}

func (s CollectionSpec) alreadyExists(key listwatch.Key) error {
	return &listwatch.Error{
		Code: listwatch.AlreadyExists, Message: s.quotedName(key.Name) + " already exists",
		Details: s.details(key.Name),
	}
}

// generateNameConflict is like alreadyExists, for a create with a generateName. As in Kubernetes,
// its RetryAfter asks the client to retry.
func (s CollectionSpec) generateNameConflict(key listwatch.Key) error {
	d := s.details(key.Name)
	d.RetryAfter = time.Second
	return &listwatch.Error{
		Code: listwatch.AlreadyExists, Details: d,
		Message: s.quotedName(key.Name) +
			" already exists, the server was not able to generate a unique name for the object",
	}
}

func (s CollectionSpec) conflict(key listwatch.Key, reason string) error {
	return &listwatch.Error{
		Code:    listwatch.Conflict,
		Message: "Operation cannot be fulfilled on " + s.quotedName(key.Name) + ": " + reason,
		Details: s.details(key.Name),
	}
}

const modifiedMessage = "the object has been modified; please apply your changes to the latest version and try again"

// badRequest returns the error for an object that cannot be read: status 400.
func badRequest(format string, args ...any) error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf(format, args...)}
}

// causes collects a cause for each rule that an object breaks.
type causes []listwatch.Cause

func (c *causes) add(reason, field, format string, args ...any) {
	*c = append(*c, listwatch.Cause{Reason: reason, Field: field, Message: fmt.Sprintf(format, args...)})
}

// invalid returns the error for an object that breaks rules: status 422, with a cause for
// each rule. Details.Kind is the kind and not the plural, as in Kubernetes.
func (s CollectionSpec) invalid(name string, causes []listwatch.Cause) error {
	kind := s.Kind
	if g := s.Group(); g != "" {
		kind += "." + g
	}
	return &listwatch.Error{
		Code: listwatch.Invalid, Status: http.StatusUnprocessableEntity, Reason: "Invalid",
		Message: fmt.Sprintf("%s %q is invalid: %s", kind, name, joinCauses(causes)),
		Details: &listwatch.Details{Name: name, Group: s.Group(), Kind: s.Kind, Causes: causes},
	}
}

// joinCauses returns the text of causes in a message, as kube-apiserver writes it.
func joinCauses(causes []listwatch.Cause) string {
	texts := make([]string, len(causes))
	for i, c := range causes {
		texts[i] = c.Error()
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}
