package kubeapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/apihttp"
)

// openAPI holds the OpenAPI documents by path. kubectl reads them before it writes or
// explains objects. They are built on the first request.
type openAPI struct {
	once      sync.Once
	documents map[string]document
}

// A document is a JSON body with its hash.
type document struct {
	body []byte
	hash string
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
	accept := r.Header.Values("Accept")
	if err := apihttp.RequireJSON(framing.ParseAccept(replaceProtobufTypes(accept))); err != nil {
		if strings.HasPrefix(r.URL.Path, "/openapi/v2") && acceptsOpenAPI2Protobuf(accept) {
			serveOpenAPI2Protobuf(w, r)
			return true, nil
		}
		return true, err
	}
	d.serve(w, r)
	return true, nil
}

// serve responds with d, or with 304 if the client already has it. A URL that contains the
// hash always returns the same document. For other URLs clients must revalidate.
func (d document) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-cache, private")
	if apihttp.QueryOf(r).Get("hash") == d.hash {
		h.Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	// The tag is weak because it is the same for compressed and uncompressed bodies
	// (rfc9110#section-8.8.1).
	h.Set("ETag", `W/"`+d.hash+`"`)
	h.Add("Vary", "Accept")
	if d.matchesETag(r.Header.Values("If-None-Match")) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	apihttp.WriteBody(w, r, http.StatusOK, d.body)
}

// matchesETag reports whether If-None-Match contains the entity tag of d
// (rfc9110#section-13.1.2).
func (d document) matchesETag(tags []string) bool {
	for _, value := range tags {
		for tag := range strings.SplitSeq(value, ",") {
			tag = strings.TrimSpace(tag)
			if tag == "*" || strings.TrimPrefix(tag, "W/") == `"`+d.hash+`"` {
				return true
			}
		}
	}
	return false
}

func newDocument(v jsonMap) document {
	body, err := json.Marshal(v)
	if err != nil {
		panic("kubeapi: a document of strings always encodes: " + err.Error())
	}
	sum := sha256.Sum256(body)
	return document{append(body, '\n'), strings.ToUpper(hex.EncodeToString(sum[:16]))}
}

// openAPIDocuments builds one document of all resources for version 2. For version 3 it
// builds one document per group and version, and an index of their URLs, which contain the
// hashes ("The Kubernetes API", OpenAPI V3).
func (h *Handler) openAPIDocuments() map[string]document {
	paths := jsonMap{}
	all := map[string]document{"/openapi/v2": newDocument(h.openAPI2())}
	for _, gv := range h.groupVersions() {
		d, path := newDocument(h.openAPI3(gv.Group, gv.Version)), "/openapi/v3"+gv.rootPath()
		all[path] = d
		paths[strings.TrimPrefix(gv.rootPath(), "/")] = jsonMap{"serverRelativeURL": path + "?hash=" + d.hash}
	}
	all["/openapi/v3"] = newDocument(jsonMap{"paths": paths})
	return all
}

// replaceProtobufTypes replaces kubectl's media types for Protocol Buffers with
// application/x-protobuf. kubectl's types contain an @, which is not valid in a media type
// (rfc9110#section-8.3.1), so the Accept header could not be parsed. kubectl prefers these
// types, but a client that also accepts JSON gets JSON, because this server's document in
// Protocol Buffers is almost empty.
func replaceProtobufTypes(accept []string) []string {
	var others []string
	for _, value := range accept {
		for element := range strings.SplitSeq(value, ",") {
			if strings.Contains(element, "spec.v2@v1.0+protobuf") ||
				strings.Contains(element, "spec.v3@v1.0+protobuf") {
				element = "application/x-protobuf"
			}
			others = append(others, element)
		}
	}
	return others
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
func (h *Handler) openAPI3(group, version string) jsonMap {
	paths, d := jsonMap{}, newDefinitions("#/components/schemas/")
	for _, r := range h.resourcesIn(group, version) {
		d.addResource(r)
		r.addPaths(paths, openAPI3Operation)
	}
	return jsonMap{
		"openapi": "3.0.0", "info": openAPIInfo(), "paths": paths, "components": jsonMap{"schemas": d.all},
	}
}

// openAPI2 returns the document of all resources (Swagger 2.0).
func (h *Handler) openAPI2() jsonMap {
	paths, d := jsonMap{}, newDefinitions(openAPI2Refs)
	for _, s := range h.resources {
		d.addResource(s.Resource)
		s.addPaths(paths, openAPI2Operation)
	}
	return jsonMap{"swagger": "2.0", "info": openAPIInfo(), "paths": paths, "definitions": d.all}
}

func openAPIInfo() jsonMap {
	return jsonMap{"title": "listwatch", "version": versionInfo()["gitVersion"]}
}

// An operation is a function that describes one operation on r for one version of OpenAPI. consumes
// are the media types of the request body, if there is one.
type operation func(r Resource, action string, consumes ...string) jsonMap

// addPaths adds the paths of r with the operations that clients search for: they show which
// patches and validations are supported, and at which paths a kind is served.
func (r Resource) addPaths(paths jsonMap, op operation) {
	all, one := r.Path(""), r.Path("{namespace}")+"/{name}"
	paths[all] = jsonMap{"get": op(r, "list")}
	// The path of a cluster-scoped resource has no namespace. Both paths are then the same, and
	// this entry replaces the one above.
	paths[r.Path("{namespace}")] = jsonMap{"get": op(r, "list"), "post": op(r, "post", "application/json")}
	readAndWrite := func(of Resource) jsonMap {
		return jsonMap{
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
	paths[one].(jsonMap)["delete"] = op(r, "delete")
	if r.ReadOnly {
		for _, path := range []string{r.Path("{namespace}"), one, one + "/status", one + "/scale"} {
			if ops, ok := paths[path].(jsonMap); ok {
				paths[path] = jsonMap{"get": ops["get"]}
			}
		}
	}
}

func (r Resource) operation(action string, write bool, parameter func(name string) jsonMap) jsonMap {
	parameters := []jsonMap{}
	if write {
		for _, name := range []string{"dryRun", "fieldManager", "fieldValidation"} {
			parameters = append(parameters, parameter(name))
		}
	}
	return jsonMap{
		"x-kubernetes-action": action, "x-kubernetes-group-version-kind": r.groupVersionKind(),
		"parameters": parameters,
	}
}

func openAPI3Operation(r Resource, action string, consumes ...string) jsonMap {
	op := r.operation(action, len(consumes) > 0, func(name string) jsonMap {
		return jsonMap{"name": name, "in": "query", "schema": jsonMap{"type": "string", "uniqueItems": true}}
	})
	schema := jsonMap{"schema": jsonMap{"$ref": "#/components/schemas/" + r.schemaName()}}
	op["responses"] = jsonMap{"200": jsonMap{"description": "OK", "content": jsonMap{"application/json": schema}}}
	if len(consumes) > 0 {
		content := jsonMap{}
		for _, mediaType := range consumes {
			content[mediaType] = jsonMap{}
		}
		op["requestBody"] = jsonMap{"required": true, "content": content}
	}
	return op
}

func openAPI2Operation(r Resource, action string, consumes ...string) jsonMap {
	op := r.operation(action, len(consumes) > 0, func(name string) jsonMap {
		return jsonMap{"name": name, "in": "query", "type": "string", "uniqueItems": true}
	})
	op["produces"] = []string{"application/json"}
	op["responses"] = jsonMap{
		"200": jsonMap{"description": "OK", "schema": jsonMap{"$ref": openAPI2Refs + r.schemaName()}},
	}
	if len(consumes) > 0 {
		op["consumes"] = consumes
	}
	return op
}
