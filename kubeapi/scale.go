package kubeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/internal/apistatus"
	"github.com/listwatch/listwatch/kubeapi/internal/apply"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
	"github.com/listwatch/listwatch/kubeapi/internal/patch"
	"github.com/listwatch/listwatch/kubeapi/table"
	"github.com/listwatch/listwatch/store"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// scaleResource is the kind of the scale subresource.
var scaleResource = Resource{Group: "autoscaling", Version: "v1", Kind: "Scale"}

// A scaleSpec is a Scale with parsed paths. It is immutable.
type scaleSpec struct {
	replicas, statusReplicas, selector []string
	defaultReplicas                    int32
	table                              *table.Table
}

func (s Scale) compile(age table.Column) (*scaleSpec, error) {
	p := &scaleSpec{defaultReplicas: s.DefaultReplicas}
	if s.DefaultReplicas < 0 {
		p.defaultReplicas = noReplicas
	}
	var err error
	if p.replicas, err = jsonvalue.ParseMemberPath(s.SpecReplicasPath); err != nil {
		return nil, err
	}
	if p.statusReplicas, err = jsonvalue.ParseMemberPath(s.StatusReplicasPath); err != nil {
		return nil, err
	}
	if s.LabelSelectorPath != "" {
		if p.selector, err = jsonvalue.ParseMemberPath(s.LabelSelectorPath); err != nil {
			return nil, err
		}
	}
	p.table, err = table.New([]table.Column{
		{Name: "Desired", Type: "integer", Description: "The desired number of replicas.", Path: ".spec.replicas"},
		{Name: "Available", Type: "integer", Description: "The observed number of replicas.", Path: ".status.replicas"},
		age,
	})
	return p, err
}

// scaleObject is an autoscaling/v1 Scale.
type scaleObject struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Metadata   struct {
		Name              json.RawMessage `json:"name"`
		Namespace         json.RawMessage `json:"namespace,omitempty"`
		UID               json.RawMessage `json:"uid,omitempty"`
		ResourceVersion   json.RawMessage `json:"resourceVersion,omitempty"`
		CreationTimestamp json.RawMessage `json:"creationTimestamp,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Replicas int32 `json:"replicas,omitempty"` // omitted if zero, as in Kubernetes
	} `json:"spec"`
	Status struct {
		Replicas int32  `json:"replicas"`
		Selector string `json:"selector,omitempty"`
	} `json:"status"`
}

// noReplicas stands for a missing number of desired replicas, as in Kubernetes.
const noReplicas = math.MinInt32

// scaleOf returns the scale of o, which must have a number of desired replicas.
func (s *scaleSpec) scaleOf(o *listwatch.Object) (*listwatch.Object, error) {
	scaled, err := s.patchable(o)
	if err != nil || clampInt32(jsonvalue.Value(scaled.Data).At("spec", "replicas")) != noReplicas {
		return scaled, err
	}
	return nil, apistatus.Convert(apierrors.NewInternalError(
		fmt.Errorf("the spec replicas field %q does not exist", "."+strings.Join(s.replicas, "."))))
}

// ScaleOf returns the scale of an object of r, which must have the subresource. It may lack the
// members that the server sets.
func (r Resource) ScaleOf(object []byte) ([]byte, error) {
	s, err := r.Scale.compile(table.AgeColumn())
	if err != nil {
		return nil, err
	}
	o, err := s.patchable(&listwatch.Object{Data: object})
	if err != nil {
		return nil, err
	}
	return o.Data, nil
}

// WithScale returns an object of r with the desired number of replicas that scale has.
func (r Resource) WithScale(object, scale []byte) ([]byte, error) {
	s, err := r.Scale.compile(table.AgeColumn())
	if err != nil {
		return nil, err
	}
	return patch.Merge(object, s.object(clampInt32(jsonvalue.Value(scale).At("spec", "replicas"))))
}

// patchable is like scaleOf, but shows a missing number as noReplicas.
func (s *scaleSpec) patchable(o *listwatch.Object) (*listwatch.Object, error) {
	whole := jsonvalue.Value(o.Data)
	scaled := scaleObject{Kind: scaleResource.Kind, APIVersion: scaleResource.APIVersion()}
	for name, to := range map[string]*json.RawMessage{
		"name": &scaled.Metadata.Name, "namespace": &scaled.Metadata.Namespace, "uid": &scaled.Metadata.UID,
		"resourceVersion": &scaled.Metadata.ResourceVersion, "creationTimestamp": &scaled.Metadata.CreationTimestamp,
	} {
		*to = json.RawMessage(whole.At("metadata", name))
	}
	scaled.Spec.Replicas = s.defaultReplicas
	if wanted := whole.At(s.replicas...); len(wanted) > 0 && string(wanted) != "null" {
		scaled.Spec.Replicas = clampInt32(wanted)
	}
	scaled.Status.Replicas = clampInt32(whole.At(s.statusReplicas...))
	if s.selector != nil {
		scaled.Status.Selector = table.FormatSelector(whole.At(s.selector...))
	}
	data, err := json.Marshal(scaled)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Corrupt, Message: "the stored object is invalid", Err: err}
	}
	return &listwatch.Object{Key: o.Key, Version: o.Version, Data: data}, nil
}

// clampInt32 returns v as an integer, limited to the range of int32.
func clampInt32(v jsonvalue.Value) int32 {
	return int32(max(math.MinInt32, min(math.MaxInt32, v.Int())))
}

// updateScale applies p to the object's scale, stores the resulting number of desired
// replicas, and returns the new scale. Other changes by p have no effect, except for
// preconditions.
func (c call) updateScale(
	ctx context.Context, to *store.Collection, conditions listwatch.Preconditions, manager string, p changeFunc,
) (*listwatch.Object, error) {
	o, err := to.UpdateDocument(ctx, c.Key, conditions, c.bodyBytes, func(
		old *listwatch.Object, stored *store.Document,
	) (*store.Document, error) {
		before, err := c.scale.patchable(old)
		if err != nil {
			return nil, err
		}
		scale, err := store.ParseDocument(before.Data)
		if err != nil {
			return nil, err
		}
		next, err := p(scale)
		if err != nil {
			return nil, err
		}
		if err := c.checkIdentity(old, stored, next); err != nil {
			return nil, err
		}
		wanted, err := c.readScale(next)
		if err != nil || wanted == clampInt32(scale.Lookup("spec", "replicas")) {
			return stored, err
		}
		// Another program may have stored duplicate members.
		doc := rawjson.Inspect(old.Data).Unique
		if doc, err = patch.Merge(doc, c.scale.object(wanted)); err != nil {
			return nil, err
		}
		if next, err = store.ParseDocument(doc); err != nil {
			return nil, err
		}
		if err := c.validateObject(stored, next); err != nil {
			return nil, err
		}
		if !apply.Manages(old.Data, c.scale.replicas...) {
			return next, nil // as in Kubernetes, which does not track replicas that had no manager
		}
		return c.track(stored, next, manager)
	})
	if err != nil {
		return nil, err
	}
	return c.scale.scaleOf(o)
}

// object returns the JSON of an object that has only the desired number of replicas.
func (s *scaleSpec) object(replicas int32) []byte {
	object := strconv.AppendInt(nil, int64(replicas), 10)
	for i := len(s.replicas) - 1; i >= 0; i-- {
		object = append(append(append(rawjson.AppendString([]byte{'{'}, s.replicas[i]), ':'), object...), '}')
	}
	return object
}

// checkScale returns an error if scale does not have the types of a Scale.
func checkScale(scale *store.Document) error {
	kind, apiVersion := jsonvalue.Value(scale.Lookup("kind")), jsonvalue.Value(scale.Lookup("apiVersion"))
	if len(kind) > 0 && kind.Text() != scaleResource.Kind || len(apiVersion) > 0 &&
		apiVersion.Text() != scaleResource.APIVersion() {
		return invalidScale(fmt.Sprintf("got a %s of %s", kind, apiVersion))
	}
	if spec := scale.Lookup("spec"); len(spec) > 0 && spec[0] != '{' && string(spec) != "null" {
		return invalidScale("spec is not an object")
	}
	if replicas := scale.Lookup("spec", "replicas"); len(replicas) > 0 && string(replicas) != "null" {
		if _, err := strconv.ParseInt(string(replicas), 10, 32); err != nil {
			return invalidScale(fmt.Sprintf("spec.replicas is %s, must be a 32-bit integer", replicas))
		}
	}
	return scaleResource.CollectionSpec().CheckTypes(scale)
}

// readScale returns the desired replicas of a scale whose types have been checked. As in
// Kubernetes, a missing number means zero.
func (c call) readScale(scale *store.Document) (int32, error) {
	n := clampInt32(scale.Lookup("spec", "replicas"))
	switch {
	case n >= 0, c.scale.defaultReplicas == noReplicas && n != noReplicas:
		// For custom resources, Resource.Validate rejects a negative number.
		return n, nil
	case n == noReplicas:
		return 0, apistatus.Convert(apierrors.NewBadRequest(
			fmt.Sprintf("the spec replicas field %q cannot be empty", "."+strings.Join(c.scale.replicas, "."))))
	}
	const cause = "must be greater than or equal to 0"
	return 0, &listwatch.Error{
		Code: listwatch.Invalid, Status: http.StatusUnprocessableEntity, Reason: "Invalid",
		Message: fmt.Sprintf("Scale.autoscaling %q is invalid: spec.replicas: Invalid value: %d: %s", c.Name, n, cause),
		Details: &listwatch.Details{
			Name: c.Name, Group: scaleResource.Group, Kind: scaleResource.Kind,
			Causes: []listwatch.Cause{
				{
					Reason: listwatch.CauseInvalid, Field: "spec.replicas",
					Message: fmt.Sprintf("Invalid value: %d: %s", n, cause),
				},
			},
		},
	}
}

func invalidScale(why string) error {
	return &listwatch.Error{
		Code: listwatch.Invalid, Message: "the request body must be a Scale of autoscaling/v1: " + why,
	}
}
