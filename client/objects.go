package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/listwatch/listwatch"
)

// Get returns the newest object at key, as the server sent it.
//
// The server of Get and of the writes is a Kubernetes API server, package kubeapi, package
// crudserver, or another server with the same verbs. Errors are [*listwatch.Error] with the code,
// reason and causes of the server's Status, such as NotFound, AlreadyExists, Conflict, or Invalid.
// Errors of the context are returned unchanged. A write that fails with Unavailable may have been
// performed nevertheless. The same holds for a write that fails with Unsupported because the server
// redirected it to a GET, for example with 303.
func (r *Remote) Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
	return r.exchange(ctx, objectRequest{op: "get", method: http.MethodGet, key: key})
}

// Create implements [listwatch.Writer]; see also Get.
func (r *Remote) Create(ctx context.Context, data []byte) (*listwatch.Object, error) {
	o, err := r.parseObject(data)
	if err != nil {
		return nil, err
	}
	return r.exchange(ctx, objectRequest{
		op: "create", method: http.MethodPost, key: o.Key, body: o.Data, contentType: r.bodyType(),
	})
}

// Replace implements [listwatch.Writer]; see also Get.
func (r *Remote) Replace(ctx context.Context, key listwatch.Key, data []byte) (*listwatch.Object, error) {
	return r.exchange(ctx, objectRequest{
		op: "replace", method: http.MethodPut, key: key, body: data, contentType: r.bodyType(),
	})
}

// Delete implements [listwatch.Writer]; see also Get. The object is nil if the server responds with
// something else, such as the Status of a Kubernetes API server.
func (r *Remote) Delete(ctx context.Context, key listwatch.Key, p listwatch.Preconditions) (*listwatch.Object, error) {
	q := objectRequest{op: "delete", method: http.MethodDelete, key: key}
	if p != (listwatch.Preconditions{}) {
		var err error
		if q.body, err = listwatch.Encode(deleteOptions(p)); err != nil {
			return nil, err
		}
	}
	return r.exchange(ctx, q)
}

// Patch implements [listwatch.Patcher]; see also Get. The server is a Kubernetes API server or
// package kubeapi.
func (r *Remote) Patch(ctx context.Context, key listwatch.Key, p listwatch.Patch) (*listwatch.Object, error) {
	return r.exchange(ctx, patchRequest(key, p))
}

func patchRequest(key listwatch.Key, p listwatch.Patch) objectRequest {
	q := objectRequest{
		op: "patch", method: http.MethodPatch, key: key, body: p.Data, contentType: string(p.Type), query: url.Values{},
		minimal: p.Minimal,
	}
	if p.FieldManager != "" {
		q.query.Set("fieldManager", p.FieldManager)
	}
	if p.Force {
		q.query.Set("force", "true")
	}
	return q
}

// deleteOptions returns the DeleteOptions of Kubernetes (meta/v1) that require p.
func deleteOptions(p listwatch.Preconditions) any {
	type preconditions struct {
		UID             string `json:"uid,omitempty"`
		ResourceVersion string `json:"resourceVersion,omitempty"`
	}
	required := preconditions{UID: p.UID}
	if p.Version != 0 {
		required.ResourceVersion = p.Version.String()
	}
	return struct {
		Kind          string        `json:"kind"`
		APIVersion    string        `json:"apiVersion"`
		Preconditions preconditions `json:"preconditions"`
	}{"DeleteOptions", "v1", required}
}
