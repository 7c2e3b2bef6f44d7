package kubeapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/watchserver"
)

// serveOpenAPI answers the documents that kubectl reads before it writes or explains. It returns false where r is for none of them.
func (h *Handler) serveOpenAPI(w http.ResponseWriter, r *http.Request) (found bool, err error) {
	parts, ok := segments(r.URL.EscapedPath())
	if !ok || len(parts) < 2 || parts[0] != "openapi" {
		return false, nil
	}
	var document any
	switch {
	case len(parts) == 2 && parts[1] == "v2":
		document = h.openAPI2()
	case len(parts) == 2 && parts[1] == "v3":
		document = h.openAPIIndex()
	case len(parts) == 4 && parts[1] == "v3" && parts[2] == "api":
		document, found = h.openAPI3("", parts[3])
	case len(parts) == 5 && parts[1] == "v3" && parts[2] == "apis":
		document, found = h.openAPI3(parts[3], parts[4])
	}
	if document == nil || len(parts) > 2 && !found {
		return false, nil
	}
	if err := onlyGet(w, r); err != nil {
		return true, err
	}
	if err := watchserver.AcceptsJSON(openAPIAccept(r.Header.Values("Accept"))); err != nil {
		return true, err
	}
	watchserver.WriteJSON(w, r, http.StatusOK, document)
	return true, nil
}

// openAPIAccept returns what is acceptable without the names of Protocol Buffers' forms, which kubectl asks for first: there is an @
// in them, which no media type may have (rfc9110#section-8.3.1), and we have none of them.
func openAPIAccept(accept []string) []string {
	var others []string
	for _, value := range accept {
		for element := range strings.SplitSeq(value, ",") {
			if strings.Contains(element, "spec.v2@v1.0+protobuf") || strings.Contains(element, "spec.v3@v1.0+protobuf") {
				element = "application/x-protobuf"
			}
			others = append(others, element)
		}
	}
	return others
}

// A jsonObject is a JSON object in the making: documents of OpenAPI have too many forms to declare.
type jsonObject map[string]any

// groupVersions returns the groups and versions there are, each once.
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

// openAPIIndex says where the documents of version 3 are, under URLs that change with them ("The Kubernetes API", OpenAPI V3).
func (h *Handler) openAPIIndex() jsonObject {
	paths := jsonObject{}
	for _, gv := range h.groupVersions() {
		document, _ := h.openAPI3(gv.Group, gv.Version)
		root := gv.root()
		paths[strings.TrimPrefix(root, "/")] = jsonObject{"serverRelativeURL": "/openapi/v3" + root + "?hash=" + hashOf(document)}
	}
	return jsonObject{"paths": paths}
}

func hashOf(document jsonObject) string {
	data, err := json.Marshal(document)
	if err != nil {
		panic("kubeapi: a document of strings can't fail to encode: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return strings.ToUpper(hex.EncodeToString(sum[:16]))
}

// openAPI3 returns the document of a group at a version (OpenAPI 3.0.0).
func (h *Handler) openAPI3(group, version string) (jsonObject, bool) {
	paths, schemas := jsonObject{}, jsonObject{metaSchema: objectMetaSchema()}
	for _, r := range h.of(group, version) {
		schemas[r.schemaName()] = r.schema("#/components/schemas/")
		r.addPaths(paths, openAPI3Operation)
	}
	return jsonObject{
		"openapi": "3.0.0", "info": openAPIInfo(), "paths": paths, "components": jsonObject{"schemas": schemas},
	}, len(paths) > 0
}

// openAPI2 returns the document of everything (Swagger 2.0).
func (h *Handler) openAPI2() jsonObject {
	paths, schemas := jsonObject{}, jsonObject{metaSchema: objectMetaSchema()}
	for _, s := range h.resources {
		schemas[s.schemaName()] = s.schema("#/definitions/")
		s.addPaths(paths, openAPI2Operation)
	}
	return jsonObject{"swagger": "2.0", "info": openAPIInfo(), "paths": paths, "definitions": schemas}
}

func openAPIInfo() jsonObject {
	return jsonObject{"title": "listwatch", "version": versionInfo()["gitVersion"]}
}

// An operation writes one operation of a path in one version of OpenAPI. consumes are the media types of its body, if it has one.
type operation func(r Resource, action string, consumes ...string) jsonObject

// addPaths adds the paths of r with the operations that clients look for: whether patches can be validated, and by which paths a
// kind can be had.
func (r Resource) addPaths(paths jsonObject, op operation) {
	all, one := r.Path(""), r.Path("{namespace}")+"/{name}"
	paths[all] = jsonObject{"get": op(r, "list")}
	// For what is in no namespace, that is the same path.
	paths[r.Path("{namespace}")] = jsonObject{"get": op(r, "list"), "post": op(r, "post", "application/json")}
	for _, path := range []string{one, one + "/status"} {
		paths[path] = jsonObject{
			"get": op(r, "get"), "put": op(r, "put", "application/json"), "patch": op(r, "patch", jsonPatchType, mergePatchType),
		}
	}
	paths[one].(jsonObject)["delete"] = op(r, "delete")
}

func (r Resource) operation(action string, write bool, parameter func(name string) jsonObject) jsonObject {
	parameters := []jsonObject{}
	if write {
		for _, name := range []string{"dryRun", "fieldManager", "fieldValidation"} {
			parameters = append(parameters, parameter(name))
		}
	}
	return jsonObject{
		"x-kubernetes-action": action, "x-kubernetes-group-version-kind": r.groupVersionKind(),
		"parameters": parameters,
	}
}

func openAPI3Operation(r Resource, action string, consumes ...string) jsonObject {
	op := r.operation(action, len(consumes) > 0, func(name string) jsonObject {
		return jsonObject{"name": name, "in": "query", "schema": jsonObject{"type": "string", "uniqueItems": true}}
	})
	schema := jsonObject{"schema": jsonObject{"$ref": "#/components/schemas/" + r.schemaName()}}
	op["responses"] = jsonObject{"200": jsonObject{"description": "OK", "content": jsonObject{"application/json": schema}}}
	if len(consumes) > 0 {
		content := jsonObject{}
		for _, mediaType := range consumes {
			content[mediaType] = jsonObject{}
		}
		op["requestBody"] = jsonObject{"required": true, "content": content}
	}
	return op
}

func openAPI2Operation(r Resource, action string, consumes ...string) jsonObject {
	op := r.operation(action, len(consumes) > 0, func(name string) jsonObject {
		return jsonObject{"name": name, "in": "query", "type": "string", "uniqueItems": true}
	})
	op["produces"] = []string{"application/json"}
	op["responses"] = jsonObject{"200": jsonObject{"description": "OK", "schema": jsonObject{"$ref": "#/definitions/" + r.schemaName()}}}
	if len(consumes) > 0 {
		op["consumes"] = consumes
	}
	return op
}
