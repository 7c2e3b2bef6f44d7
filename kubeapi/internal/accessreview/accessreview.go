// Package accessreview reads and writes SelfSubjectAccessReviews, with which a client asks what its
// user may do (Kubernetes, "Authorization", Checking API access).
package accessreview

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/listwatch/listwatch"
)

// The type of a review.
const (
	Group   = "authorization.k8s.io"
	Version = "v1"
	Kind    = "SelfSubjectAccessReview"
	Plural  = "selfsubjectaccessreviews"
)

// A Review is the question of a client. One of its two fields is set.
type Review struct {
	Resource *ResourceAttributes `json:"resourceAttributes"`
	Path     *PathAttributes     `json:"nonResourceAttributes"`

	spec json.RawMessage
}

// ResourceAttributes describe a request for a resource.
type ResourceAttributes struct {
	Namespace, Verb, Group, Version, Resource, Subresource, Name string
}

// PathAttributes describe a request for another path.
type PathAttributes struct{ Path, Verb string }

// Parse reads a review from JSON. Its errors are those that the client receives.
func Parse(data []byte) (*Review, error) {
	var o struct {
		APIVersion, Kind string
		Spec             json.RawMessage
	}
	r := new(Review)
	err := json.Unmarshal(data, &o)
	if err == nil && o.Spec != nil {
		r.spec = o.Spec
		err = json.Unmarshal(o.Spec, r)
	}
	if err == nil && (o.Kind != "" && o.Kind != Kind || o.APIVersion != "" && o.APIVersion != Group+"/"+Version) {
		err = fmt.Errorf("kind %q of %q", o.Kind, o.APIVersion)
	}
	if err != nil {
		return nil, &listwatch.Error{
			Code: listwatch.Invalid, Message: "the request body must be a " + Kind + " of " + Group + "/" + Version, Err: err,
		}
	}
	if (r.Resource == nil) == (r.Path == nil) {
		const field, why = "spec.resourceAttributes", "exactly one of nonResourceAttributes or resourceAttributes must be specified"
		return nil, &listwatch.Error{
			Code: listwatch.Invalid, Status: http.StatusUnprocessableEntity, Reason: "Invalid",
			Message: fmt.Sprintf(`%s.%s "" is invalid: %s: Invalid value: %s`, Kind, Group, field, why),
			Details: &listwatch.Details{Group: Group, Kind: Kind, Causes: []listwatch.Cause{{Reason: listwatch.CauseInvalid, Field: field, Message: why}}},
		}
	}
	return r, nil
}

// Response returns the answer to r, with the reason for a denial.
func (r *Review) Response(denied error) any {
	type status struct {
		Allowed bool   `json:"allowed"`
		Reason  string `json:"reason,omitempty"`
	}
	s := status{Allowed: denied == nil}
	if denied != nil {
		s.Reason = denied.Error()
	}
	return struct {
		Kind       string          `json:"kind"`
		APIVersion string          `json:"apiVersion"`
		Metadata   struct{}        `json:"metadata"`
		Spec       json.RawMessage `json:"spec"`
		Status     status          `json:"status"`
	}{Kind: Kind, APIVersion: Group + "/" + Version, Spec: r.spec, Status: s}
}
