//go:build !race

package lives

import (
	"net/http"
	"strings"
)

// gears is a definition with two versions. Only the storage version v1 has a default.
const gears = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",` +
	`"metadata":{"name":"gears.NAME.example.com"},"spec":{"group":"NAME.example.com","scope":"Namespaced",` +
	`"names":{"kind":"Gear","plural":"gears"},"versions":[` + gearsOfV1 + `,` + gearsOfBeta + `]}}`

const (
	gearsOfV1 = `{"name":"v1","served":true,"storage":true,"subresources":{"status":{},"scale":` +
		`{"specReplicasPath":".spec.teeth","statusReplicasPath":".status.turns"}},"schema":{"openAPIV3Schema":` +
		`{"type":"object","properties":{"spec":{"type":"object","properties":{"teeth":{"type":"integer","maximum":9},` +
		`"material":{"type":"string","default":"steel"}}},"status":{"type":"object","properties":{"turns":` +
		`{"type":"integer"}}}}}}}`
	gearsOfBeta = `{"name":"v1beta1","served":true,"storage":false,"deprecated":true,"schema":{"openAPIV3Schema":` +
		`{"type":"object","properties":{"spec":{"type":"object","properties":{"teeth":{"type":"integer"},` +
		`"material":{"type":"string"},"old":{"type":"string"}}}}}}}`
)

// gear returns a step that sends a request for a gear, or for all if name is empty.
func gear(method, version, name, body string) step {
	s := step{
		method: method, path: strings.TrimSuffix("/apis/NAME.example.com/"+version+"/namespaces/NAME/gears/"+name, "/"),
		body: body, verb: map[string]string{
			http.MethodGet: "get", http.MethodPost: "create", http.MethodPatch: "patch", http.MethodPut: "update",
			http.MethodDelete: "delete",
		}[method],
	}
	if method == http.MethodPatch {
		s.contentType = mergePatch
	}
	return s
}

func createGear(version, name, spec string) step {
	return gear(http.MethodPost, version, "", gearBody(version, name, spec))
}

func gearBody(version, name, spec string) string {
	return `{"apiVersion":"NAME.example.com/` + version + `","kind":"Gear","metadata":{"name":"` + name + `"},"spec":` +
		spec + `}`
}

func applyGear(version, manager, spec string) step {
	s := gear(http.MethodPatch, version, "a", gearBody(version, "a", spec))
	s.verb, s.contentType, s.query = "apply", applyPatch, "fieldManager="+manager
	return s
}

func getGears(version string) step { return gear(http.MethodGet, version, "", "") }

// storedInBeta makes v1beta1 the storage version of gears.
var storedInBeta = step{
	verb: "patch", method: http.MethodPatch, contentType: "application/json-patch+json",
	path: definitionsPath + "/gears.NAME.example.com", body: `[{"op":"replace","path":"/spec/versions/0/storage",` +
		`"value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`,
}

// livesOfVersions are written lives of objects in several versions.
var livesOfVersions = map[string][]step{
	"objects-of-two-versions": {
		define(gears),
		await(createGear("v1beta1", "a", `{"teeth":7,"old":"x"}`)),
		await(createGear("v1", "b", `{"teeth":7,"old":"x"}`)),
		createGear("v1", "c", `{"teeth":10}`),
		createGear("v1beta1", "c", `{"teeth":10}`),
		createGear("v1", "d", `{"teeth":"x"}`),
		gear(http.MethodPost, "v1", "", gearBody("v1beta1", "d", `{}`)),
		getGears("v1"),
		getGears("v1beta1"),
		gear(http.MethodGet, "v1", "a", ""),
		gear(http.MethodGet, "v1beta1", "b", ""),
		gear(http.MethodPatch, "v1beta1", "a", `{"spec":{"old":"y"}}`),
		gear(http.MethodPatch, "v1beta1", "a", `{"spec":{"teeth":8}}`),
		gear(http.MethodPatch, "v1", "c", `{"metadata":{"labels":{"a":"b"}}}`),
		gear(http.MethodPatch, "v1", "a/status", `{"status":{"turns":1}}`),
		gear(http.MethodPatch, "v1beta1", "a/status", `{"status":{"turns":1}}`),
		gear(http.MethodGet, "v1beta1", "a", ""),
		gear(http.MethodPatch, "v1beta1", "a", `{"spec":{"teeth":6}}`),
		gear(http.MethodGet, "v1", "a", ""),
		gear(http.MethodPatch, "v1", "a/scale", `{"spec":{"replicas":5}}`),
		gear(http.MethodGet, "v1beta1", "a/scale", ""),
		gear(http.MethodDelete, "v1beta1", "a", ""),
		gear(http.MethodDelete, "v1beta1", "", ""),
		getGears("v1"),
	},
	"managers-of-two-versions": {
		define(gears),
		await(applyGear("v1beta1", "old", `{"teeth":7,"old":"x"}`)),
		await(applyGear("v1", "new", `{"material":"brass"}`)),
		applyGear("v1", "new", `{"teeth":8}`),
		applyGear("v1beta1", "old", `{"teeth":8}`),
		applyGear("v1", "old", `{"teeth":9}`),
		applyGear("v1beta1", "new", `{"material":"iron"}`),
		gear(http.MethodGet, "v1", "a", ""),
		applyGear("v1beta1", "old", `{}`),
		gear(http.MethodGet, "v1", "a", ""),
	},
	"storage-version-changes": {
		define(gears),
		await(createGear("v1", "a", `{"teeth":7}`)),
		await(createGear("v1beta1", "b", `{"teeth":7}`)),
		storedInBeta,
		await(createGear("v1beta1", "c", `{"teeth":7,"old":"x"}`)),
		await(createGear("v1", "d", `{"teeth":7}`)),
		getGears("v1"),
		getGears("v1beta1"),
		gear(http.MethodPatch, "v1beta1", "a", `{"spec":{"old":"z"}}`),
		gear(http.MethodGet, "v1beta1", "a", ""),
		gear(http.MethodGet, "v1", "a", ""),
		gear(http.MethodDelete, "v1", "a", ""),
	},
}
