package rest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/transport"
)

// VerbOf returns Kubernetes' verb for a request, or "" if there is none. named means that the path
// names one object, or a part of it. watch means that the path or the parameters request a watch;
// it has no effect on a write.
func VerbOf(method string, named, watch bool) string {
	switch method {
	case http.MethodGet, http.MethodHead, transport.MethodQuery:
		switch {
		case watch:
			return "watch"
		case named:
			return "get"
		}
		return "list"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	}
	return ""
}

// IsRead reports whether verb is the verb of a read.
func IsRead(verb string) bool { return verb == "get" || verb == "list" || verb == "watch" }

// Methods returns the methods that have one of the verbs, as in the header Allow.
func Methods(verbs []string) string {
	var methods []string
	if slices.ContainsFunc(verbs, IsRead) {
		methods = []string{http.MethodGet, http.MethodHead, transport.MethodQuery}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if slices.Contains(verbs, VerbOf(method, true, false)) || slices.Contains(verbs, VerbOf(method, false, false)) {
			methods = append(methods, method)
		}
	}
	return strings.Join(methods, ", ")
}
