package crudserver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// create handles a POST to a collection. If the path has no namespace, the namespace in the object
// is used.
func (c call) create(w http.ResponseWriter, r *http.Request) error {
	to, data, err := c.readWrite(w, r)
	if err != nil {
		return err
	}
	o, err := to.CreateIn(r.Context(), c.Key.Namespace, data)
	if err != nil {
		return err
	}
	w.Header().Set("Location", c.pathOf(o.Key))
	c.respond(w, r, http.StatusCreated, to, o)
	return nil
}

// update handles a PUT of an object, or a PATCH of an object with a merge patch (rfc7396).
func (c call) update(w http.ResponseWriter, r *http.Request) error {
	to, data, err := c.readWrite(w, r)
	if err != nil {
		return err
	}
	version, err := ifMatch(r)
	if err != nil {
		return err
	}
	var o *listwatch.Object
	required := listwatch.Preconditions{Version: version}
	if c.Verb == "patch" {
		p := listwatch.Patch{Type: listwatch.MergePatch, Data: data}
		o, err = to.PatchIf(r.Context(), c.Key, required, p, c.bodyBytes())
	} else {
		o, err = to.ReplaceIf(r.Context(), c.Key, required, data)
	}
	if err != nil {
		return asPreconditionFailed(err, version)
	}
	c.respond(w, r, http.StatusOK, to, o)
	return nil
}

// delete handles a DELETE of an object. It responds with the last state of the object, which has a
// deletionTimestamp if finalizers delay the deletion. The body is empty or holds the
// preconditions, as in the DeleteOptions of Kubernetes.
func (c call) delete(w http.ResponseWriter, r *http.Request) error {
	from, data, err := c.readWrite(w, r)
	if err != nil {
		return err
	}
	version, err := ifMatch(r)
	if err != nil {
		return err
	}
	p, stages, err := readDeleteOptions(data)
	if err != nil {
		return err
	}
	if from, err = from.WithDryRun(stages); err != nil {
		return err
	}
	switch {
	case p.Version == 0:
		p.Version = version
	case version != 0 && version != p.Version:
		return invalid("If-Match names version %d, and the body version %d: they must be the same", version, p.Version)
	}
	o, err := from.Delete(r.Context(), c.Key, p)
	if err != nil {
		return asPreconditionFailed(err, version)
	}
	c.respond(w, r, http.StatusOK, from, o)
	return nil
}

// readWrite checks the parameters of a write, before anything is written, and reads its body. It
// returns the collection to write to. If the query has dryRun=All, that collection checks writes
// but stores nothing.
func (c call) readWrite(
	w http.ResponseWriter, r *http.Request,
) (to *store.Collection, body []byte, err error) {
	if r.Header.Get("If-None-Match") != "" {
		return nil, nil, invalid("If-None-Match is not supported for writes: " +
			"create an object with POST; nothing was written")
	}
	query, err := c.Admitted.Query()
	if err != nil {
		return nil, nil, err
	}
	if to, err = c.Call.Collection.WithDryRun(query["dryRun"]); err != nil {
		return nil, nil, err
	}
	if body, err = c.Admitted.ReadBody(w, r, c.bodyBytes()); err != nil {
		return nil, nil, err
	}
	switch contentType := r.Header.Get("Content-Type"); {
	case r.Method == http.MethodPatch:
		err = checkPatchType(contentType)
	case len(body) > 0:
		err = checkContentType(contentType)
	}
	return to, body, err
}

// bodyBytes returns the limit of request bodies and patched objects. A negative value means no
// limit.
func (h *Handler) bodyBytes() int64 { return cmp.Or(h.MaxBodyBytes, DefaultMaxBodyBytes) }

// checkPatchType accepts a merge patch.
func checkPatchType(contentType string) error {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err == nil && mediaType == string(listwatch.MergePatch) {
		return nil
	}
	return unsupportedMediaType(contentType, string(listwatch.MergePatch))
}

// checkContentType accepts JSON, and bodies without a meaningful type: no type, or the type that
// curl -d sends. A web page of another origin could send such a body without a preflight request,
// but the gate has already refused its request.
func checkContentType(contentType string) error {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if contentType == "" ||
		err == nil && (mediaType == "application/json" || mediaType == "application/x-www-form-urlencoded") {
		return nil
	}
	return unsupportedMediaType(contentType, "application/json")
}

func unsupportedMediaType(contentType, want string) error {
	return &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusUnsupportedMediaType, Reason: "UnsupportedMediaType",
		Message: fmt.Sprintf("Content-Type %q: must be %s", contentType, want),
	}
}

// ifMatch returns the version in the If-Match header (rfc9110#section-13.1.1), or zero if there is
// no header. It also returns zero for "*", which requires only that the object exists: an update or
// delete of a missing object fails anyway.
func ifMatch(r *http.Request) (listwatch.Version, error) {
	header := strings.Join(r.Header.Values("If-Match"), ", ")
	if header == "" || header == "*" {
		return 0, nil
	}
	text, quoted := strings.CutPrefix(header, `"`)
	text, closed := strings.CutSuffix(text, `"`)
	version, err := listwatch.ParseVersion(text)
	if err != nil || version == 0 || !quoted || !closed {
		return 0, invalid("If-Match %q: must be one ETag of this server, such as \"5\", or *", header)
	}
	return version, nil
}

// readDeleteOptions reads the preconditions and the values of dryRun in the body of a delete.
func readDeleteOptions(data []byte) (p listwatch.Preconditions, dryRun []string, err error) {
	if len(data) == 0 {
		return p, nil, nil
	}
	var options struct {
		DryRun        []string
		Preconditions struct{ UID, ResourceVersion string }
	}
	if err := json.Unmarshal(data, &options); err != nil {
		return p, nil, invalid("the body of a delete must be empty or hold DeleteOptions: %v", err)
	}
	p.UID = options.Preconditions.UID
	p.Version, err = listwatch.ParseVersion(options.Preconditions.ResourceVersion)
	return p, options.DryRun, err
}

// asPreconditionFailed changes the HTTP status of a Conflict to 412 if version, from the If-Match
// header, is not zero. The code of the error stays Conflict.
func asPreconditionFailed(err error, version listwatch.Version) error {
	e, ok := errors.AsType[*listwatch.Error](err)
	if !ok || e.Code != listwatch.Conflict || version == 0 {
		return err
	}
	c := *e
	c.Status, c.Reason = http.StatusPreconditionFailed, "Conflict"
	return &c
}

func invalid(format string, args ...any) error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf(format, args...)}
}
