// Package accessreview reads and writes SelfSubjectAccessReviews and SelfSubjectRulesReviews. With
// these, a client finds out what its user may do (Kubernetes, "Authorization", Checking API
// access).
package accessreview

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/listwatch/listwatch"
)

// The types of reviews.
const (
	Group     = "authorization.k8s.io"
	Version   = "v1"
	Kind      = "SelfSubjectAccessReview"
	RulesKind = "SelfSubjectRulesReview"
)

// A Review is the spec of a SelfSubjectAccessReview, in which Resource or Path is set, or of a
// SelfSubjectRulesReview, in which Namespace is set.
type Review struct {
	Resource  *ResourceAttributes `json:"resourceAttributes"`
	Path      *PathAttributes     `json:"nonResourceAttributes"`
	Namespace string              `json:"namespace"`

	spec json.RawMessage
}

// ResourceAttributes describe a request for a resource.
type ResourceAttributes struct {
	Namespace, Verb, Group, Version, Resource, Subresource, Name string
}

// PathAttributes describe a request for a path that is not the path of a resource, such as
// /version.
type PathAttributes struct{ Path, Verb string }

// Parse reads a review of the given kind, which is Kind or RulesKind, from JSON. Its errors are for
// the client.
func Parse(kind string, data []byte) (*Review, error) {
	r := new(Review)
	var err error
	if r.spec, err = parse(data, kind, r); err != nil {
		return nil, err
	}
	switch {
	case kind == RulesKind:
		if r.Namespace == "" {
			return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "no namespace on request"}
		}
	case (r.Resource == nil) == (r.Path == nil):
		const field, why = "spec.resourceAttributes", "exactly one of nonResourceAttributes or resourceAttributes must be specified"
		return nil, &listwatch.Error{
			Code: listwatch.Invalid, Status: http.StatusUnprocessableEntity, Reason: "Invalid",
			Message: fmt.Sprintf(`%s.%s "" is invalid: %s: Invalid value: %s`, Kind, Group, field, why),
			Details: &listwatch.Details{
				Group: Group, Kind: Kind, Causes: []listwatch.Cause{
					{Reason: listwatch.CauseInvalid, Field: field, Message: why},
				},
			},
		}
	}
	return r, nil
}

// Response returns the response to a review of one request. reason explains a refusal, and may be
// empty.
func (r *Review) Response(allowed bool, reason string) any {
	type status struct {
		Allowed bool   `json:"allowed"`
		Reason  string `json:"reason,omitempty"`
	}
	return struct {
		Kind       string          `json:"kind"`
		APIVersion string          `json:"apiVersion"`
		Metadata   struct{}        `json:"metadata"`
		Spec       json.RawMessage `json:"spec"`
		Status     status          `json:"status"`
	}{Kind: Kind, APIVersion: Group + "/" + Version, Spec: r.spec, Status: status{allowed, reason}}
}

// parse reads an object of the given kind from JSON. If the object has the member spec, parse
// decodes it into spec and returns its JSON.
func parse(data []byte, kind string, spec any) (json.RawMessage, error) {
	var o struct {
		APIVersion, Kind string
		Spec             json.RawMessage
	}
	err := json.Unmarshal(data, &o)
	if err == nil && o.Spec != nil {
		err = json.Unmarshal(o.Spec, spec)
	}
	if err == nil && (o.Kind != "" && o.Kind != kind || o.APIVersion != "" && o.APIVersion != Group+"/"+Version) {
		err = fmt.Errorf("kind %q of %q", o.Kind, o.APIVersion)
	}
	if err != nil {
		return nil, &listwatch.Error{
			Code:    listwatch.Invalid,
			Message: fmt.Sprintf("the request body must be a %s of %s/%s: %v", kind, Group, Version, err),
		}
	}
	return o.Spec, nil
}

// RulesResponse returns the response to a review of all rules. evaluationError is the reason why
// resources and paths are incomplete, and may be empty.
func RulesResponse[R, P any](resources []R, paths []P, incomplete bool, evaluationError string) any {
	type status struct {
		Resources  []R    `json:"resourceRules"`
		Paths      []P    `json:"nonResourceRules"`
		Incomplete bool   `json:"incomplete"`
		Error      string `json:"evaluationError,omitempty"`
	}
	s := status{Resources: resources, Paths: paths, Incomplete: incomplete, Error: evaluationError}
	return struct {
		Kind       string   `json:"kind"`
		APIVersion string   `json:"apiVersion"`
		Metadata   struct{} `json:"metadata"`
		Spec       struct{} `json:"spec"` // empty, as in Kubernetes
		Status     status   `json:"status"`
	}{Kind: RulesKind, APIVersion: Group + "/" + Version, Status: s}
}
