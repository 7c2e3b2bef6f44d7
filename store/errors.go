package store

import (
	"fmt"
	"net/http"

	"github.com/listwatch/listwatch"
)

// The errors of a collection say what kube-apiserver says, word for word where clients are known to read it.

// quoted names an object as messages do: pods "a".
func (r CollectionSpec) quoted(name string) string {
	return fmt.Sprintf("%s %q", r.QualifiedName(), name)
}

// details names an object by the plural of its resource.
func (r CollectionSpec) details(name string) *listwatch.Details {
	return &listwatch.Details{Name: name, Group: r.Group(), Kind: r.Plural}
}

func (r CollectionSpec) notFound(key listwatch.Key) error {
	return &listwatch.Error{Code: listwatch.NotFound, Message: r.quoted(key.Name) + " not found", Details: r.details(key.Name)}
}

func (r CollectionSpec) alreadyExists(key listwatch.Key) error {
	return &listwatch.Error{Code: listwatch.AlreadyExists, Message: r.quoted(key.Name) + " already exists", Details: r.details(key.Name)}
}

func (r CollectionSpec) conflict(key listwatch.Key, why string) error {
	return &listwatch.Error{
		Code:    listwatch.Conflict,
		Message: "Operation cannot be fulfilled on " + r.quoted(key.Name) + ": " + why,
		Details: r.details(key.Name),
	}
}

const modified = "the object has been modified; please apply your changes to the latest version and try again"

// badRequest is what is wrong before the rules of the resource are asked: 400.
func badRequest(format string, args ...any) error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf(format, args...)}
}

// invalid is an object that can be read but breaks rules: 422, with a cause for each. Unlike in other errors, Details.Kind is
// the kind itself, as in Kubernetes.
func (r CollectionSpec) invalid(name string, causes []listwatch.Cause) error {
	list := ""
	for i, c := range causes {
		if i > 0 {
			list += ", "
		}
		list += c.Field + ": " + c.Message
	}
	if len(causes) > 1 {
		list = "[" + list + "]"
	}
	kind := r.Kind
	if g := r.Group(); g != "" {
		kind += "." + g
	}
	return &listwatch.Error{
		Code: listwatch.Invalid, Status: http.StatusUnprocessableEntity, Reason: "Invalid",
		Message: fmt.Sprintf("%s %q is invalid: %s", kind, name, list),
		Details: &listwatch.Details{Name: name, Group: r.Group(), Kind: r.Kind, Causes: causes},
	}
}
