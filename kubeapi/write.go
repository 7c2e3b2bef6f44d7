package kubeapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/budget"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/internal/apistatus"
	"github.com/listwatch/listwatch/kubeapi/internal/options"
	"github.com/listwatch/listwatch/kubeapi/internal/patch"
	"github.com/listwatch/listwatch/store"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// withoutVersion is a merge patch that removes the resourceVersion of an object, for writes in
// which it has no effect, as in Kubernetes.
var withoutVersion = []byte(`{"metadata":{"resourceVersion":null}}`)

// create handles a POST to a collection.
func (h *Handler) create(w http.ResponseWriter, r *http.Request, c call) error {
	o, data, err := h.readWrite(w, r, c, options.Create)
	if err != nil {
		return err
	}
	c.bodyBytes = len(data)
	data, err = c.inTurn(r.Context(), func(*listwatch.Object) ([]byte, error) {
		object, err := c.withoutStatus(data)
		if err != nil {
			return nil, err
		}
		if err := c.validateObject(nil, object); err != nil {
			return nil, err
		}
		return c.track(nil, object, manager(r, o))
	})(new(listwatch.Object))
	if err != nil {
		return err
	}
	// Kubernetes ignores an invalid version on create, too.
	if _, invalid := listwatch.ParseVersion(metadataString(data, "resourceVersion")); invalid != nil || o.DryRun {
		if data, err = patch.Merge(data, withoutVersion); err != nil {
			return err
		}
	}
	to := c.target(o.DryRun)
	created, err := to.CreateIn(r.Context(), c.Namespace, data)
	if err != nil {
		return c.nameDeletion(r.Context(), data, err)
	}
	c.writeObject(w, r, http.StatusCreated, created)
	c.wrote(r, to, created)
	return nil
}

// replace handles a PUT to an object. metadata.resourceVersion and metadata.uid in the body
// are preconditions.
func (h *Handler) replace(w http.ResponseWriter, r *http.Request, c call) error {
	o, data, err := h.readWrite(w, r, c, options.Update)
	if err != nil {
		return err
	}
	c.bodyBytes = len(data)
	// Require the name, because a body without it may be a mistake, and would empty a subresource.
	if name := metadataString(data, "name"); name != c.Name {
		return c.nameMismatch("name", name, c.Name)
	}
	if namespace := metadataString(data, "namespace"); c.Namespaced && namespace != "" && namespace != c.Namespace {
		return c.nameMismatch("namespace", namespace, c.Namespace)
	}
	p := listwatch.Preconditions{UID: metadataString(data, "uid")}
	if p.Version, err = listwatch.ParseVersion(metadataString(data, "resourceVersion")); err != nil {
		return err
	}
	to := c.target(o.DryRun)
	updated, err := c.update(r.Context(), to, p, manager(r, o), func(old []byte) ([]byte, error) {
		return c.keepStatus(old, data)
	})
	if err != nil {
		return err
	}
	c.writeObject(w, r, http.StatusOK, updated)
	c.wrote(r, to, updated)
	return nil
}

// ignoresStatus reports whether the status in a request has no effect. In Kubernetes, only writes
// to the subresource status change the status of a custom resource that declares it.
func (c call) ignoresStatus() bool {
	return (c.Custom || c.SeparateStatus) && c.Subresource == "" && c.hasSubresource("status")
}

// withoutStatus returns data, an object to create or a configuration to apply, without its status
// if the status has no effect.
func (c call) withoutStatus(data []byte) ([]byte, error) {
	if !c.ignoresStatus() || rawjson.Lookup(data, "status") == nil {
		return data, nil
	}
	return patch.WithStatus(data, []byte("{}"))
}

// keepStatus returns data with the status of old if data has no status, or if its status has no
// effect. A writer that knows only the rest of the object must not delete the status, which has its
// own subresource.
func (c call) keepStatus(old, data []byte) ([]byte, error) {
	stored, status := rawjson.Lookup(old, "status"), rawjson.Lookup(data, "status")
	switch {
	case bytes.Equal(stored, status):
		return data, nil
	case c.ignoresStatus(), status == nil && c.Subresource == "" && c.hasSubresource("status"):
		return patch.WithStatus(data, old)
	}
	return data, nil
}

// readWrite reads and checks the options and the object in the body of a create or an update. The
// object is compact JSON.
func (h *Handler) readWrite(
	w http.ResponseWriter, r *http.Request, c call, read func(url.Values) (options.Write, error),
) (o options.Write, data []byte, err error) {
	q, err := c.admitted.Query()
	if err != nil {
		return o, nil, err
	}
	if o, err = read(q); err != nil {
		return o, nil, err
	}
	data, end, err := h.readObject(w, r, c.admitted)
	if err != nil {
		return o, nil, err
	}
	defer end()
	if len(data) == 0 {
		return o, nil, &listwatch.Error{
			Code: listwatch.Invalid, Message: "the request body is empty; it must contain the object",
		}
	}
	if data, err = compact(data); err != nil {
		return o, nil, &listwatch.Error{Code: listwatch.Invalid, Message: "the object must be JSON: " + err.Error()}
	}
	if data, err = applyFieldValidation(w, o.FieldValidation, data, c.strictError); err != nil {
		return o, nil, err
	}
	if err := c.requireKind(data); err != nil {
		return o, nil, err
	}
	if c.checkCustomKind(data) == nil { // otherwise validateObject reports the wrong kind later
		if err := c.checkTypes(data); err != nil {
			return o, nil, err
		}
	}
	if err := report(w, o.FieldValidation, c.unknownFields(nil, data), c.strictError); err != nil {
		return o, nil, err
	}
	return o, dropRepeatedOwners(w, data), nil
}

// nameDeletion returns err, the error of a create. If the object exists because finalizers delay
// its deletion, the message says so, as in Kubernetes.
func (c call) nameDeletion(ctx context.Context, data []byte, err error) error {
	if !errors.Is(err, listwatch.AlreadyExists) {
		return err
	}
	old, missing := c.collection.Get(ctx, listwatch.Key{Namespace: c.Namespace, Name: metadataString(data, "name")})
	if missing != nil || rawjson.Lookup(old.Data, "metadata", "deletionTimestamp") == nil {
		return err
	}
	named := *listwatch.AsError(err)
	named.Message = "object is being deleted: " + named.Message
	return &named
}

// requireKind returns an error if the resource is custom and the object lacks its kind or
// apiVersion. As in Kubernetes, these are optional only for built-in kinds.
func (c call) requireKind(data []byte) error {
	if !c.Custom || c.Subresource == "scale" || data[0] != '{' {
		return nil
	}
	kind, kindErr := rawjson.String(rawjson.Lookup(data, "kind"))
	version, versionErr := rawjson.String(rawjson.Lookup(data, "apiVersion"))
	if kindErr != nil || versionErr != nil || kind == "" || version == "" {
		return &listwatch.Error{
			Code: listwatch.Invalid, Message: fmt.Sprintf("the object must have the kind %q and the apiVersion %q",
				c.Kind, c.APIVersion()),
		}
	}
	return nil
}

// checkCustomKind returns an error of status 422 if an object of a custom resource has the wrong
// kind. As in Kubernetes, this error is reported only after the object was found. checkCustomKind
// ignores an object with a wrong apiVersion, for which another check returns status 400.
func (c call) checkCustomKind(data []byte) error {
	kind, err := rawjson.String(rawjson.Lookup(data, "kind"))
	version, _ := rawjson.String(rawjson.Lookup(data, "apiVersion"))
	if !c.Custom || c.Subresource != "" || err != nil || kind == c.Kind || version != c.APIVersion() {
		return nil
	}
	return apistatus.Invalid(c.Group, kind, metadataString(data, "name"), field.ErrorList{
		field.Invalid(field.NewPath("kind"), kind, "must be "+c.Kind),
	})
}

// warnOfFinalizers warns about new finalizers without a domain, as Kubernetes does for custom
// resources.
func (c call) warnOfFinalizers(old, next []byte) {
	if !c.Custom {
		return
	}
	known := finalizers(old)
	for _, name := range finalizers(next) {
		if strings.Contains(name, "/") || slices.Contains(known, name) || slices.Contains(standardFinalizers, name) {
			continue
		}
		form := "finalizer name"
		if strings.Contains(name, ".") {
			form += " including a path (/)"
		}
		c.warn(
			fmt.Sprintf(
				"metadata.finalizers: %q: prefer a domain-qualified %s to avoid accidental conflicts with other finalizer writers", name, form))
	}
}

var standardFinalizers = []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, "kubernetes"}

// finalizers returns the finalizers of an object, whose types have been checked.
func finalizers(object []byte) (names []string) {
	list := rawjson.Lookup(object, "metadata", "finalizers")
	if list == nil {
		return nil
	}
	_ = json.Unmarshal(list, &names)
	return names
}

// checkTypes checks the types of the known fields of data, which is compact JSON. The types
// of the metadata are always known; see [store.CollectionSpec.CheckTypes].
func (c call) checkTypes(data []byte) error {
	if c.Subresource == "scale" {
		return checkScale(data)
	}
	if c.Subresource == "status" && c.Custom {
		var err error
		if data, err = withTypeMember(data, "kind", c.Kind); err != nil {
			return err
		}
	}
	if err := c.collection.Spec().CheckTypes(data); err != nil || c.Validate != nil {
		return err
	}
	return c.Schema.Check(data)
}

// withTypeMember sets the member with the given name, which is kind or apiVersion, to value. It
// does nothing if the member is not a string or is empty. As in Kubernetes, kind and apiVersion
// have no effect in a write to the status of a custom resource.
func withTypeMember(data []byte, name, value string) ([]byte, error) {
	if text, err := rawjson.String(rawjson.Lookup(data, name)); err != nil || text == "" || text == value {
		return data, nil
	}
	return patch.Merge(data, append(rawjson.AppendString([]byte(`{"`+name+`":`), value), '}'))
}

// validateObject returns an error of status 422 if next is invalid, and warns about its finalizers.
// As in Kubernetes, it accepts faults that old, which is the stored object, already has. old may be
// nil.
func (c call) validateObject(old, next []byte) error {
	if err := c.checkCustomKind(next); err != nil {
		return err
	}
	c.warnOfFinalizers(old, next)
	if c.Validate == nil {
		return nil
	}
	validate := c.Validate
	if c.Subresource == "status" && c.ValidateStatus != nil {
		validate = c.ValidateStatus
	}
	errs := validate(next, c.isApply)
	if len(errs) > 0 && old != nil {
		known := validate(old, c.isApply)
		errs = slices.DeleteFunc(errs, func(e *field.Error) bool {
			return slices.ContainsFunc(known, func(k *field.Error) bool { return k.Error() == e.Error() })
		})
	}
	if len(errs) == 0 {
		return nil
	}
	return apistatus.Invalid(c.Group, c.Kind, cmp.Or(metadataString(next, "name"), c.Name), errs)
}

// update applies p to the object, or to the part of it that the subresource names. The given
// manager becomes the manager of the changes. If p sets a resourceVersion, this is a precondition,
// as in Kubernetes.
func (c call) update(
	ctx context.Context, to *store.Collection, conditions listwatch.Preconditions, manager string, p patchFunc,
) (*listwatch.Object, error) {
	if c.Subresource == "scale" {
		return c.updateScale(ctx, to, conditions, manager, p)
	}
	return to.Update(ctx, c.key(), conditions, c.inTurn(ctx, func(old *listwatch.Object) ([]byte, error) {
		// Another program that writes to the database may have stored duplicate members.
		doc, _ := rawjson.DropDuplicates(old.Data)
		next, err := p(doc)
		if err != nil {
			return nil, err
		}
		named := metadataString(next, "name") == c.Name // otherwise the store reports the name
		if c.Custom && named && slices.Contains([]string{"", "0"}, metadataString(next, "resourceVersion")) {
			return nil, c.missingVersion()
		}
		if err := c.checkIdentity(old, next); err != nil {
			return nil, err
		}
		switch {
		case c.ignoresStatus():
			next, err = c.keepStatus(doc, next)
		case c.Subresource != "status":
		case metadataString(next, "name") == "":
			err = c.nameMismatch("name", "", c.Name)
		default:
			next, err = patch.WithStatus(doc, next)
		}
		if err != nil {
			return nil, err
		}
		if err := c.validateObject(doc, next); err != nil {
			return nil, err
		}
		return c.track(doc, next, manager)
	}))
}

func (c call) missingVersion() error {
	return apistatus.Invalid(c.Group, c.Plural, c.Name, field.ErrorList{
		field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
	})
}

// inTurn returns a function that calls change. If the object or the request is large, the function
// first waits for a turn, which is the right to use a processor for large work.
func (c call) inTurn(ctx context.Context,
	change func(old *listwatch.Object) ([]byte, error),
) func(old *listwatch.Object) ([]byte, error) {
	return func(old *listwatch.Object) ([]byte, error) {
		end, err := budget.BeginTurn(ctx, c.bodyBytes+len(old.Data))
		if err != nil {
			return nil, err
		}
		defer end()
		return change(old)
	}
}

// checkIdentity returns an error if the name, namespace, UID or version of the new object, next,
// differs from the same member of old. It ignores members that are missing in next, and version
// "0". As in Kubernetes, the error for a different UID is Invalid, because clients would retry
// after a conflict. In a write to a subresource, checkIdentity ignores the UID, because a PUT then
// has a precondition for it.
func (c call) checkIdentity(old *listwatch.Object, next []byte) error {
	for _, name := range []string{"name", "namespace"} {
		if want, got := metadataString(old.Data, name), metadataString(next, name); got != "" && got != want &&
			(name == "name" || c.Namespaced) {
			return c.nameMismatch(name, got, want)
		}
	}
	if uid := metadataString(next, "uid"); c.Subresource == "" && uid != "" && uid != metadataString(old.Data, "uid") {
		return apistatus.Invalid(c.Group, c.Kind, c.Name,
			validation.ValidateImmutableField(uid, "", field.NewPath("metadata", "uid")))
	}
	version := metadataString(next, "resourceVersion")
	if version == "" || version == "0" || version == old.Version.String() {
		return nil
	}
	if _, err := listwatch.ParseVersion(version); err != nil {
		return err
	}
	return c.conflict(old, "metadata.resourceVersion differs; "+
		"the object has been modified; please apply your changes to the latest version and try again")
}

func (c call) nameMismatch(member, got, want string) error {
	return &listwatch.Error{
		Code: listwatch.Invalid, Message: fmt.Sprintf("the %s of the object (%s) must match the %s in the URL (%s)",
			member, got, member, want),
	}
}

func (c call) conflict(old *listwatch.Object, why string) error {
	return &listwatch.Error{
		Code:    listwatch.Conflict,
		Message: fmt.Sprintf("Operation cannot be fulfilled on %s %q: %s", c.QualifiedName(), old.Key.Name, why),
		Details: &listwatch.Details{Name: old.Key.Name, Group: c.Group, Kind: c.Plural},
	}
}

// metadataString returns the string with the given name in the metadata, or "" if there is none.
func metadataString(doc []byte, name string) string {
	value := rawjson.Lookup(doc, "metadata", name)
	if value == nil {
		return "" // the usual case, in which String would build an error
	}
	s, _ := rawjson.String(value)
	return s
}

// target returns the collection to write to, or a dry run of it.
func (c call) target(dryRun bool) *store.Collection {
	if dryRun {
		return c.collection.DryRun()
	}
	return c.collection
}
