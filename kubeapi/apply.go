package kubeapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/internal/apply"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
	"github.com/listwatch/listwatch/kubeapi/internal/options"
	"github.com/listwatch/listwatch/kubeapi/internal/patch"
	"github.com/listwatch/listwatch/store"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
)

// track returns the object in next with new managedFields, in which the given manager owns all
// changes since old. It changes only objects that already have managedFields; see package apply.
func (c call) track(old, next []byte, manager string) ([]byte, error) {
	if !apply.IsTracked(old) && !apply.IsTracked(next) {
		return next, nil
	}
	// Another program may have stored a number that Kubernetes' code cannot decode. If next has
	// such a number, do not update its managedFields. If old has one, treat all of next as new.
	switch {
	case outOfRangeNumber(next) != "":
		return next, nil
	case outOfRangeNumber(old) != "":
		old = nil
	}
	// Kubernetes does not store empty maps and lists in the metadata, so no manager may own them.
	for _, name := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
		if value := string(rawjson.Lookup(next, "metadata", name)); value != "{}" && value != "[]" && value != "null" {
			continue
		}
		var err error
		if next, err = patch.Merge(next, []byte(`{"metadata":{"`+name+`":null}}`)); err != nil {
			return nil, err
		}
	}
	m, err := c.applier()
	if err != nil {
		return nil, err
	}
	return m.Update(c.Subresource, old, next, manager)
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

// apply handles a server-side apply of a configuration, which is compact JSON. It creates the
// object if it does not exist.
func (h *Handler) apply(w http.ResponseWriter, r *http.Request, c call, o options.Write,
	config []byte,
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
	c.wrote(r, to, applied)
	return nil
}

// readConfiguration checks the body of an apply, which has the given media type, and converts it to
// compact JSON.
func (h *Handler) readConfiguration(
	w http.ResponseWriter, r *http.Request, c call, o options.Write, mediaType string, data []byte,
) ([]byte, error) {
	bodyType := yamlType
	if mediaType == applyCBORPatchType {
		bodyType = cborType
	}
	config, err := h.toJSON(r.Context(), c.admitted, bodyType, data)
	if err != nil {
		return nil, err
	}
	config, err = compact(config)
	if err != nil || config[0] != '{' {
		message := "the configuration must be an object in YAML, JSON or CBOR"
		if err != nil {
			message += ": " + err.Error()
		}
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: message}
	}
	if config, err = applyFieldValidation(w, o.FieldValidation, config, c.strictError); err != nil {
		return nil, err
	}
	if config, err = normalizeConfiguration(config); err != nil {
		return nil, err
	}
	if name := metadataString(config, "name"); name != "" && name != c.Name {
		return nil, c.nameMismatch("name", name, c.Name)
	}
	if namespace := metadataString(config, "namespace"); c.Namespaced && namespace != "" && namespace != c.Namespace {
		return nil, c.nameMismatch("namespace", namespace, c.Namespace)
	}
	if err := c.checkTypes(config); err != nil {
		return nil, err
	}
	if _, err := listwatch.ParseVersion(metadataString(config, "resourceVersion")); err != nil {
		return nil, err
	}
	// A field that the schema does not have cannot be merged, because its type is unknown.
	if unknown := c.unknownFields(nil, config); unknown != nil {
		return nil, c.strictError(strings.Join(unknown, ", "))
	}
	if c.Subresource != "scale" {
		return config, nil
	}
	return c.scaleConfiguration(config)
}

// normalizeConfiguration changes a configuration, which is compact JSON, as Kubernetes does: it
// replaces null metadata with empty metadata, and removes a creationTimestamp, even an invalid one.
func normalizeConfiguration(config []byte) ([]byte, error) {
	var err error
	if string(rawjson.Lookup(config, "metadata")) == "null" {
		config, err = patch.Merge(config, []byte(`{"metadata":{}}`))
	}
	if err == nil && metadataString(config, "creationTimestamp") != "" {
		config, err = patch.Merge(config, []byte(`{"metadata":{"creationTimestamp":null}}`))
	}
	return config, err
}

// scaleConfiguration converts a configuration of a Scale to a configuration of the scaled object.
// It keeps the uid and the resourceVersion, which are preconditions.
func (c call) scaleConfiguration(scale []byte) ([]byte, error) {
	replicas, err := c.readScale(scale)
	if err != nil {
		return nil, err
	}
	config := fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":%q`, c.APIVersion(), c.Kind, c.Name)
	for _, name := range []string{"uid", "resourceVersion"} {
		if value := metadataString(scale, name); value != "" {
			config = fmt.Appendf(config, `,%q:%q`, name, value)
		}
	}
	config = append(config, "}}"...)
	if rawjson.Lookup(scale, "spec", "replicas") == nil {
		return config, nil // no change, unless this manager has applied the replicas before
	}
	return patch.Merge(config, c.scale.object(replicas))
}

// applyTo applies the configuration to the existing object.
func (c call) applyTo(r *http.Request, to *store.Collection, o options.Write,
	config []byte,
) (*listwatch.Object, error) {
	m, err := c.applier()
	if err != nil {
		return nil, err
	}
	if c.Subresource == "status" && string(rawjson.Lookup(config, "metadata", "name")) == "null" {
		return nil, c.nameMismatch("name", "", c.Name)
	}
	return to.Update(r.Context(), c.key(), listwatch.Preconditions{},
		c.inTurn(r.Context(), func(old *listwatch.Object) ([]byte, error) {
			if err := c.checkIdentity(old, config); err != nil {
				return nil, err
			}
			// Another program may have stored duplicate members.
			doc, _ := rawjson.DropDuplicates(old.Data)
			if c.Custom && c.Subresource != "scale" && metadataString(config, "resourceVersion") == "0" {
				return nil, c.missingVersion()
			}
			next, err := m.Apply(c.Subresource, doc, config, o.FieldManager, o.Force)
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
			return next, c.validateObject(doc, next)
		}))
}

// applyNew creates the object from the configuration.
func (c call) applyNew(r *http.Request, to *store.Collection, o options.Write,
	config []byte,
) (*listwatch.Object, error) {
	if uid := metadataString(config, "uid"); uid != "" {
		return nil, c.conflict(&listwatch.Object{Key: c.key()},
			"uid mismatch: the provided object specified uid "+uid+", and no existing object was found")
	}
	if metadataString(config, "name") == "" {
		return nil, c.nameMismatch("name", "", c.Name)
	}
	config, err := patch.Merge(config, withoutVersion)
	if err != nil {
		return nil, err
	}
	m, err := c.applier()
	if err != nil {
		return nil, err
	}
	object, err := c.inTurn(r.Context(), func(*listwatch.Object) ([]byte, error) {
		object, err := m.Apply(c.Subresource, nil, config, o.FieldManager, o.Force)
		if err != nil {
			return nil, err
		}
		return object, c.validateObject(nil, object)
	})(new(listwatch.Object))
	if err != nil {
		return nil, err
	}
	return to.CreateIn(r.Context(), c.Namespace, object)
}
