package kubeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchserver"
)

// get answers one object, not older than the parameter resourceVersion says.
func (c call) get(w http.ResponseWriter, r *http.Request) error {
	if err := acceptsJSON(r); err != nil {
		return err
	}
	version, err := listwatch.ParseVersion(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		return err
	}
	if version != 0 {
		// The list waits for the version; what is read after it is not older.
		q := listwatch.Query{Namespace: c.namespace, Name: c.name, Start: listwatch.At, Version: version}
		if _, err := c.collection.List(r.Context(), q); err != nil {
			return err
		}
	}
	o, err := c.collection.Get(r.Context(), c.key())
	if err != nil {
		return err
	}
	return c.answer(w, r, http.StatusOK, o)
}

// create answers a POST to a collection.
func (h *Handler) create(w http.ResponseWriter, r *http.Request, c call) error {
	return h.write(w, r, c, http.StatusCreated, func(ctx context.Context, data []byte) (*listwatch.Object, error) {
		return c.collection.CreateIn(ctx, c.namespace, data)
	})
}

// replace answers a PUT to an object. What the body has of metadata.resourceVersion and metadata.uid are preconditions.
func (h *Handler) replace(w http.ResponseWriter, r *http.Request, c call) error {
	return h.write(w, r, c, http.StatusOK, func(ctx context.Context, data []byte) (*listwatch.Object, error) {
		return c.collection.Replace(ctx, c.key(), data)
	})
}

// write reads an object, lets do write it, and answers what came of it.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, c call, code int, do func(ctx context.Context, data []byte) (*listwatch.Object, error)) error {
	if err := checkWrite(r); err != nil {
		return err
	}
	data, err := h.readBody(w, r)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		return &listwatch.Error{Code: listwatch.Invalid, Message: "the body of the request is empty; it must be the object, in JSON"}
	}
	o, err := do(r.Context(), data)
	if err != nil {
		return err
	}
	return c.answer(w, r, code, o)
}

// delete answers a DELETE of an object. The body may be DeleteOptions; grace periods and propagation policies are accepted and
// mean nothing, for nothing depends on an object here.
func (h *Handler) delete(w http.ResponseWriter, r *http.Request, c call) error {
	if err := checkWrite(r); err != nil {
		return err
	}
	data, err := h.readBody(w, r)
	if err != nil {
		return err
	}
	conditions, err := readDeleteOptions(data)
	if err != nil {
		return err
	}
	o, err := c.collection.Delete(r.Context(), c.key(), conditions)
	if err != nil {
		return err
	}
	uid, err := rawjson.String(rawjson.Lookup(o.Data, "metadata", "uid"))
	if err != nil {
		uid = "" // a store may hold what others have written: the object is gone all the same
	}
	watchserver.WriteJSON(w, r, http.StatusOK, listwatch.Status{
		Kind: "Status", APIVersion: "v1", Status: "Success",
		Details: &listwatch.StatusDetails{Name: o.Key.Name, Group: c.Group, Kind: c.Plural, UID: uid},
	})
	return nil
}

// readDeleteOptions returns the preconditions of metav1.DeleteOptions; of an empty body, none.
func readDeleteOptions(data []byte) (p store.Preconditions, err error) {
	if len(data) == 0 {
		return p, nil
	}
	var o struct {
		Kind          string
		DryRun        []string
		Preconditions struct{ UID, ResourceVersion string }
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return p, &listwatch.Error{Code: listwatch.Invalid, Message: "the body of a delete must be DeleteOptions, in JSON", Err: err}
	}
	if o.Kind != "" && o.Kind != "DeleteOptions" {
		return p, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("the body of a delete must be DeleteOptions, got kind %q", o.Kind)}
	}
	if len(o.DryRun) > 0 {
		return p, noDryRun()
	}
	p.UID = o.Preconditions.UID
	p.Version, err = listwatch.ParseVersion(o.Preconditions.ResourceVersion)
	return p, err
}

// checkWrite refuses, before anything is written, what would make the answer or the write other than asked for.
func checkWrite(r *http.Request) error {
	if r.URL.Query().Get("dryRun") != "" {
		return noDryRun()
	}
	return acceptsJSON(r)
}

func noDryRun() error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: "dryRun is not supported: nothing was written"}
}

// jsonAlone is what single objects can be had in.
var jsonAlone = func() *framing.Registry {
	r, err := framing.NewRegistry(framing.JSON{})
	if err != nil {
		panic("kubeapi: " + err.Error())
	}
	return r
}()

func acceptsJSON(r *http.Request) error {
	_, err := jsonAlone.Negotiate(r.Header.Values("Accept"), false)
	return err
}

// answer writes o as it is kept, or indented where the query wants it pretty.
func (c call) answer(w http.ResponseWriter, r *http.Request, code int, o *listwatch.Object) error {
	body := o.Data
	if pretty(r.URL.Query()) {
		var indented bytes.Buffer
		if err := json.Indent(&indented, body, "", "  "); err != nil {
			return &listwatch.Error{Code: listwatch.Corrupt, Op: "get", Err: err}
		}
		body = indented.Bytes()
	}
	h := w.Header()
	if epoch := c.collection.Describe().Epoch; epoch != "" {
		h.Set(watchserver.EpochHeader, epoch)
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-cache, private")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(code)
	if r.Method != http.MethodHead {
		// Errors mean that the client is gone. Two writes: o.Data is shared and must not be appended to.
		w.Write(body)
		w.Write([]byte{'\n'})
	}
	return nil
}

func pretty(q url.Values) bool {
	want, err := strconv.ParseBool(q.Get("pretty"))
	return err == nil && want
}
