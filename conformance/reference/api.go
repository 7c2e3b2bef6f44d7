package reference

import (
	"io"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchserver"
)

const (
	apiPath        = "/apis/conformance.example.com/v1"
	collectionPath = apiPath + "/things"
	// maxBody is the maximum size of an object that a client sends, in bytes.
	maxBody = 3 << 20
)

// thingSpec describes the collection that the cases test.
var thingSpec = store.CollectionSpec{
	APIVersion: "conformance.example.com/v1", Kind: "Thing", Plural: "things", Namespaced: true,
	Fields: []string{"spec.phase"},
}

// secondSpec describes another collection of the same database, for unions of both collections.
var secondSpec = store.CollectionSpec{
	APIVersion: "conformance.example.com/v1", Kind: "Second", Plural: "seconds", Namespaced: true,
}

// An api serves the collection at its paths in Kubernetes' API with the operations that cases need:
// list, watch, get, create and patch, with authentication.
type api struct {
	server  watchserver.Server
	source  listwatch.Source
	objects *store.Collection // nil if the collection is read-only
	access  harness.Access
}

// ServeHTTP implements [http.Handler].
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.server.Gate(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := a.serve(w, r); err != nil {
			watchserver.WriteError(w, r, err)
		}
	})).ServeHTTP(w, r)
}

func (a *api) serve(w http.ResponseWriter, r *http.Request) error {
	user, err := authorize(a.access, r)
	if err != nil {
		return err
	}
	r = r.WithContext(watchserver.WithUser(r.Context(), user))
	key, ok := parsePath(r.URL.Path)
	switch {
	case !ok:
		return &listwatch.Error{Code: listwatch.NotFound, Message: "the server has no path " + r.URL.Path}
	case a.objects == nil && key.Name != "":
		return &listwatch.Error{Code: listwatch.NotFound, Message: "the server has no path " + r.URL.Path}
	case key.Name != "" && r.Method == http.MethodGet:
		return a.get(w, r, key)
	case key.Name != "" && r.Method == http.MethodPatch:
		return a.patch(w, r, key)
	case a.objects != nil && key.Namespace != "" && key.Name == "" && r.Method == http.MethodPost:
		return a.create(w, r)
	}
	// Serve handles lists and watches. It responds to other methods with 405.
	a.server.Serve(w, r, watchserver.Endpoint{
		Source: a.source, Selection: listwatch.Selection{Namespace: key.Namespace},
	})
	return nil
}

// parsePath returns the namespace and the name in a path. Both are empty for the whole collection.
func parsePath(path string) (key listwatch.Key, ok bool) {
	if path == collectionPath {
		return key, true
	}
	rest, ok := strings.CutPrefix(path, apiPath+"/namespaces/")
	if !ok {
		return key, false
	}
	parts := strings.Split(rest, "/")
	if len(parts) == 3 {
		key.Name = parts[2]
		ok = key.Name != ""
	}
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[1] != "things" || !ok {
		return key, false
	}
	key.Namespace = parts[0]
	return key, true
}

func (a *api) get(w http.ResponseWriter, r *http.Request, key listwatch.Key) error {
	object, err := a.objects.Get(r.Context(), key)
	if err != nil {
		return err
	}
	writeObject(w, http.StatusOK, object)
	return nil
}

func (a *api) patch(w http.ResponseWriter, r *http.Request, key listwatch.Key) error {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return &listwatch.Error{Code: listwatch.Invalid, Op: "read the body", Err: err}
	}
	object, err := a.objects.Patch(r.Context(), key, listwatch.Patch{Type: listwatch.MergePatch, Data: data})
	if err != nil {
		return err
	}
	writeObject(w, http.StatusOK, object)
	return nil
}

func (a *api) create(w http.ResponseWriter, r *http.Request) error {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return &listwatch.Error{Code: listwatch.Invalid, Op: "read the body", Err: err}
	}
	object, err := a.objects.Create(r.Context(), data)
	if err != nil {
		return err
	}
	writeObject(w, http.StatusCreated, object)
	return nil
}

// writeObject writes the bytes of an object as they were stored.
func writeObject(w http.ResponseWriter, code int, object *listwatch.Object) {
	w.Header().Set("Content-Type", harness.JSONMediaType)
	w.WriteHeader(code)
	_, _ = w.Write(object.Data) // an error means that the client has left
}
