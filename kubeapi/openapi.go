package kubeapi

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/kubeapi/internal/openapi"
)

// openAPI holds the OpenAPI documents by path. kubectl reads the documents before it writes or
// explains objects. The first request builds them.
type openAPI struct {
	once      sync.Once
	documents map[string]openapi.Document
}

// serveOpenAPI serves the OpenAPI documents. found is false for other paths.
func (h *Handler) serveOpenAPI(w http.ResponseWriter, r *http.Request, _ *apihttp.Admitted) (found bool, err error) {
	if !strings.HasPrefix(r.URL.Path, "/openapi/") {
		return false, nil
	}
	h.openAPI.once.Do(func() { h.openAPI.documents = h.openAPIDocuments() })
	d, found := h.openAPI.documents[strings.TrimSuffix(r.URL.Path, "/")]
	if !found {
		return false, nil
	}
	if err := requireGet(r); err != nil {
		return true, err
	}
	return true, d.Serve(w, r)
}

// openAPIDocuments builds one document of all resources for version 2. For version 3 it
// builds one document per group and version, and an index of their URLs, which contain the
// hashes ("The Kubernetes API", OpenAPI V3).
func (h *Handler) openAPIDocuments() map[string]openapi.Document {
	paths := openapi.Map{}
	all := map[string]openapi.Document{"/openapi/v2": openapi.NewDocument(h.openAPI2())}
	for _, gv := range h.groupVersions() {
		d, path := openapi.NewDocument(h.openAPI3(gv.Group, gv.Version)), "/openapi/v3"+gv.rootPath()
		all[path] = d
		paths[strings.TrimPrefix(gv.rootPath(), "/")] = openapi.Map{"serverRelativeURL": d.Path(path)}
	}
	all["/openapi/v3"] = openapi.NewDocument(openapi.Map{"paths": paths})
	return all
}

// groupVersions returns each pair of group and version once.
func (h *Handler) groupVersions() []Resource {
	var all []Resource
	for _, s := range h.resources {
		gv := Resource{Group: s.Group, Version: s.Version}
		if !slices.ContainsFunc(all, func(r Resource) bool { return r.APIVersion() == gv.APIVersion() }) {
			all = append(all, gv)
		}
	}
	return all
}

// openAPI3 returns the document of a group at a version (OpenAPI 3.0.0).
func (h *Handler) openAPI3(group, version string) openapi.Map {
	paths, d := openapi.Map{}, newDefinitions(openapi.V3References)
	for _, r := range h.resourcesIn(group, version) {
		addResource(d, r)
		r.addPaths(paths, openAPI3Operation)
	}
	return openapi.Map{
		"openapi": "3.0.0", "info": openAPIInfo(), "paths": paths, "components": openapi.Map{"schemas": d.All},
	}
}

// openAPI2 returns the document of all resources (Swagger 2.0).
func (h *Handler) openAPI2() openapi.Map {
	paths, d := openapi.Map{}, newDefinitions(openapi.V2References)
	for _, s := range h.resources {
		addResource(d, s.Resource)
		s.addPaths(paths, openAPI2Operation)
	}
	return openapi.Map{"swagger": "2.0", "info": openAPIInfo(), "paths": paths, "definitions": d.All}
}

func openAPIInfo() openapi.Map {
	return openapi.Map{"title": "listwatch", "version": versionInfo()["gitVersion"]}
}

// An operation is a function that describes one operation on r for one version of OpenAPI. consumes
// are the media types of the request body, if there is one.
type operation func(r Resource, action string, consumes ...string) openapi.Map

// addPaths adds the paths of r with the operations that clients search for: they show which
// patches and validations are supported, and at which paths a kind is served.
func (r Resource) addPaths(paths openapi.Map, op operation) {
	all, one := r.Path(""), r.Path("{namespace}")+"/{name}"
	paths[all] = openapi.Map{"get": op(r, "list")}
	// The path of a cluster-scoped resource has no namespace. Both paths are then the same, and
	// this entry replaces the one above.
	paths[r.Path("{namespace}")] = openapi.Map{"get": op(r, "list"), "post": op(r, "post", "application/json")}
	readAndWrite := func(of Resource) openapi.Map {
		return openapi.Map{
			"get": op(of, "get"), "put": op(of, "put", "application/json"),
			"patch": op(of, "patch", patchTypes(r.patchSchema(""))...),
		}
	}
	paths[one] = readAndWrite(r)
	if r.hasSubresource("status") {
		paths[one+"/status"] = readAndWrite(r)
	}
	if r.Scale != nil {
		paths[one+"/scale"] = readAndWrite(scaleResource)
	}
	paths[one].(openapi.Map)["delete"] = op(r, "delete")
	if r.ReadOnly {
		for _, path := range []string{r.Path("{namespace}"), one, one + "/status", one + "/scale"} {
			if ops, ok := paths[path].(openapi.Map); ok {
				paths[path] = openapi.Map{"get": ops["get"]}
			}
		}
	}
}

func (r Resource) operation(action string, write bool, parameter func(name string) openapi.Map) openapi.Map {
	parameters := []openapi.Map{}
	if write {
		for _, name := range []string{"dryRun", "fieldManager", "fieldValidation"} {
			parameters = append(parameters, parameter(name))
		}
	}
	return openapi.Map{
		"x-kubernetes-action": action, "x-kubernetes-group-version-kind": r.groupVersionKind(),
		"parameters": parameters,
	}
}

func openAPI3Operation(r Resource, action string, consumes ...string) openapi.Map {
	op := r.operation(action, len(consumes) > 0, func(name string) openapi.Map {
		parameter := openapi.Map{"type": "string", "uniqueItems": true}
		return openapi.Map{"name": name, "in": "query", "schema": parameter}
	})
	body := openapi.Map{"schema": openapi.Map{"$ref": openapi.V3References + r.schemaName()}}
	response := openapi.Map{"description": "OK", "content": openapi.Map{"application/json": body}}
	op["responses"] = openapi.Map{"200": response}
	if len(consumes) > 0 {
		content := openapi.Map{}
		for _, mediaType := range consumes {
			content[mediaType] = openapi.Map{}
		}
		op["requestBody"] = openapi.Map{"required": true, "content": content}
	}
	return op
}

func openAPI2Operation(r Resource, action string, consumes ...string) openapi.Map {
	op := r.operation(action, len(consumes) > 0, func(name string) openapi.Map {
		return openapi.Map{"name": name, "in": "query", "type": "string", "uniqueItems": true}
	})
	op["produces"] = []string{"application/json"}
	op["responses"] = openapi.Map{
		"200": openapi.Map{"description": "OK", "schema": openapi.Map{"$ref": openapi.V2References + r.schemaName()}},
	}
	if len(consumes) > 0 {
		op["consumes"] = consumes
	}
	return op
}
