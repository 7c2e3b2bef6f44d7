package kubeapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/internal/apistatus"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
	"github.com/listwatch/listwatch/kubeapi/internal/patch"
	"github.com/listwatch/listwatch/store"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// text returns the string at path in the object, or "" if there is none.
func text(object *store.Document, path ...string) string {
	return jsonvalue.Value(object.Lookup(path...)).Text()
}

// metadataString returns the string with the given name in the metadata of the object in doc, or ""
// if there is none.
func metadataString(doc []byte, name string) string {
	return jsonvalue.Value(doc).At("metadata", name).Text()
}

// parseMerged returns d after a merge patch.
func parseMerged(d *store.Document, changes []byte) (*store.Document, error) {
	merged, err := patch.Merge(d.JSON(), changes)
	if err != nil {
		return nil, err
	}
	return store.ParseDocument(merged)
}

// requireKind returns an error if the resource is custom and the object lacks its kind or
// apiVersion, or has another apiVersion. As in Kubernetes, these are optional only for built-in
// kinds.
func (c call) requireKind(object *store.Document) error {
	kind, apiVersion := text(object, "kind"), text(object, "apiVersion")
	switch {
	case !c.Custom || c.Subresource == "scale":
		return nil
	case kind == "" || apiVersion == "":
		return &listwatch.Error{
			Code: listwatch.Invalid, Message: fmt.Sprintf("the object must have the kind %q and the apiVersion %q",
				c.Kind, c.APIVersion()),
		}
	case apiVersion != c.APIVersion() && c.Subresource == "":
		return &listwatch.Error{
			Code: listwatch.Invalid, Message: fmt.Sprintf("the API version in the data (%s) does not match the "+
				"expected API version (%s)", apiVersion, c.APIVersion()),
		}
	}
	return nil
}

// checkCustomKind returns an error of status 422 if an object of a custom resource has the wrong
// kind. As in Kubernetes, this error is reported only after the object was found. checkCustomKind
// ignores an object with a wrong apiVersion, for which another check returns status 400.
func (c call) checkCustomKind(object *store.Document) error {
	if !c.Custom || c.Subresource != "" {
		return nil
	}
	kind, err := rawjson.String(object.Lookup("kind"))
	if err != nil || kind == c.Kind || text(object, "apiVersion") != c.APIVersion() {
		return nil
	}
	return apistatus.Invalid(c.Group, kind, text(object, "metadata", "name"), field.ErrorList{
		field.Invalid(field.NewPath("kind"), kind, "must be "+c.Kind),
	})
}

// checkTypes checks the types of the known fields of the object, and returns the paths of the
// fields that the schema does not have. The types of the metadata are always known; see
// [store.CollectionSpec.CheckTypes]. Objects without a schema have no unknown fields.
func (c call) checkTypes(object *store.Document) (unknown []string, err error) {
	if c.Subresource == "scale" {
		return nil, checkScale(object)
	}
	if c.Subresource == "status" && c.Custom {
		if object, err = withTypeMember(object, "kind", c.Kind); err != nil {
			return nil, err
		}
	}
	if err := c.Collection.Spec().CheckTypes(object); err != nil {
		return nil, err
	}
	if c.Validate != nil { // it also checks the types
		return c.Schema.Unknown(object.JSON()), nil
	}
	return c.Schema.Check(object.JSON())
}

// withTypeMember sets the member with the given name, which is kind or apiVersion, to value. It
// does nothing if the member is not a string or is empty. As in Kubernetes, kind and apiVersion
// have no effect in a write to the status of a custom resource.
func withTypeMember(object *store.Document, name, value string) (*store.Document, error) {
	if got := text(object, name); got == "" || got == value {
		return object, nil
	}
	return parseMerged(object, append(rawjson.AppendString([]byte(`{"`+name+`":`), value), '}'))
}

// complete returns the object in the body of a request, or the result of a patch, with defaults;
// see [Resource.Complete].
func (c call) complete(object *store.Document) (*store.Document, error) {
	if c.Complete == nil || c.Subresource == "scale" {
		return object, nil
	}
	data, err := c.Complete(object.JSON(), false)
	if err != nil || bytes.Equal(data, object.JSON()) {
		return object, err
	}
	return store.ParseDocument(data)
}

// validateObject returns an error of status 422 if next is invalid, and warns about its finalizers.
// As in Kubernetes, it accepts faults that old, which is the stored object, already has. old may be
// nil.
func (c call) validateObject(old, next *store.Document) error {
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
	errs := validate(next.JSON(), c.isApply)
	if len(errs) > 0 && old != nil {
		known := validate(old.JSON(), c.isApply)
		errs = slices.DeleteFunc(errs, func(e *field.Error) bool {
			return slices.ContainsFunc(known, func(k *field.Error) bool { return k.Error() == e.Error() })
		})
	}
	if len(errs) == 0 {
		return nil
	}
	return apistatus.Invalid(c.Group, c.Kind, cmp.Or(text(next, "metadata", "name"), c.Name), errs)
}

// warnOfFinalizers warns about new finalizers without a domain, as Kubernetes does for custom
// resources.
func (c call) warnOfFinalizers(old, next *store.Document) {
	if !c.Custom {
		return
	}
	var known []string
	if old != nil {
		known = parseFinalizers(old.Lookup("metadata", "finalizers"))
	}
	for _, name := range parseFinalizers(next.Lookup("metadata", "finalizers")) {
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

// parseFinalizers returns the finalizers in list, whose type has been checked. list may be nil.
func parseFinalizers(list []byte) (names []string) {
	if list == nil {
		return nil
	}
	_ = json.Unmarshal(list, &names)
	return names
}

// checkNamespace returns an error if the object has another namespace than the path.
func (c call) checkNamespace(object *store.Document) error {
	if namespace := text(object, "metadata", "namespace"); c.Namespaced && namespace != "" && namespace != c.Namespace {
		return c.nameMismatch("namespace", namespace, c.Namespace)
	}
	return nil
}

// checkIdentity returns an error if the name, namespace, UID or version of the new object, next,
// differs from the same member of old, which is stored. It ignores members that are missing in
// next, and version "0". As in Kubernetes, the error for a different UID is Invalid, because
// clients would retry after a conflict. In a write to a subresource, checkIdentity ignores the
// UID, because a PUT then has a precondition for it.
func (c call) checkIdentity(old *listwatch.Object, stored, next *store.Document) error {
	for _, name := range []string{"name", "namespace"} {
		got := text(next, "metadata", name)
		if got == "" || name == "namespace" && !c.Namespaced {
			continue
		}
		if want := text(stored, "metadata", name); got != want {
			return c.nameMismatch(name, got, want)
		}
	}
	uid := text(next, "metadata", "uid")
	if c.Subresource == "" && uid != "" && uid != text(stored, "metadata", "uid") {
		return apistatus.Invalid(c.Group, c.Kind, c.Name,
			validation.ValidateImmutableField(uid, "", field.NewPath("metadata", "uid")))
	}
	version := text(next, "metadata", "resourceVersion")
	if version == "" || version == "0" || version == old.Version.String() {
		return nil
	}
	if _, err := listwatch.ParseVersion(version); err != nil {
		return err
	}
	return c.conflict(old, "metadata.resourceVersion differs; "+
		"the object has been modified; please apply your changes to the latest version and try again")
}

func (c call) missingVersion() error {
	return apistatus.Invalid(c.Group, c.Plural, c.Name, field.ErrorList{
		field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
	})
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
