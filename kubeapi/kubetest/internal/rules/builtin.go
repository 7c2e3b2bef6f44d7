package rules

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/internal/apistatus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/warning"
)

// BuiltIn returns the declaration of a built-in kind.
func BuiltIn(r kubeapi.Resource) Declaration {
	rules := builtInRules(r)
	r.Complete = rules.complete
	d := Declaration{
		Resource: r, Admit: rules.admit, Versions: append(olderVersions[r.QualifiedName()], r.Version),
	}
	if r.QualifiedName() == "events" {
		other := withBehavior(newEvents.resource())
		d.Others = []Version{{Resource: other, Admit: builtInRules(other).admit, Served: true}}
		d.Read, d.Write = convertEvent, convertEvent
	}
	return d
}

// olderVersions are the versions that a cluster also serves.
var olderVersions = map[string][]string{"horizontalpodautoscalers.autoscaling": {"v1"}}

// complete implements [kubeapi.Resource.Complete].
func (r ruleset) complete(data []byte, _ bool) ([]byte, error) {
	data, err := setDefaults(data, r.root)
	if err == nil && r.hasSpec {
		data, err = setDefaults(data, `{"spec":{}}`)
	}
	if err == nil {
		data, err = setDefaults(data, r.spec, "spec")
	}
	if err == nil && r.convert != nil {
		data, err = r.convert(data)
	}
	return data, err
}

// admit checks a complete object, and changes it as Kubernetes does before it stores the object.
func (r ruleset) admit(ctx context.Context, old *listwatch.Object, data []byte) (_ []byte, err error) {
	if old == nil && r.status != "" {
		data, err = rawjson.Merge(data, []byte(`{"status":`+r.status+`}`))
	}
	if err == nil && r.hasStatus {
		data, err = setDefaults(data, `{"status":{}}`)
	}
	if err == nil && r.change != nil {
		data, err = r.change(old, data)
	}
	if err != nil {
		return nil, err
	}
	if err := r.check(old, data); err != nil {
		return nil, err
	}
	if r.warnings != nil {
		for _, text := range r.warnings(data) {
			warning.AddWarning(ctx, "", text)
		}
	}
	return data, nil
}

// checkFinalizerNames returns an error for each new finalizer that is neither qualified nor
// Kubernetes' own.
func checkFinalizerNames(old *listwatch.Object, data []byte) (errs field.ErrorList) {
	known := []string{NamespaceFinalizer, metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}
	if old != nil {
		if m, err := Metadata(old.Data); err == nil {
			known = append(known, m.Finalizers...)
		}
	}
	m, err := Metadata(data)
	if err != nil {
		return nil // the store reports it
	}
	for i, name := range m.Finalizers {
		if !strings.Contains(name, "/") && !slices.Contains(known, name) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "finalizers").Index(i), name,
				"name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// setDefaults adds the members of defaults that the object at path in data lacks. defaults may be
// empty.
func setDefaults(data []byte, defaults string, path ...string) ([]byte, error) {
	if defaults == "" {
		return data, nil
	}
	missing := map[string]any{}
	err := rawjson.Members([]byte(defaults), func(name string, value rawjson.Span) error {
		if rawjson.Lookup(data, append(path, name)...) == nil {
			missing[name] = json.RawMessage(value.Of([]byte(defaults)))
		}
		return nil
	})
	if err != nil || len(missing) == 0 {
		return data, err
	}
	for _, name := range slices.Backward(path) {
		missing = map[string]any{name: missing}
	}
	patch, err := json.Marshal(missing)
	if err != nil {
		return nil, err
	}
	return rawjson.Merge(data, patch)
}

// check returns an error if a required field is missing, an immutable field has changed, a new
// finalizer has a bad name, or validate finds a fault.
func (r ruleset) check(old *listwatch.Object, data []byte) error {
	errs := checkFinalizerNames(old, data)
	for _, names := range r.required {
		switch value := rawjson.Lookup(data, names...); string(value) {
		case "", "null", `""`, "[]", "{}":
			errs = append(errs, field.Required(field.NewPath(names[0], names[1:]...), ""))
		}
	}
	for _, names := range r.immutable {
		if old == nil {
			break
		}
		before, now := rawjson.Lookup(old.Data, names...), rawjson.Lookup(data, names...)
		if before != nil && (now == nil || !rawjson.Equal(before, now)) {
			path := field.NewPath(names[0], names[1:]...)
			errs = append(errs, field.Invalid(path, json.RawMessage(now), "field is immutable"))
		}
	}
	if r.validate != nil {
		more, err := r.validate(data)
		if err != nil {
			return err
		}
		errs = slices.Concat(errs, more)
	}
	if len(errs) == 0 {
		return nil
	}
	name, _ := rawjson.String(rawjson.Lookup(data, "metadata", "name"))
	return apistatus.Invalid(r.group, r.kind, name, errs)
}
