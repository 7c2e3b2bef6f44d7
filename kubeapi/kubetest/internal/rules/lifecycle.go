package rules

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/internal/apistatus"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DefinitionFinalizer keeps a deleted CustomResourceDefinition until its objects are gone.
const DefinitionFinalizer = v1.CustomResourceCleanupFinalizer

// markDefinition marks a CustomResourceDefinition for deletion; see [kubeapi.Deletion]. As in
// Kubernetes, propagation policies have no effect.
func markDefinition(old, next []byte, _ metav1.DeleteOptions) ([]byte, error) {
	if IsBeingDeleted(old) {
		return jsonvalue.SetMetadata(next, "deletionGracePeriodSeconds", []byte("0")), nil
	}
	m, err := Metadata(old)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(m.Finalizers, DefinitionFinalizer) {
		m.Finalizers = append(m.Finalizers, DefinitionFinalizer)
	}
	return Terminating(markAt(jsonvalue.SetFinalizers(old, m.Finalizers), time.Now()), v1.ConditionTrue,
		"InstanceDeletionPending", "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon")
}

// Terminating returns a CustomResourceDefinition with the condition Terminating.
func Terminating(definition []byte, status v1.ConditionStatus, reason, message string) ([]byte, error) {
	c, err := parseDefinition(definition)
	if err != nil {
		return nil, err
	}
	before := slices.Clone(c.Status.Conditions)
	apihelpers.SetCRDCondition(&c, v1.CustomResourceDefinitionCondition{
		Type: v1.Terminating, Status: status, Reason: reason, Message: message,
	})
	if slices.Equal(before, c.Status.Conditions) {
		return definition, nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": c.Status.Conditions}})
	if err != nil {
		return nil, err
	}
	return rawjson.Merge(definition, patch)
}

// updateDefinition checks that an update of a CustomResourceDefinition does not change its scope
// and names, and adds the storage version to status.storedVersions.
func updateDefinition(old, data []byte) ([]byte, error) {
	before, err := parseDefinition(old)
	if err != nil {
		return nil, err
	}
	c, err := parseDefinition(data)
	if err != nil {
		return nil, err
	}
	spec := field.NewPath("spec")
	errs := validation.ValidateImmutableField(c.Spec.Group, before.Spec.Group, spec.Child("group"))
	errs = append(errs, validation.ValidateImmutableField(
		c.Spec.Names.Plural, before.Spec.Names.Plural, spec.Child("names", "plural"))...)
	if apihelpers.IsCRDConditionTrue(&before, v1.Established) {
		errs = append(errs, validation.ValidateImmutableField(c.Spec.Scope, before.Spec.Scope, spec.Child("scope"))...)
		errs = append(errs, validation.ValidateImmutableField(
			c.Spec.Names.Kind, before.Spec.Names.Kind, spec.Child("names", "kind"))...)
	}
	var names []string
	stored := c.Status.StoredVersions
	for _, version := range c.Spec.Versions {
		names = append(names, version.Name)
		if version.Storage && !slices.Contains(stored, version.Name) {
			stored = append(stored, version.Name)
		}
	}
	for i, version := range stored {
		if !slices.Contains(names, version) {
			errs = append(errs, field.Invalid(field.NewPath("status", "storedVersions").Index(i), version,
				"missing from spec.versions; "+version+" was previously a storage version, and must remain in spec.versions "+
					"until a storage migration ensures no data remains persisted in "+version+
					" and removes "+version+" from status.storedVersions"))
		}
	}
	if len(errs) > 0 {
		return nil, apistatus.Invalid(v1.GroupName, Definitions.Kind, c.Name, errs)
	}
	if len(stored) == len(c.Status.StoredVersions) {
		return data, nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"storedVersions": stored}})
	if err != nil {
		return nil, err
	}
	return rawjson.Merge(data, patch)
}

// RefuseCreates makes the rules of d refuse new objects, because the definition of d is being
// deleted.
func (d *Declaration) RefuseCreates() {
	d.Admit = refuseCreates(d.Resource, d.Admit)
	for i := range d.Others {
		d.Others[i].Admit = refuseCreates(d.Resource, d.Others[i].Admit)
	}
}

// refuseCreates returns rules like admit, except that no object of r can be created.
func refuseCreates(r kubeapi.Resource, admit Admit) Admit {
	return func(ctx context.Context, old *listwatch.Object, data []byte) ([]byte, error) {
		if old != nil {
			return admit(ctx, old, data)
		}
		name, _ := rawjson.String(rawjson.Lookup(data, "metadata", "name"))
		return nil, &listwatch.Error{
			Code: listwatch.Forbidden,
			Message: fmt.Sprintf("%s %q is forbidden: create not allowed while custom resource definition is terminating",
				r.QualifiedName(), name),
			Details: &listwatch.Details{Name: name, Group: r.Group, Kind: r.Plural},
		}
	}
}
