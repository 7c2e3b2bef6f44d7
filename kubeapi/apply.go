package kubeapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"unicode"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/budget"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/internal/apply"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
	"github.com/listwatch/listwatch/kubeapi/internal/options"
	"github.com/listwatch/listwatch/kubeapi/internal/patch"
	"github.com/listwatch/listwatch/store"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
)

// track updates the managedFields of next, an object of the resource that replaces old, which may
// be nil. It changes only objects that already have managedFields, and new ones if the Handler has
// the field ManagedFields set.
func (c call) track(old, next *store.Document, manager string) (*store.Document, error) {
	if isNew := old == nil; !isTracked(old) && !isTracked(next) && !(isNew && c.tracksAll) {
		return next, nil
	}
	return track(c.applier, c.Subresource, old, next, manager)
}

// Tracker returns a function for writes that do not come through a [Handler], such as the writes of
// a controller that runs with the server. The function returns next, an object of r that replaces
// old, with new managedFields, in which the given manager owns the changes. It changes only objects
// that already have managedFields. Both objects are JSON. It is safe for concurrent use.
func (r Resource) Tracker(manager string) func(old, next []byte) ([]byte, error) {
	applier := sync.OnceValues(func() (*apply.Manager, error) { return newApplier(r.withDefaults()) })
	return func(old, next []byte) ([]byte, error) {
		before, err := store.ParseDocument(old)
		if err != nil {
			return nil, err
		}
		after, err := store.ParseDocument(next)
		if err != nil {
			return nil, err
		}
		if !isTracked(before) && !isTracked(after) {
			return next, nil
		}
		tracked, err := track(applier, "", before, after, manager)
		if err != nil {
			return nil, err
		}
		return tracked.JSON(), nil
	}
}

// track returns next with new managedFields, in which the given manager owns all changes since old,
// which may be nil.
func track(
	applier func() (*apply.Manager, error), subresource string, old, next *store.Document, manager string,
) (*store.Document, error) {
	var before []byte
	if old != nil {
		before = old.JSON()
	}
	// Another program may have stored a number that Kubernetes' code cannot decode. If next has
	// such a number, do not update its managedFields. If old has one, treat all of next as new.
	switch {
	case next.OutOfRange() != "":
		return next, nil
	case rawjson.Inspect(before).OutOfRange != nil:
		before = nil
	}
	// Kubernetes does not store empty maps and lists in the metadata, so no manager may own them.
	for _, name := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
		if value := string(next.Lookup("metadata", name)); value != "{}" && value != "[]" && value != "null" {
			continue
		}
		var err error
		if next, err = parseMerged(next, []byte(`{"metadata":{"`+name+`":null}}`)); err != nil {
			return nil, err
		}
	}
	m, err := applier()
	if err != nil {
		return nil, err
	}
	data, err := m.Update(subresource, before, next.JSON(), manager)
	if err != nil {
		return nil, err
	}
	return store.ParseDocument(data)
}

// isTracked reports whether the object, which may be nil, has managedFields.
func isTracked(object *store.Document) bool {
	return object != nil && len(object.Lookup("metadata", "managedFields")) > len("[]")
}

// manager returns the field manager that the options name, or else the program in the header
// User-Agent, as in Kubernetes.
func manager(r *http.Request, o options.Write) string {
	if o.FieldManager != "" {
		return o.FieldManager
	}
	program, _, _ := strings.Cut(r.UserAgent(), "/")
	program = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return -1
	}, program)
	return program[:min(len(program), validation.FieldManagerMaxLength)]
}

// apply handles a server-side apply of a configuration. It creates the object if it does not exist.
func (h *Handler) apply(
	w http.ResponseWriter, r *http.Request, c call, o options.Write, config *store.Document,
) error {
	c.isApply = true
	to, code := c.target(o.DryRun), http.StatusOK
	config, err := c.withoutStatus(config)
	if err != nil {
		return err
	}
	var applied *listwatch.Object
	for range 3 { // another writer may create or delete the object in between
		applied, err = c.applyTo(r, to, o, config)
		if !errors.Is(err, listwatch.NotFound) || c.Subresource != "" {
			break
		}
		create := c.attributes()
		create.Verb = "create"
		if err := h.CheckAccess(r.Context(), *create); err != nil {
			return err
		}
		if applied, err = c.applyNew(r, to, o, config); !errors.Is(err, listwatch.AlreadyExists) {
			code = http.StatusCreated
			break
		}
	}
	if err != nil {
		return err
	}
	response := applied
	if c.Subresource == "scale" {
		if response, err = c.scale.scaleOf(applied); err != nil {
			return err
		}
	}
	c.writeObject(w, r, code, response)
	c.Wrote(r, to, applied)
	return nil
}

// readConfiguration checks the body of an apply, which has the given media type.
func (h *Handler) readConfiguration(
	w http.ResponseWriter, r *http.Request, c call, o options.Write, mediaType string, data []byte,
) (*store.Document, error) {
	bodyType := yamlType
	if mediaType == applyCBORPatchType {
		bodyType = cborType
	}
	data, err := h.toJSON(r.Context(), c.Admitted, bodyType, data)
	if err != nil {
		return nil, err
	}
	config, err := store.ParseDocument(data)
	if err != nil {
		return nil, &listwatch.Error{
			Code: listwatch.Invalid, Message: "the configuration must be an object in YAML, JSON or CBOR: " +
				listwatch.AsError(err).Message,
		}
	}
	err = checkFields(w, o.FieldValidation, config.OutOfRange(), config.Duplicates(), c.strictError)
	if err != nil {
		return nil, err
	}
	if config, err = normalizeConfiguration(config); err != nil {
		return nil, err
	}
	if name := text(config, "metadata", "name"); name != "" && name != c.Name {
		return nil, c.nameMismatch("name", name, c.Name)
	}
	if err := c.checkNamespace(config); err != nil {
		return nil, err
	}
	unknown, err := c.checkTypes(config)
	if err != nil {
		return nil, err
	}
	if _, err := listwatch.ParseVersion(text(config, "metadata", "resourceVersion")); err != nil {
		return nil, err
	}
	// A field that the schema does not have cannot be merged, because its type is unknown. As in
	// Kubernetes, an object without properties may have any field.
	if unknown != nil {
		if unknown = c.Schema.Undeclared(config.JSON()); unknown != nil {
			return nil, c.undeclared(config, unknown)
		}
	}
	if c.Subresource != "scale" {
		return config, nil
	}
	return c.scaleConfiguration(config)
}

// undeclared returns the error for a configuration with fields that the schema does not have. Its
// message is Kubernetes' own.
func (c call) undeclared(config *store.Document, fields []string) error {
	var faults []string
	for _, field := range fields[:min(len(fields), maxWarnings)] {
		faults = append(faults, "."+field+": field not declared in schema")
	}
	all := faults[0]
	if len(faults) > 1 {
		all = "errors:\n  " + strings.Join(faults, "\n  ")
	}
	namespace, name := text(config, "metadata", "namespace"), text(config, "metadata", "name")
	return &listwatch.Error{
		Code: listwatch.Invalid,
		Message: fmt.Sprintf("failed to create typed patch object (%s/%s; %s): %s", namespace, name,
			c.groupVersionKind().String(), all),
	}
}

// normalizeConfiguration changes a configuration as Kubernetes does: it replaces null metadata with
// empty metadata, and removes a creationTimestamp, even an invalid one.
func normalizeConfiguration(config *store.Document) (_ *store.Document, err error) {
	if string(config.Lookup("metadata")) == "null" {
		config, err = parseMerged(config, []byte(`{"metadata":{}}`))
	}
	if err == nil && text(config, "metadata", "creationTimestamp") != "" {
		config, err = parseMerged(config, []byte(`{"metadata":{"creationTimestamp":null}}`))
	}
	return config, err
}

// scaleConfiguration converts a configuration of a Scale to a configuration of the scaled object.
// It keeps the uid and the resourceVersion, which are preconditions.
func (c call) scaleConfiguration(scale *store.Document) (*store.Document, error) {
	replicas, err := c.readScale(scale)
	if err != nil {
		return nil, err
	}
	config := fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":%q`, c.APIVersion(), c.Kind, c.Name)
	for _, name := range []string{"uid", "resourceVersion"} {
		if value := text(scale, "metadata", name); value != "" {
			config = fmt.Appendf(config, `,%q:%q`, name, value)
		}
	}
	d, err := store.ParseDocument(append(config, "}}"...))
	if err != nil || scale.Lookup("spec", "replicas") == nil {
		return d, err // no change, unless this manager has applied the replicas before
	}
	return parseMerged(d, c.scale.object(replicas))
}

// applyTo applies the configuration to the existing object.
func (c call) applyTo(
	r *http.Request, to *store.Collection, o options.Write, config *store.Document,
) (*listwatch.Object, error) {
	m, err := c.applier()
	if err != nil {
		return nil, err
	}
	if c.Subresource == "status" && string(config.Lookup("metadata", "name")) == "null" {
		return nil, c.nameMismatch("name", "", c.Name)
	}
	return to.UpdateDocument(r.Context(), c.Key, listwatch.Preconditions{}, len(config.JSON()), func(
		old *listwatch.Object, stored *store.Document,
	) (*store.Document, error) {
		if err := c.checkIdentity(old, stored, config); err != nil {
			return nil, err
		}
		if c.Custom && c.Subresource != "scale" && text(config, "metadata", "resourceVersion") == "0" {
			return nil, c.missingVersion()
		}
		// Another program may have stored duplicate members.
		doc := rawjson.Inspect(old.Data).Unique
		next, err := m.Apply(c.Subresource, doc, config.JSON(), o.FieldManager, o.Force)
		if err != nil {
			return nil, err
		}
		if c.Subresource == "scale" && jsonvalue.Value(next).At(c.scale.replicas...) == nil &&
			c.scale.defaultReplicas == noReplicas {
			// As in Kubernetes, the replicas become zero if no manager applies them.
			if next, err = patch.Merge(next, c.scale.object(0)); err != nil {
				return nil, err
			}
		}
		applied, err := store.ParseDocument(next)
		if err != nil {
			return nil, err
		}
		return applied, c.validateObject(stored, applied)
	})
}

// applyNew creates the object from the configuration.
func (c call) applyNew(
	r *http.Request, to *store.Collection, o options.Write, config *store.Document,
) (*listwatch.Object, error) {
	if uid := text(config, "metadata", "uid"); uid != "" {
		return nil, c.conflict(&listwatch.Object{Key: c.Key},
			"uid mismatch: the provided object specified uid "+uid+", and no existing object was found")
	}
	if text(config, "metadata", "name") == "" {
		return nil, c.nameMismatch("name", "", c.Name)
	}
	m, err := c.applier()
	if err != nil {
		return nil, err
	}
	end, err := budget.BeginTurn(r.Context(), len(config.JSON()))
	defer end()
	if err == nil {
		config, err = parseMerged(config, withoutVersion)
	}
	if err != nil {
		return nil, err
	}
	data, err := m.Apply(c.Subresource, nil, config.JSON(), o.FieldManager, o.Force)
	if err != nil {
		return nil, err
	}
	object, err := store.ParseDocument(data)
	if err == nil {
		err = c.validateObject(nil, object)
	}
	if end(); err != nil {
		return nil, err
	}
	return to.CreateDocument(r.Context(), c.Namespace, object)
}
