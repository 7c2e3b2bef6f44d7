// Package options reads the options of requests, which are query parameters or the body of a
// delete, and validates them with Kubernetes' own code.
package options

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi/internal/apistatus"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	listvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Write has the options of a create, an update or a patch.
type Write struct {
	// DryRun is true if nothing may be written.
	DryRun bool
	// FieldManager owns the fields that the request sets. It may be empty.
	FieldManager string
	// FieldValidation is Ignore, Warn or Strict. The default of kube-apiserver, Warn, is already
	// filled in.
	FieldValidation string
	// Force lets an apply take fields from other managers.
	Force bool
}

// Create reads the options of a create from the query.
func Create(q url.Values) (Write, error) {
	var o metav1.CreateOptions
	err := read(q, &o, metav1.Convert_url_Values_To_v1_CreateOptions)
	if err == nil {
		err = invalid("CreateOptions", validation.ValidateCreateOptions(&o))
	}
	return newWrite(o.DryRun, o.FieldManager, o.FieldValidation), err
}

// Update reads the options of an update from the query.
func Update(q url.Values) (Write, error) {
	var o metav1.UpdateOptions
	err := read(q, &o, metav1.Convert_url_Values_To_v1_UpdateOptions)
	if err == nil {
		err = invalid("UpdateOptions", validation.ValidateUpdateOptions(&o))
	}
	return newWrite(o.DryRun, o.FieldManager, o.FieldValidation), err
}

// Patch reads the options of a patch with the given media type from the query.
func Patch(q url.Values, mediaType string) (Write, error) {
	var o metav1.PatchOptions
	err := read(q, &o, metav1.Convert_url_Values_To_v1_PatchOptions)
	if err == nil {
		err = invalid("PatchOptions", validation.ValidatePatchOptions(&o, types.PatchType(mediaType)))
	}
	w := newWrite(o.DryRun, o.FieldManager, o.FieldValidation)
	w.Force = o.Force != nil && *o.Force
	return w, err
}

func newWrite(dryRun []string, manager, fieldValidation string) Write {
	if fieldValidation == "" {
		fieldValidation = metav1.FieldValidationWarn
	}
	return Write{DryRun: len(dryRun) > 0, FieldManager: manager, FieldValidation: fieldValidation}
}

// Delete reads the options of a delete from the body, which is JSON, or from the query if the body
// is empty. As in Kubernetes, a body replaces the query. The only exception is dryRun: if the query
// has it, nothing is deleted, even if the body does not have it.
func Delete(q url.Values, body []byte) (o metav1.DeleteOptions, err error) {
	if len(body) == 0 {
		if err := read(q, &o, metav1.Convert_url_Values_To_v1_DeleteOptions); err != nil {
			return o, err
		}
		return o, invalid("DeleteOptions", validation.ValidateDeleteOptions(&o))
	}
	if err := json.Unmarshal(body, &o); err != nil {
		return o, invalidBody(withoutGoTypes(err))
	}
	if o.Kind != "" && o.Kind != "DeleteOptions" {
		return o, invalidBody(fmt.Sprintf("the kind is %q", o.Kind))
	}
	err = invalid("DeleteOptions", validation.ValidateDeleteOptions(&o))
	if q.Has("dryRun") {
		o.DryRun = []string{metav1.DryRunAll}
	}
	return o, err
}

// DeleteCollection reads the options of a delete of a collection. The query may also contain
// options of a list, such as resourceVersion, which is therefore not a precondition.
func DeleteCollection(q url.Values, body []byte) (metav1.DeleteOptions, error) {
	if err := validateList(q); err != nil {
		return metav1.DeleteOptions{}, err
	}
	o, err := Delete(q, body)
	if err != nil {
		return o, err
	}
	if unsafe := o.IgnoreStoreReadErrorWithClusterBreakingPotential; unsafe != nil && *unsafe {
		return o, invalid("DeleteOptions", field.ErrorList{
			field.Invalid(field.NewPath("ignoreStoreReadErrorWithClusterBreakingPotential"), true,
				"is not allowed for a collection"),
		})
	}
	if len(body) == 0 && o.Preconditions != nil {
		o.Preconditions.ResourceVersion = nil
	}
	return o, nil
}

// validateList validates the options of a list, except for the selectors.
func validateList(q url.Values) error {
	var o metav1.ListOptions
	if err := read(q, &o, metav1.Convert_url_Values_To_v1_ListOptions); err != nil {
		return err
	}
	return invalid("ListOptions", listvalidation.ValidateListOptions(&internalversion.ListOptions{
		Watch: o.Watch, ResourceVersion: o.ResourceVersion, ResourceVersionMatch: o.ResourceVersionMatch,
		Continue: o.Continue, SendInitialEvents: o.SendInitialEvents,
	}, true))
}

// read converts the query to options. It passes a nil scope to convert, because Kubernetes'
// conversions of queries do not use it.
func read[O any](q url.Values, o *O, convert func(*url.Values, *O, conversion.Scope) error) error {
	if err := convert(&q, o, nil); err != nil {
		return &listwatch.Error{Code: listwatch.Invalid, Message: "the query of the URL is invalid: " + err.Error()}
	}
	return nil
}

// withoutGoTypes returns the text of an error of package json without names of Go types.
func withoutGoTypes(err error) string {
	e, ok := errors.AsType[*stdjson.UnmarshalTypeError](err)
	switch {
	case !ok:
		return err.Error()
	case e.Field == "":
		return "got " + e.Value
	}
	return e.Field + ": got " + e.Value
}

func invalid(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apistatus.Invalid(metav1.GroupName, kind, "", errs)
}

func invalidBody(why string) error {
	return &listwatch.Error{
		Code: listwatch.Invalid, Message: "the body of a delete must contain DeleteOptions: " + why,
	}
}
