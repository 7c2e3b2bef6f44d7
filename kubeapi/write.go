package kubeapi

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchserver"
)

// create handles a POST to a collection.
func (h *Handler) create(w http.ResponseWriter, r *http.Request, c resourceRequest) error {
	return h.write(w, r, c, http.StatusCreated, func(ctx context.Context, to *store.Collection, data []byte) (*listwatch.Object, error) {
		return to.CreateIn(ctx, c.namespace, data)
	})
}

// replace handles a PUT to an object. metadata.resourceVersion and metadata.uid in the body
// are preconditions.
func (h *Handler) replace(w http.ResponseWriter, r *http.Request, c resourceRequest) error {
	return h.write(w, r, c, http.StatusOK, func(ctx context.Context, to *store.Collection, data []byte) (*listwatch.Object, error) {
		if c.subresource == "" {
			return to.Replace(ctx, c.key(), data)
		}
		// A body without a name may be a mistake and would empty the subresource.
		if name := metadataString(data, "name"); name != c.name {
			return nil, c.nameMismatch("name", name, c.name)
		}
		if namespace := metadataString(data, "namespace"); namespace != "" && namespace != c.namespace {
			return nil, c.nameMismatch("namespace", namespace, c.namespace)
		}
		return c.update(ctx, to, func([]byte) ([]byte, error) { return data, nil })
	})
}

// write reads and checks the object in the request body, calls do to store it, and responds
// with the result. The data passed to do is compact JSON.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, c resourceRequest, code int, do func(ctx context.Context, to *store.Collection, data []byte) (*listwatch.Object, error)) error {
	to, validation, err := c.writeTarget(r)
	if err != nil {
		return err
	}
	data, err := h.readObject(w, r)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		return &listwatch.Error{Code: listwatch.Invalid, Message: "the request body is empty; it must contain the object"}
	}
	if data, err = compact(data); err != nil {
		return &listwatch.Error{Code: listwatch.Invalid, Message: "the object must be JSON", Err: err}
	}
	if data, err = c.applyFieldValidation(w, validation, data); err != nil {
		return err
	}
	if err := c.checkTypes(data); err != nil {
		return err
	}
	o, err := do(r.Context(), to, data)
	if err != nil {
		return err
	}
	err = c.writeObject(w, r, code, o)
	h.wrote(r, c, to, o)
	return err
}

// patch handles a PATCH of an object.
func (h *Handler) patch(w http.ResponseWriter, r *http.Request, c resourceRequest) error {
	to, validation, err := c.writeTarget(r)
	if err != nil {
		return err
	}
	data, err := h.readBody(w, r)
	if err != nil {
		return err
	}
	p, err := readPatch(r.Header.Get("Content-Type"), data, c.patchSchema(), func(patch []byte) ([]byte, error) {
		return c.applyFieldValidation(w, validation, patch)
	})
	if err != nil {
		return err
	}
	o, err := c.update(r.Context(), to, c.withTypeCheck(h.withSizeLimit(p)))
	if err != nil {
		return err
	}
	err = c.writeObject(w, r, http.StatusOK, o)
	h.wrote(r, c, to, o)
	return err
}

// withSizeLimit makes p fail if its result exceeds the limit for bodies, so that repeated
// patches cannot make an object larger than a client could send in one request.
func (h *Handler) withSizeLimit(p patchFunc) patchFunc {
	limit := h.bodyBytes()
	if limit < 0 {
		return p
	}
	return func(doc []byte) ([]byte, error) {
		out, err := p(doc)
		if err == nil && int64(len(out)) > limit {
			return nil, watchserver.BodyTooLarge(limit)
		}
		return out, err
	}
}

// checkTypes checks the types of the known fields of data, which is compact JSON. The types
// of the metadata are always known; see [store.CollectionSpec.CheckTypes].
func (c resourceRequest) checkTypes(data []byte) error {
	if c.subresource == "scale" {
		return scaleResource.CollectionSpec().CheckTypes(data)
	}
	if err := c.collection.Spec().CheckTypes(data); err != nil {
		return err
	}
	return c.Schema.Check(data)
}

// withTypeCheck makes p fail if its result has fields of a wrong type.
func (c resourceRequest) withTypeCheck(p patchFunc) patchFunc {
	return func(doc []byte) ([]byte, error) {
		out, err := p(doc)
		if err != nil {
			return nil, err
		}
		if err := c.checkTypes(out); err != nil {
			return nil, inapplicablePatch(err)
		}
		return out, nil
	}
}

// update applies p to the object, or to the part of it that the subresource names. If p
// sets a resourceVersion or uid, this is a precondition, as in Kubernetes.
func (c resourceRequest) update(ctx context.Context, to *store.Collection, p patchFunc) (*listwatch.Object, error) {
	if c.subresource == "scale" {
		return c.updateScale(ctx, to, p)
	}
	return to.Update(ctx, c.key(), store.Preconditions{}, func(old *listwatch.Object) ([]byte, error) {
		// Another program that writes to the database may have stored duplicate members.
		doc, _ := rawjson.DropDuplicates(old.Data)
		next, err := p(doc)
		if err != nil {
			return nil, err
		}
		if err := c.checkIdentity(old, next); err != nil {
			return nil, err
		}
		if c.subresource == "status" {
			return withStatus(doc, next)
		}
		return next, nil
	})
}

// checkIdentity returns an error if the name, namespace, UID or version of the new object,
// next, differs from the same member of old. It ignores members that are missing in next. The
// types of the members of next have already been checked.
func (c resourceRequest) checkIdentity(old *listwatch.Object, next []byte) error {
	for _, name := range []string{"name", "namespace"} {
		if want, got := metadataString(old.Data, name), metadataString(next, name); got != "" && got != want {
			return c.nameMismatch(name, got, want)
		}
	}
	for _, name := range []string{"uid", "resourceVersion"} {
		got := metadataString(next, name)
		if got == "" || got == metadataString(old.Data, name) || name == "resourceVersion" && got == "0" {
			continue
		}
		return c.conflict(old, fmt.Sprintf("metadata.%s differs; "+
			"the object has been modified; please apply your changes to the latest version and try again", name))
	}
	return nil
}

func (c resourceRequest) nameMismatch(member, got, want string) error {
	return &listwatch.Error{
		Code: listwatch.Invalid, Message: fmt.Sprintf("the %s of the object (%s) must match the %s in the URL (%s)", member, got, member, want),
	}
}

func (c resourceRequest) conflict(old *listwatch.Object, why string) error {
	return &listwatch.Error{
		Code:    listwatch.Conflict,
		Message: fmt.Sprintf("Operation cannot be fulfilled on %s %q: %s", c.QualifiedName(), old.Key.Name, why),
		Details: &listwatch.Details{Name: old.Key.Name, Group: c.Group, Kind: c.Plural},
	}
}

// metadataString returns a string of the metadata, or "" if there is none.
func metadataString(doc []byte, name string) string {
	s, err := rawjson.String(rawjson.Lookup(doc, "metadata", name))
	if err != nil {
		return ""
	}
	return s
}

// withStatus returns the object in old, but with the status of the object in next. Both are compact
// JSON.
func withStatus(old, next []byte) ([]byte, error) {
	if len(next) == 0 || next[0] != '{' {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "the object must be a JSON object"}
	}
	members, err := rawjson.Split(old)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Corrupt, Message: "the stored object is invalid", Err: err}
	}
	isStatus := func(m rawjson.Member) bool { return m.Name == "status" }
	status := rawjson.Lookup(next, "status")
	i := slices.IndexFunc(members, isStatus)
	switch {
	case status == nil:
		members = slices.DeleteFunc(members, isStatus)
	case i >= 0:
		members[i].Value = status
	default:
		members = append(members, rawjson.Member{Name: "status", Key: []byte(`"status"`), Value: status})
	}
	m := objectWriter{out: append(make([]byte, 0, len(old)+len(status)), '{')}
	for _, member := range members {
		m.member(member.Key, member.Value)
	}
	return append(m.out, '}'), nil
}

// writeTarget returns the collection to write to, or its dry run, and the validation of the
// body. It rejects invalid query parameters before anything is written. Field managers are
// not tracked.
func (c resourceRequest) writeTarget(r *http.Request) (*store.Collection, fieldValidation, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, "", &listwatch.Error{Code: listwatch.Invalid, Message: "the query of the URL is invalid", Err: err}
	}
	validation, err := readFieldValidation(q)
	if err != nil {
		return nil, "", err
	}
	to, err := c.collection.WithDryRun(q["dryRun"])
	return to, validation, err
}
