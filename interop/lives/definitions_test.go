//go:build !race

package lives

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
)

const thingsPath = "/apis/NAME.example.com/v1/namespaces/NAME/things"

// thing returns a definition of the kind Thing with the given plural name, which is things if it is
// empty. Each life has a group of its own.
func thing(plural string) string {
	plural = cmp.Or(plural, "things")
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",`+
		`"metadata":{"name":"%[1]s.NAME.example.com"},"spec":{"group":"NAME.example.com","scope":"Namespaced",`+
		`"names":{"kind":"Thing","plural":"%[1]s"},"versions":%[2]s}}`, plural, versions("v1"))
}

// versions returns the versions of a definition. The first one is the storage version.
func versions(names ...string) string {
	var all []string
	for i, name := range names {
		all = append(all, fmt.Sprintf(`{"name":"%s","served":true,"storage":%t,"subresources":{"status":{}},`+
			`"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`, name,
			i == 0))
	}
	return "[" + strings.Join(all, ",") + "]"
}

func define(definition string) step {
	return step{verb: "create", method: http.MethodPost, path: definitionsPath, body: definition}
}

func createThing(name, metadata string) step {
	if metadata != "" {
		metadata = "," + metadata
	}
	return step{
		verb: "create", method: http.MethodPost, path: thingsPath,
		body: `{"apiVersion":"NAME.example.com/v1","kind":"Thing","metadata":{"name":"` + name + `"` + metadata + `}}`,
	}
}

// lateThing tries to create a thing whose definition is being deleted.
var lateThing = func() step {
	s := createThing("late", "")
	s.query = "dryRun=All"
	return s
}()

func patchThing(name, body string) step {
	return step{
		verb: "patch", method: http.MethodPatch, path: thingsPath + "/" + name, contentType: mergePatch,
		body: body,
	}
}

// thingInV2 returns a request for the version v2.
func thingInV2(s step) step {
	s.path, s.body = strings.Replace(s.path, "/v1/", "/v2/", 1), strings.Replace(s.body, "/v1\"", "/v2\"", 1)
	return s
}

// watchThings opens a watch of things, and watchEnds waits until the API servers end it.
var (
	watchThings = step{verb: "watch", method: http.MethodGet, path: thingsPath}
	watchEnds   = step{verb: "end of watch"}
)

var getThings = step{verb: "list", method: http.MethodGet, path: thingsPath}
